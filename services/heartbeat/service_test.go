package heartbeat

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// southbound is what the service has of one: the last order, and what it has
// counted.
type southbound struct {
	mu    sync.Mutex // guards what follows
	order *api.OrderBeatsRequest
	beats uint64
}

// ordered returns the last order.
func (s *southbound) ordered() *api.OrderBeatsRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order
}

// counts returns counts that grow: every second beat is missed.
func (s *southbound) counts() *api.BeatCounts {
	s.beats += 2
	return &api.BeatCounts{Since: 1, Beats: s.beats, Missed: s.beats / 2, Buckets: buckets(map[int]*api.BeatBucket{2: {Count: s.beats / 2, SumUs: 200 * s.beats}})}
}

// fake serves the southbound's methods.
func fake(h *wefttest.Harness) *southbound {
	s := &southbound{}
	wefttest.Fake(h, api.OrderBeats, func(_ context.Context, r *api.OrderBeatsRequest) (*api.OrderBeatsResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order = r
		return &api.OrderBeatsResponse{Counts: s.counts()}, nil
	})
	wefttest.Fake(h, api.ListBeats, func(_ context.Context, r *api.ListBeatsRequest) (*api.ListBeatsResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Dpid != "" {
			return nil, api.Errorf(5, "switch %s is not connected", r.Dpid)
		}
		return &api.ListBeatsResponse{Switches: []*api.SwitchHeartbeat{{Dpid: "1", State: "alive", P99Us: 1}, {Dpid: "2", State: "lost"}}, Counts: s.counts()}, nil
	})
	return s
}

// TestService orders, tells by events what comes of it, lists and counts, again
// after a restart.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("rate: 20\nlost_after: 2\n")
		s := fake(h)
		h.Start()
		for range 2 {
			wefttest.Publish(h, api.BeatChangedEvent, &api.BeatChanged{Dpid: "1", State: "alive"})
			wefttest.Publish(h, api.BeatChangedEvent, &api.BeatChanged{Dpid: "2", State: "lost", Reason: "no answer"})
			wefttest.Await(h, api.HeartbeatChangedEvent, func(e *api.HeartbeatChanged) bool { return e.Dpid == "2" && e.State == "lost" && e.Reason != "" })
			resp, err := wefttest.Call(h, api.ListHeartbeats, &api.ListHeartbeatsRequest{})
			if err != nil || len(resp.Switches) != 2 || resp.Switches[1].State != "lost" || resp.Rate != 20 || resp.DeadlineUs != 50_000 {
				t.Errorf("%v, %v", resp, err)
			}
			if _, err := wefttest.Call(h, api.ListHeartbeats, &api.ListHeartbeatsRequest{Dpid: "7"}); api.KindOf(err) != 5 {
				t.Errorf("a switch that is not there: %v", err)
			}
			for end := time.Now().Add(testwait.Limit); h.Metric("missed_total") == 0 || h.Metric("beats_total") == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("not counted")
				}
			}
			if o := s.ordered(); o.GetIntervalUs() != 50_000 || o.GetLostAfter() != 2 {
				t.Errorf("ordered: %v", o)
			}
			if h.Metric("switches", "state", "lost") != 1 || h.Metric("switches", "state", "alive") != 1 {
				t.Error("states are not counted")
			}
			h.Restart()
		}
	})
}
