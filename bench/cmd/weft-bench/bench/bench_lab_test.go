package bench

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/openflow"
)

func TestBenchLabRefusesWrongFlags(t *testing.T) {
	for _, c := range [][3]string{
		{"first-packet", "--switches=0", "--switches 0: want at least 1"},
		{"first-packet", "--runs=0", "--runs 0: want 1 to 500"},
		{"first-packet", "--runs=501", "--runs 501: want 1 to 500"},
		{"first-packet", "--peer=ovs-testcontroller", "want a command with {port}"},
		{"first-packet", "--peer=/nonexistent {port}", "no such file"},
		{"first-packet", "--output=yaml", "want table or json"},
		{"reroute", "--runs=0", "--runs 0: want at least 1"},
		{"reroute", "--topology=star:3", "neither a file nor a known form"},
		{"reroute", "--topology=linear:3", "has no loops"},
		{"reroute", "--output=yaml", "want table or json"},
	} {
		if _, err := benchExecute(t, c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("bench %s %s: error %v, want one with %q", c[0], c[1], err, c[2])
		}
	}
}

// TestBenchLab runs both on real labs, with the real binary. Figures of so few
// runs mean nothing; that they are there does.
func TestBenchLab(t *testing.T) {
	t.Parallel()
	weft := testprogram.WithBench(t)
	run := func(into any, args ...string) {
		t.Helper()
		cmd := exec.Command(weft, append([]string{"bench"}, args...)...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, into)
		}
		if err != nil {
			t.Fatalf("weft bench %s: %v\n%s%s", strings.Join(args, " "), err, out, &errs)
		}
	}
	t.Run("first-packet", func(t *testing.T) {
		var r benchFirst
		run(&r, "first-packet", "--switches", "1,2", "--runs", "2", "-o", "json")
		if len(r.Rows) != 4 || r.Rows[0].Controller != "weft" || r.Rows[1].Controller != "ovs-testcontroller" || len(r.Marks) == 0 {
			t.Fatalf("%+v", r)
		}
		for _, row := range r.Rows {
			if len(row.Runs)+row.Lost != 2 || len(row.Runs) > 0 && row.MS.Median <= 0 || row.Controller == "weft" && (len(row.AloneRuns) != len(row.Runs) || row.Alone.Median <= 0) {
				t.Errorf("%+v", row)
			}
		}
	})
	t.Run("reroute", func(t *testing.T) {
		var r benchReroute
		for range 3 { // a cut is watched for half a second, in which a busy machine may have no time for it
			r = benchReroute{}
			run(&r, "reroute", "--topology", "ring:4", "--runs", "1", "--failover", "-o", "json")
			if r.Unmoved == 0 {
				break
			}
		}
		if len(r.Detail) != 2 || !r.Detail[1].Alone || r.Alone == nil || len(r.Marks) != 2 || r.Unmoved != 0 || r.Noticed.Median <= 0 || r.Installed.Median < r.Decided.Median {
			t.Errorf("%+v", r)
		}
	})
}

func TestBenchSpread(t *testing.T) {
	var v []float64
	for i := range 20 {
		v = append(v, float64(20-i))
	}
	if s := newBenchSpread(v); s.Median != 10.5 || s.P95 != 19 || s.Max != 20 || len(s.CI95) != 2 {
		t.Errorf("%+v", s)
	}
	if s := newBenchSpread(nil); !reflect.DeepEqual(s, benchSpread{}) {
		t.Errorf("of nothing: %+v", s)
	}
}

func TestBenchFirstLessTheSwitches(t *testing.T) {
	weft := &benchLab{north: "127.0.0.1:1"}
	r := &benchFirst{Rows: []*benchFirstRow{
		{Switches: 1, Runs: []float64{2, 2.5, 3}, AloneRuns: []float64{1, 1.5, 2}, b: weft},
		{Switches: 5, Runs: []float64{5, 6, 7}, AloneRuns: []float64{4, 4, 4}, b: weft},
	}}
	r.sum()
	if len(r.Marks) != 2 || r.Marks[0].Figure != 2.4 || r.Marks[1].Figure != 2 {
		t.Errorf("%+v", r.Marks)
	}
}

func TestBenchOutageIsTheLongestGap(t *testing.T) {
	at := time.Now()
	var replies benchReplies
	replies.got = map[int]time.Time{}
	for _, seq := range []int{0, 1, 3, 4, 8} { // 2 lost, then 5 to 7; the sender was late with 6
		late := 0
		if seq > 5 {
			late = 4
		}
		replies.got[seq] = at.Add(time.Duration(seq+late) * time.Millisecond)
	}
	if ms, lost := replies.outage(9); ms != 7 || lost != 4 {
		t.Errorf("outage %v ms, %d lost; want 7 ms and 4", ms, lost)
	}
	if ms, lost := replies.outage(20); ms != 11 || lost != 15 {
		t.Errorf("never back: outage %v ms, %d lost; want 11 ms and 15", ms, lost)
	}
}

func TestBenchRerouteIsReadOffTheWire(t *testing.T) {
	cut := time.Now()
	after := func(ms int, kind openflow.Type) benchNote {
		return benchNote{at: cut.Add(time.Duration(ms) * time.Millisecond), kind: kind}
	}
	var run benchRerouteRun
	run.read(cut, []benchNote{
		after(-1, openflow.TypeFlowMod), after(1, openflow.TypeBarrierReply), after(2, openflow.TypePortStatus), after(3, openflow.TypePortStatus),
		after(4, openflow.TypeFlowMod), after(5, openflow.TypeBarrierReply), after(6, openflow.TypeFlowMod), after(9, openflow.TypeBarrierReply),
		{at: cut.Add(time.Second), kind: openflow.TypeFlowMod, again: true},
	})
	if run.NoticedMS != 2 || run.DecidedMS != 4 || run.InstalledMS != 7 || run.FlowMods != 2 || run.Again != 1 {
		t.Errorf("%+v", run)
	}
}

func TestBenchWireTellsRepeats(t *testing.T) {
	w, entries := &benchWire{}, benchEntries{}
	mod := func(command flow.Command, owner flow.Owner, out flow.Port) []byte {
		m, err := openflow.V13.AppendFlowMod(nil, 1, &flow.Mod{Command: command, Entry: flow.Entry{
			Match: flow.Match{}.WithInPort(1), Cookie: flow.NewCookie(owner, 0, 7), Apply: []flow.Action{flow.Output(out)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for i, step := range []struct {
		m       []byte
		changes bool
	}{
		{mod(flow.Add, flow.OwnerForwarding, 2), false},
		{mod(flow.Add, flow.OwnerRoutes, 2), true},
		{mod(flow.Add, flow.OwnerRoutes, 2), false},
		{mod(flow.Add, flow.OwnerRoutes, 3), true},
		{mod(flow.DeleteStrict, flow.OwnerRoutes, 0), true},
		{mod(flow.DeleteStrict, flow.OwnerRoutes, 0), false},
	} {
		if changes := w.fromController(entries, step.m); changes != step.changes {
			t.Errorf("flow-mod %d changes something: %v, want %v", i, changes, step.changes)
		}
	}
	if n := len(w.take()); n != 5 {
		t.Errorf("%d flow-mods of routes noted, want 5", n)
	}
}
