package deploy

import (
	"sync/atomic"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// sent counts the messages that a service sends to others, for profiles.
type sent struct {
	calls   map[string]*atomic.Uint64 // by method; never written to
	events  map[string]*atomic.Uint64 // by subject; never written to
	packets atomic.Uint64             // that its stage has processed
}

func newSent(spec *weft.Spec) *sent {
	s := &sent{calls: map[string]*atomic.Uint64{}, events: map[string]*atomic.Uint64{}}
	for _, m := range spec.Calls {
		s.calls[m.MethodName()] = new(atomic.Uint64)
	}
	for _, p := range spec.Publishes {
		s.events[p.SubjectName()] = new(atomic.Uint64)
	}
	return s
}

// counted adds one to the count of a name.
func counted(by map[string]*atomic.Uint64, name string) {
	if n := by[name]; n != nil {
		n.Add(1)
	}
}

// trafficKey identifies a count.
type trafficKey struct{ from, to, name, kind string }

// The kinds of messages between services, as in api.ServiceTraffic.
const (
	sentCall   = "call"
	sentEvent  = "event"
	sentPacket = "packet"
)

// sentSoFar returns what the services of this process have sent to those of some
// specs, and the packets that their stages have processed, since they began. An
// event counts once for each service that subscribes to it.
func (w *Worker) sentSoFar(specs []weft.Spec) map[trafficKey]*api.ServiceTraffic {
	all := map[trafficKey]*api.ServiceTraffic{}
	add := func(from, to, name, kind string, count uint64) {
		if count > 0 {
			all[trafficKey{from, to, name, kind}] = &api.ServiceTraffic{From: from, To: to, Name: name, Kind: kind, Count: count}
		}
	}
	for _, s := range w.running().services {
		add("", s.spec.Name, "", sentPacket, s.sent.packets.Load())
		for _, other := range specs {
			for _, m := range other.Serves {
				if c := s.sent.calls[m.MethodName()]; c != nil {
					add(s.spec.Name, other.Name, m.MethodName(), sentCall, c.Load())
				}
			}
			for _, sub := range other.Subscribes {
				if c := s.sent.events[sub.SubjectName()]; c != nil && other.Name != s.spec.Name {
					add(s.spec.Name, other.Name, sub.SubjectName(), sentEvent, c.Load())
				}
			}
		}
	}
	return all
}
