package deploy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// Bounds of what is kept of packets.
const (
	watchLate  = 12 * time.Second // after so long a packet is reported without its end
	watchWalks = 4096             // packets whose way is not known whole yet
	watchSpans = 64               // of a packet
)

// packetTraces holds the traces of packets that are not complete yet.
type packetTraces struct {
	by    map[uint64]*packetTrace // by trace
	now   func() time.Time
	order func() []string // of the stages
}

// packetTrace is the known part of a packet's way through the controller.
type packetTrace struct {
	packet  *api.WatchedPacket // nil until the first span has arrived
	watches []uint64
	read    int64
	spans   []span
	since   time.Time
	ended   bool
	settled bool // all processes have been asked again since it was complete
}

// span is a part of a trace, and the process that reported it.
type span struct {
	*api.WatchSpan
	process string
}

// add adds the spans that a process has reported.
func (l *packetTraces) add(answer *api.WatchSpans) {
	for _, s := range answer.Spans {
		w := l.by[s.Trace]
		if w == nil {
			if len(l.by) >= watchWalks {
				continue
			}
			w = &packetTrace{since: l.now()}
			l.by[s.Trace] = w
		}
		switch {
		case s.Packet != nil:
			w.packet, w.watches, w.read = proto.CloneOf(s.Packet), s.Watches, s.Began
		case len(w.spans) < watchSpans || s.End:
			w.spans = append(w.spans, span{s, answer.Process})
			w.ended = w.ended || s.End
		}
	}
}

// outstanding returns the number of missing answers of each switch that the packet
// changes, and the number of stages that hold the packet.
func (w *packetTrace) outstanding() (answers map[uint64]int, kept int) {
	answers = map[uint64]int{}
	first := map[uint64]bool{} // of the decision of the pipeline
	for _, s := range w.spans {
		for _, sw := range s.Programs {
			if s.Later || !first[sw] {
				answers[sw]++
				first[sw] = first[sw] || !s.Later
			}
		}
		if s.Kept {
			kept++
		}
		if s.Later {
			kept--
		}
	}
	for _, s := range w.spans {
		if len(s.Entries) > 0 {
			if sw, err := flow.ParseDPID(s.Entries[0].Dpid); err == nil {
				answers[uint64(sw)]--
			}
		}
	}
	return answers, kept
}

// isComplete reports whether the packet's whole way is known.
func (w *packetTrace) isComplete() bool {
	if !w.ended {
		return false
	}
	answers, kept := w.outstanding()
	for _, n := range answers {
		if n > 0 {
			return false
		}
	}
	return kept <= 0
}

// takeReady removes and returns the traces that are complete and those that take too
// long. Another process may report its part only when it is asked again after the
// end.
func (l *packetTraces) takeReady() (list []*packetTrace) {
	now := l.now()
	for trace, w := range l.by {
		late := now.Sub(w.since) > watchLate
		if !late && (w.packet == nil || !w.settled) {
			w.settled = w.isComplete()
			continue
		}
		delete(l.by, trace)
		if w.packet != nil {
			w.join(l.order())
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b *packetTrace) int { return cmp.Compare(a.read, b.read) })
	return list
}

// join makes the packet's stages of the spans, in the order of the pipeline: the
// clocks of machines may differ.
func (w *packetTrace) join(order []string) {
	by := map[string]string{w.packet.Process: plan.Inproc} // transports
	for _, s := range w.spans {
		if s.To != "" && by[s.To] == "" {
			by[s.To] = s.Transport
		}
	}
	micros := func(ns int64) float64 { return float64(ns) / 1000 }
	for _, s := range w.spans {
		switch {
		case s.End && s.process == w.packet.Process:
			w.packet.Verdict, w.packet.DurationUs = s.Verdict, micros(s.Ended-w.read)
		case len(s.Entries) > 0:
			for _, e := range s.Entries {
				e = proto.CloneOf(e)
				e.AtUs = micros(s.Ended - w.read)
				w.packet.Entries = append(w.packet.Entries, e)
			}
		case s.Service != "":
			w.packet.Stages = append(w.packet.Stages, &api.WatchedStage{
				Service: s.Service, Process: s.process, Transport: by[s.process],
				StartUs: micros(s.Began - w.read), DurationUs: micros(s.Ended - s.Began), Verdict: s.Verdict, Operations: s.Operations,
			})
		}
	}
	w.packet.Missing = w.missing()
	answers, _ := w.outstanding()
	for sw, n := range answers {
		if n > 0 {
			w.packet.Entries = append(w.packet.Entries, &api.WatchedEntry{
				Dpid: flow.DPID(sw).String(), State: local.StateLate, AtUs: micros(int64(watchLate)),
				Error: fmt.Sprintf("nothing is known of what the switch says, %v after the packet", watchLate),
			})
		}
	}
	slices.SortStableFunc(w.packet.Entries, func(a, b *api.WatchedEntry) int {
		return cmp.Or(cmp.Compare(a.AtUs, b.AtUs), cmp.Compare(a.Dpid, b.Dpid))
	})
	place := func(s *api.WatchedStage) int { // what was decided later comes after the pipeline
		i := slices.Index(order, s.Service)
		if s.Verdict == local.VerdictLater {
			i += len(order) + 1
		}
		return i
	}
	slices.SortStableFunc(w.packet.Stages, func(a, b *api.WatchedStage) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.StartUs, b.StartUs))
	})
}

// missing returns the processes that the packet went to and that told nothing of it:
// they did not know yet that it was watched, or do not answer.
func (w *packetTrace) missing() (list []string) {
	told := map[string]bool{}
	for _, s := range w.spans {
		told[s.process] = true
	}
	for _, s := range w.spans {
		if s.To != "" && !told[s.To] && !slices.Contains(list, s.To) {
			list = append(list, s.To)
		}
	}
	slices.Sort(list)
	return list
}
