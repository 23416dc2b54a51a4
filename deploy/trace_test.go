package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// recorder is a tracer that traces every second packet and keeps the spans.
type recorder struct {
	mu    sync.Mutex // guards the following
	seen  uint64
	spans map[uint64][]local.Span
}

func (r *recorder) Sample() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if r.seen%2 == 0 {
		return 0
	}
	return r.seen
}

func (r *recorder) Span(s local.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans[s.Trace] = append(r.spans[s.Trace], s)
}

// TestTracesTellOfEveryStage traces packets through one process and through
// three: every traced packet has one root, and a span for each stage that it
// has seen, in order, none of them outside the root's time.
func TestTracesTellOfEveryStage(t *testing.T) {
	for name, at := range map[string][]string{
		"one process": {"southbound, discovery, hosts, firewall, forwarding", "idle", "idle", "idle"},
		"three":       {"southbound, discovery", "hosts, firewall", "idle, forwarding", "idle"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{spans: map[uint64][]local.Span{}}
			c := newCluster(t, staged(), stageSetup())
			c.tracer = r
			c.apply(placed(at...))
			c.startAll()
			s := open(c.run("southbound"), 5)
			defer s.pipeline.Close()
			s.send(142)
			s.complete(c)
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.spans) != 71 {
				t.Errorf("%d packets traced, want 71", len(r.spans))
			}
			for _, n := range slices.Sorted(maps.Keys(r.spans)) {
				checkTrace(t, n, r.spans[n])
			}
		})
	}
}

func checkTrace(t *testing.T, n uint64, spans []local.Span) {
	t.Helper()
	var root *local.Span
	stages := map[string]flow.Verdict{}
	crossings := 0
	for i, s := range spans {
		switch {
		case s.Root && root != nil:
			t.Errorf("trace %d has two roots", n)
		case s.Root:
			root = &spans[i]
		case slices.Contains(stageNames, s.Name):
			if _, twice := stages[s.Name]; twice {
				t.Errorf("trace %d has stage %s twice", n, s.Name)
			}
			stages[s.Name] = s.Verdict
		default:
			crossings++
		}
	}
	if root == nil {
		t.Fatalf("trace %d has no root: %v", n, spans)
	}
	sequence, want := n-1, 0 // of marking
	for ; want < len(stageNames)-1; want++ {
		if sequence%11 == uint64(want) || sequence%13 == uint64(want) {
			break
		}
	}
	if len(stages) != want+1 || stages[stageNames[want]] != root.Verdict {
		t.Errorf("trace %d: stages %v and verdict %v, want %s to be the last", n, stages, root.Verdict, stageNames[want])
	}
	for _, s := range spans {
		if s.Began.After(s.Ended) || s.Ended.After(root.Ended) {
			t.Errorf("trace %d: span %s", n, fmt.Sprintf("%s from %v to %v, root to %v", s.Name, s.Began, s.Ended, root.Ended))
		}
	}
}
