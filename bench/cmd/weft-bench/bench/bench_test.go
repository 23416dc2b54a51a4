package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/testbed"
)

// benchExecute runs `bench` with arguments.
func benchExecute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestBenchRefusesWrongFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"throughput --switches 0", "--switches 0: want at least 1"},
		{"throughput --openflow 1.4", `--openflow "1.4": want 1.0 or 1.3`},
		{"throughput --window 5000", "--window 5000: want 1 to 4096"},
		{"throughput --rate -5", "--rate -5: want"},
		{"throughput --hosts 1", "--hosts 1: want at least 2"},
		{"throughput --host-ports 0", "--host-ports 0: want at least 1"},
		{"throughput --rounds 0", "--rounds 0: want at least 1"},
		{"throughput --duration 0s", "--duration 0s: want at least 10ms"},
		{"throughput -o yaml", `--output "yaml": want table or json`},
		{"throughput --plot x.txt", `--plot "x.txt": want a file name that ends in .svg, .png, .pdf`},
		{"throughput --controller 6653", `--controller "6653": want HOST:PORT`},
		{"throughput --controller h:1 --controller-command x", "give one of them"},
		{"throughput --controller-command ovs-testcontroller", "want a command with {port}"},
		{"throughput --controller-command /nonexistent/{port}", "no such file"},
		{"latency --window 5", "unknown flag: --window"},
		{"latency --rate 5", "unknown flag: --rate"},
		{"floor --listen nowhere", "--listen nowhere"},
		{"discovery --topology mesh", "want one of random, linear, ring, fat-tree:K, hydra"},
		{"discovery --topology fat-tree", "want one of"},
		{"discovery --topology fat-tree:x", "want fat-tree:K with K"},
		{"discovery --topology fat-tree:3", "want an even number"},
		{"discovery --topology hydra --switches 5", "has its own number"},
		{"discovery --switches 10 --links 3", "want 9 (a tree) to 45"},
		{"discovery --timeout 0s", "--timeout 0s: want more than zero"},
		{"discovery extra", `unknown command "extra"`},
	} {
		if _, err := benchExecute(t, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("bench %s: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestBenchReportsAgainstController(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- sim.Floor(ctx, ln) }()
	defer func() { cancel(); <-done }()
	plot := filepath.Join(t.TempDir(), "latency.svg")
	for _, v := range []string{"1.0", "1.3"} {
		out, err := benchExecute(t, "throughput", "--controller", ln.Addr().String(), "--openflow", v, "--floor=false", "--switches", "2",
			"--hosts", "10", "--rounds", "2", "--duration", "150ms", "--warmup", "0s", "-o", "json", "--plot", plot)
		if err != nil {
			t.Fatal(err)
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		if ci, _ := r["ci95"].(map[string]any); len(ci) == 0 || r["conditions"] == nil || r["machine"] == nil {
			t.Errorf("OpenFlow %s: no ci95, conditions or machine in %s", v, out)
		}
		for _, k := range []string{"answers_per_s", "p50_us", "p99_us"} {
			if f, _ := r[k].(float64); f <= 0 {
				t.Errorf("OpenFlow %s: %s is %v", v, k, r[k])
			}
		}
		if r["openflow"] != v || len(r["detail"].([]any)) != 2 {
			t.Errorf("report %v", r)
		}
	}
	if svg, err := os.ReadFile(plot); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("plot: %v, %d octets", err, len(svg))
	}
}

func TestBenchReportGivesMedianOfRatios(t *testing.T) {
	subject := func(name string, rates ...float64) *benchSubject {
		s := &benchSubject{name: name, latency: hdrhistogram.New(1, 1e9, 3)}
		for _, r := range rates {
			s.rounds = append(s.rounds, benchRound{AnswersPerS: r, P50US: 1e6 / r, Counts: sim.Counts{Answered: uint64(r), ToHost: uint64(r), Wrong: 1}})
		}
		return s
	}
	c := benchConfig{mode: benchThroughput, version: openflow.V13, switches: 4, rounds: 3, duration: time.Second}
	r := newBenchReport(c, benchCPUs{0, 1}, subject("weft", 100, 900, 500), subject("floor", 1000, 1200, 10))
	if r.AnswersPerS != 500 || r.FloorRatio != 0.75 || r.AnswersPerSMin != 100 || r.AnswersPerSMax != 900 || r.Wrong != 3 || r.FloorP50 < 1.33 || r.FloorP50 > 1.34 || len(r.CI95["floor_ratio"]) != 0 /* of three rounds */ || len(r.Marks) != 1 || !r.Marks[0].Met {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.write(&out, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"OpenFlow 1.3, 4 switches", "0.75", "at least 0.45: met", "100.0% to the host's port", "3 wrong"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestBenchLinksAreChecked(t *testing.T) {
	topo, err := sim.Linear(2)
	if err != nil {
		t.Fatal(err)
	}
	var r benchDiscovery
	var got benchLinks
	text := `{"links":[{"src":{"dpid":"0000000000000001","port":1},"dst":{"dpid":"0000000000000002","port":1},"state":"up"},` +
		`{"src":{"dpid":"0000000000000002","port":1},"dst":{"dpid":"0000000000000001","port":1},"state":"one_way"},` +
		`{"src":{"dpid":"0000000000000002","port":9},"dst":{"dpid":"0000000000000001","port":1},"state":"up"}]}`
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if found := got.compare(benchWanted(topo), &r); found != 1 || r.WrongLinks != 1 {
		t.Errorf("%d found, %d wrong; want 1 and 1", found, r.WrongLinks)
	}
}

func TestBenchTailKeepsTheEnd(t *testing.T) {
	var tail testbed.Tail
	for i := range 10000 {
		fmt.Fprintf(&tail, "line %d\n", i)
	}
	if s := tail.String(); len(s) > testbed.TailSize || !strings.HasSuffix(s, "line 9999") {
		t.Errorf("%d octets that end in %q", len(s), s[max(0, len(s)-20):])
	}
}
