package flowrules

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// directions records who directs packets to its connections (api.DirectPackets).
// If several ask for a switch, the one with the lowest number gets its packets.
type directions struct {
	mu   sync.Mutex // guards what follows
	of   map[asker]*direction
	wake chan struct{} // holds one: a time has changed
}

// asker is one run of a process that asks, with the number of its connections.
type asker struct {
	number uint16
	run    uint64
}

// direction is one request, and until when it holds.
type direction struct {
	revision uint64
	until    time.Time
	switches map[flow.DPID]bool
}

// Bounds of the askers, and of the switches that each may ask for.
const (
	askersMost   = 1000
	directedMost = 100_000
)

func newDirections() *directions {
	return &directions{of: map[asker]*direction{}, wake: make(chan struct{}, 1)}
}

// ask takes a request. unknown means that its list is needed. It returns the
// switches that the request concerns or concerned, nil if nothing has changed.
func (d *directions) ask(req *api.DirectPacketsRequest, switches map[flow.DPID]bool, now time.Time) (concerned []flow.DPID, unknown bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	who := asker{uint16(req.GetController()), req.GetRun()}
	have := d.of[who]
	known := have != nil && have.revision == req.GetRevision()
	until := now.Add(time.Duration(req.GetMilliseconds()) * time.Millisecond)
	switch {
	case known:
		have.until = until
	case req.GetSame():
		return nil, true, nil
	case have != nil && have.revision > req.GetRevision():
		return nil, false, nil // overtaken by a later request
	case have == nil && len(d.of) >= askersMost:
		return nil, false, api.Errorf(codes.ResourceExhausted, "%d others take packets already", len(d.of))
	default:
		concerned = differing(have, switches)
		d.of[who] = &direction{revision: req.GetRevision(), until: until, switches: switches}
	}
	object.Notify(d.wake)
	return concerned, false, nil
}

// differing returns the switches that are in only one of two lists.
func differing(have *direction, want map[flow.DPID]bool) (list []flow.DPID) {
	for sw := range want {
		if have == nil || !have.switches[sw] {
			list = append(list, sw)
		}
	}
	if have != nil {
		for sw := range have.switches {
			if !want[sw] {
				list = append(list, sw)
			}
		}
	}
	return list
}

// number returns the connections to which a switch sends packets; 0 is the
// connections without a number.
func (d *directions) number(sw flow.DPID) uint16 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var best uint16
	for who, x := range d.of {
		if x.switches[sw] && (best == 0 || who.number < best) {
			best = who.number
		}
	}
	return best
}

// expire ends requests that were not repeated. It returns the switches that they
// directed, and when the next request may lapse; zero is never.
func (d *directions) expire(now time.Time) (concerned []flow.DPID, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for who, x := range d.of {
		if now.Before(x.until) {
			next = earlier(next, x.until)
			continue
		}
		concerned = append(concerned, differing(x, nil)...)
		delete(d.of, who)
	}
	return concerned, next
}

// DirectPackets answers the call.
func (r *Rules) DirectPackets(_ context.Context, req *api.DirectPacketsRequest) (*api.DirectPacketsResponse, error) {
	switch n, ms := req.GetController(), req.GetMilliseconds(); {
	case n == 0 || n > 0xffff:
		return nil, api.Errorf(codes.InvalidArgument, "controller %d: want 1 to 65535", n)
	case ms < 50 || ms > 60_000:
		return nil, api.Errorf(codes.InvalidArgument, "milliseconds %d: want 50 to 60000", ms)
	case len(req.GetDpids()) > directedMost:
		return nil, api.Errorf(codes.InvalidArgument, "%d switches: want at most %d", len(req.GetDpids()), directedMost)
	}
	switches := make(map[flow.DPID]bool, len(req.GetDpids()))
	for _, text := range req.GetDpids() {
		sw, err := flow.ParseDPID(text)
		if err != nil {
			return nil, invalid(err)
		}
		switches[sw] = true
	}
	concerned, unknown, err := r.directions.ask(req, switches, time.Now())
	if err != nil || unknown {
		return &api.DirectPacketsResponse{Unknown: unknown}, err
	}
	r.direct(concerned)
	resp := &api.DirectPacketsResponse{}
	if !req.GetSame() {
		for _, text := range req.GetDpids() {
			sw, _ := flow.ParseDPID(text) // checked above
			if w := r.known(sw); w != nil && w.refusesDirect() {
				resp.Refused = append(resp.Refused, sw.String())
			}
		}
	}
	return resp, nil
}

// refusesDirect reports whether the switch has refused to direct packets.
func (w *worker) refusesDirect() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.undirectable
}

// direct directs the packets of switches to their current connections.
func (r *Rules) direct(switches []flow.DPID) {
	for _, sw := range switches {
		w := r.known(sw)
		if w == nil {
			continue
		}
		w.mu.Lock()
		l := w.ledger
		changed := l.direct(r.directions.number(sw), uint8(r.generation.Add(1)), time.Now())
		w.mu.Unlock()
		if changed {
			w.wake()
		}
	}
}

// watch directs packets back when a request has not been repeated, until ctx
// ends.
func (r *Rules) watch(ctx context.Context) {
	d := r.directions
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		lapsed, next := d.expire(time.Now())
		if len(lapsed) > 0 {
			r.count.lapsed.Add(float64(len(lapsed)))
			r.log.Warn("packets go to the southbound again: who took them has not said for too long that it is there", "switches", len(lapsed))
			r.direct(lapsed)
		}
		var alarm <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			alarm = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-alarm:
		}
	}
}

// direct sends the packets of the switch to the connections with a number. It
// overwrites the entries, so that none is missing meanwhile. It reports whether
// there is anything to do.
func (l *ledger) direct(number uint16, generation uint8, now time.Time) bool {
	if l.undirectable {
		number = 0
	}
	from := l.number
	if number == from {
		return false
	}
	l.number = number
	changed := false
	for k, old := range l.rules {
		if !directable(old.owner()) {
			continue
		}
		e, ok := redirectEntry(old.entry(), from, number)
		if !ok {
			continue
		}
		e.Cookie = flow.NewCookie(old.owner(), generation, e.Cookie.ID())
		r := newRule(&e, now)
		r.added, r.order = old.added, old.order
		l.removeRule(k, old)
		l.put(r, now)
		changed = true
	}
	return changed
}

// refusesNumbers handles a switch that refuses one of our entries because it
// names a number: its packets go where they went before.
func (l *ledger) refusesNumbers(r *rule, now time.Time) bool {
	if l.number == 0 || !directable(r.owner()) {
		return false
	}
	if _, names := redirectEntry(r.entry(), l.number, 0); !names {
		return false
	}
	l.undirectable = true
	l.direct(0, uint8(r.cookie.Generation()+1), now)
	return true
}
