package local

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// sent counts the messages that a service sends to others, for profiles.
type sent struct {
	calls   map[string]*calls         // by method; never written to
	events  map[string]*atomic.Uint64 // by subject; never written to
	packets Work                      // that its stage has processed
}

// calls counts the calls of a method by one service.
type calls struct {
	all      atomic.Uint64
	here     Work // those that this process answers
	tally    atomic.Pointer[Tally]
	crossing func() *Tally // of those, made with the first
}

// begun is a call that this process answers.
type begun struct {
	at     time.Time // zero if it is not measured
	chosen bool      // it is measured as work, too
}

// begin counts a call that this process answers.
func (c *calls) begin() (b begun) {
	if c == nil {
		return b
	}
	t := c.tally.Load()
	if t == nil {
		t = c.crossing()
		c.tally.Store(t)
	}
	b.chosen = c.here.arrive()
	if t.count() || b.chosen {
		b.at = time.Now()
	}
	return b
}

// end ends a call that began.
func (c *calls) end(b begun) {
	if b.at.IsZero() {
		return
	}
	d := time.Since(b.at)
	c.tally.Load().Took(d, 1)
	if b.chosen {
		c.here.took(d)
	}
}

func newSent(spec *weft.Spec, all *Crossings) *sent {
	s := &sent{calls: map[string]*calls{}, events: map[string]*atomic.Uint64{}}
	for _, m := range spec.Calls {
		owner, _, _ := strings.Cut(m.MethodName(), ".")
		s.calls[m.MethodName()] = &calls{crossing: func() *Tally {
			return all.held(CrossingOf{From: spec.Name, To: owner, Kind: sentCall, Name: m.MethodName(), Transport: plan.Inproc})
		}}
	}
	for _, p := range spec.Publishes {
		s.events[p.SubjectName()] = new(atomic.Uint64)
	}
	return s
}

// message identifies a kind of message between two services.
type message struct{ from, to, name, kind string }

// The kinds, as in api.ServiceTraffic.
const (
	sentCall   = "call"
	sentEvent  = "event"
	sentPacket = "packet"
)

// Traffic counts messages between services.
type Traffic map[message]uint64

// Traffic returns what the services of this process have sent to those of some
// specs, and the packets that their stages have processed, since they began. An
// event counts once for each service that subscribes to it.
func (w *Worker) Traffic(specs []weft.Spec) Traffic {
	t := Traffic{}
	for _, s := range w.Running().Services {
		t[message{"", s.Spec.Name, "", sentPacket}] = s.sent.packets.Count()
		for _, other := range specs {
			for _, m := range other.Serves {
				if c := s.sent.calls[m.MethodName()]; c != nil {
					t[message{s.Spec.Name, other.Name, m.MethodName(), sentCall}] = c.all.Load()
				}
			}
			for _, sub := range other.Wants() {
				if c := s.sent.events[sub.SubjectName()]; c != nil && other.Name != s.Spec.Name {
					t[message{s.Spec.Name, other.Name, sub.SubjectName(), sentEvent}] = c.Load()
				}
			}
		}
	}
	return t
}

// Since returns what was sent after an earlier count, in order.
func (t Traffic) Since(before Traffic) (list []*api.ServiceTraffic) {
	for m, n := range t {
		if n -= min(before[m], n); n > 0 {
			list = append(list, &api.ServiceTraffic{From: m.from, To: m.to, Name: m.name, Kind: m.kind, Count: n})
		}
	}
	slices.SortFunc(list, func(a, b *api.ServiceTraffic) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Name, b.Name))
	})
	return list
}
