package forwarding

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestRefusedTreeIsAskedForRarely: a switch that refuses the entries of the tree is
// asked again ever more rarely and named; the tree is in force on the others, the log
// says it once, and what changes is brought to it at once.
func TestRefusedTreeIsAskedForRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, fn := floodRig(t)
		var lines strings.Builder
		f.log = slog.New(slog.NewTextHandler(&lines, nil))
		fn.firm = true
		fn.refuse[1] = true
		for _, s := range f.switches {
			s.seen = true
		}
		version := uint64(1)
		f.tree = func(context.Context) (*api.Tree, error) { return &api.Tree{Version: version}, nil }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = f.run(ctx) }()
		f.noteChange()
		time.Sleep(time.Hour)
		m, err := f.get(ctx, nil)
		if err != nil || m.Committed != 1 || len(m.Refused) != 1 || !strings.Contains(m.Refused[flow.DPID(1).String()], "no room") {
			t.Error(m, err)
		}
		if fn.asked < 10 || fn.asked > 22 {
			t.Errorf("asked %d times in an hour", fn.asked)
		}
		if n := strings.Count(lines.String(), "not confirmed"); n != 1 {
			t.Errorf("%d lines in the log:\n%s", n, &lines)
		}
		before := fn.asked
		setRole(f.portTable, flow.Location{Switch: 1, Port: 40}, flow.RoleEdge)
		f.noteChange()
		time.Sleep(time.Second)
		if fn.asked == before {
			t.Error("not asked at once for other entries")
		}
		fn.mu.Lock()
		clear(fn.refuse)
		fn.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if m, _ := f.get(ctx, nil); len(m.Refused) != 0 || !f.switches[1].done {
			t.Errorf("the switch refuses no more: %v", m)
		}
		cancel()
		<-ended
	})
}
