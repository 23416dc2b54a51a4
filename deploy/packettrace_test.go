package deploy

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestWalkNamesWhatIsMissing: a packet that went to a process which tells nothing of
// it is marked; one whose stages are all known is not.
func TestWalkNamesWhatIsMissing(t *testing.T) {
	now := time.Unix(1, 0)
	for _, told := range []bool{true, false} {
		walks := packetTraces{by: map[uint64]*packetTrace{}, now: func() time.Time { return now }, order: func() []string { return []string{"discovery", "hosts"} }}
		walks.add(&api.WatchSpans{Process: "w", Spans: []*api.WatchSpan{
			{Trace: 1, Packet: &api.WatchedPacket{Process: "w"}, Watches: []uint64{3}}, {Trace: 1, Service: "discovery", Verdict: "next"},
			{Trace: 1, To: "x", Transport: "grpc", Verdict: "done"}, {Trace: 1, End: true, Verdict: "done"},
		}})
		if told {
			walks.add(&api.WatchSpans{Process: "x", Spans: []*api.WatchSpan{{Trace: 1, Service: "hosts", Verdict: "done"}}})
		}
		walks.takeReady()
		list := walks.takeReady()
		if len(list) != 1 {
			t.Fatal(len(list), "packets")
		}
		stages, missing := 2, []string(nil)
		if !told {
			stages, missing = 1, []string{"x"}
		}
		if p := list[0].packet; len(p.Stages) != stages || !slices.Equal(p.Missing, missing) {
			t.Errorf("x tells of it: %v; %v", told, p)
		}
	}
}

// TestSpreading: no process samples packets for a watch before all have answered
// that they know it, or some rounds are over.
func TestSpreading(t *testing.T) {
	s := spreading{}
	old, young := &api.PacketWatch{Id: 1}, &api.PacketWatch{Id: 2}
	holds := func(list ...*api.PacketWatch) (held []bool) {
		got, any := s.order(list)
		for _, w := range got {
			held = append(held, w.Hold)
		}
		if any != slices.Contains(held, true) {
			t.Errorf("held is %v for %v", any, held)
		}
		return held
	}
	if !slices.Equal(holds(old), []bool{true}) {
		t.Error("a new watch is not held")
	}
	s.round(true)
	for n := range watchHolds {
		if got := holds(old, young); !slices.Equal(got, []bool{false, true}) {
			t.Errorf("round %d: held %v", n, got)
		}
		s.round(false)
	}
	if !slices.Equal(holds(old, young), []bool{false, false}) {
		t.Error("a process that does not answer holds a watch for ever")
	}
	holds(young)
	s.round(true)
	if !slices.Equal(holds(old, young), []bool{true, false}) {
		t.Error("a watch that has ended and begun again is not held")
	}
}
