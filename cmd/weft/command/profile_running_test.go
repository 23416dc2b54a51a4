package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/weft-sdn/weft/cmd/weft/profiler"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/plan"
)

func TestProfileOfARunningController(t *testing.T) {
	r := startUp(t, run.UpOptions{})
	_, hosts := connect(t, r)
	testwait.Until(t, "the switches are there", func() bool {
		_, out, _ := weftCommand("get", "switches")
		return strings.Count(out, " connected ") >= 3
	})
	idle := filepath.Join(t.TempDir(), "idle.yaml")
	var status int
	var out, errs string
	testwait.Until(t, "nothing changes any more", func() bool {
		if status, out, errs = weftCommand("profile", "--seconds", "0.3"); status != 0 {
			t.Fatalf("status %d: %s", status, errs)
		}
		p, err := plan.ParseProfile("out", []byte(out))
		if err != nil {
			t.Fatal(err)
		}
		return p.Of("southbound").Idle.Known
	})
	if err := os.WriteFile(idle, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errs, "per_packet is missing") || !strings.Contains(errs, "no delays of transports") {
		t.Errorf("it does not say what is missing: %s", errs)
	}
	ctx, stop := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	t.Cleanup(func() { stop(); sending.Wait() })
	sending.Go(func() {
		for i := byte(1); ctx.Err() == nil; i = i%3 + 1 {
			hosts[i-1].Send(announce(i))
			time.Sleep(time.Millisecond)
		}
	})
	var p *plan.Profile
	testwait.Until(t, "packets are counted", func() bool {
		status, out, errs := weftCommand("profile", "--seconds", "0.3", "--base", idle)
		if status != 0 {
			t.Fatalf("status %d: %s", status, errs)
		}
		var err error
		if p, err = plan.ParseProfile("out", []byte(out)); err != nil {
			t.Fatal(err)
		}
		return p.PacketIns > 20 && p.Changes == 0
	})
	southbound, seen := p.Of("southbound"), p.Of("hosts").Packets
	switch {
	case p.Switches != 3:
		t.Errorf("of %d switches", p.Switches)
	case !southbound.Idle.Known || !southbound.PerPacket.Known || !southbound.Memory.Known || southbound.PerChange.Known:
		t.Errorf("southbound: %+v", southbound)
	case !seen.Known || seen.Value <= 0 || seen.Value > p.PacketIns: // those under way have not come to hosts yet
		t.Errorf("hosts has seen %v of %v packets", seen, p.PacketIns)
	case !p.Process.Memory.Known || p.Process.Memory.Value < 1<<20:
		t.Errorf("the process: %+v", p.Process)
	}
	status, out, errs = weftCommand("profile", "--seconds", "0.2", "-o", "json")
	var generic map[string]any
	if err := json.Unmarshal([]byte(out), &generic); status != 0 || err != nil || generic["services"] == nil {
		t.Errorf("as JSON: status %d, %v, %s", status, err, errs)
	}
	if status, _, errs := weftCommand("profile", "--seconds", "9999"); status != 2 || !strings.Contains(errs, "want 0.2 to 3600") {
		t.Errorf("status %d: %s", status, errs)
	}
}

func TestSamplesAreChargedToTheInnermostService(t *testing.T) {
	stack := func(functions ...string) *profile.Sample {
		s := &profile.Sample{}
		for _, name := range functions {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		return s
	}
	for _, c := range []struct {
		want  string
		stack *profile.Sample
	}{
		{"forwarding", stack("runtime.mallocgc", "github.com/weft-sdn/weft/services/forwarding.(*forwarder).stage", "github.com/weft-sdn/weft/deploy.(*walk).run", "github.com/weft-sdn/weft/services/southbound.(*session).packetIn")},
		{"paths", stack("github.com/weft-sdn/weft/services/paths.(*convergence).run.func1")},
		{"southbound", stack("github.com/weft-sdn/weft/openflow.AppendFlowMod", "github.com/weft-sdn/weft/deploy.x")},
		{"stats", stack("github.com/weft-sdn/weft/openflow.Decode", "github.com/weft-sdn/weft/services/stats.read")},
		{"", stack("runtime.gcBgMarkWorker")},
		{"", stack("github.com/weft-sdn/weft/services.All")},
		{"", stack()},
	} {
		if got := profiler.ServiceOf(c.stack); got != c.want {
			t.Errorf("charged to %q, not %q", got, c.want)
		}
	}
}
