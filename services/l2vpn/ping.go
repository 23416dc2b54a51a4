package l2vpn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/l2vpn/oam"
)

// Bounds of a ping.
const (
	pingsMost    = 100
	pingGapLeast = time.Millisecond
	pingGapMost  = 10 * time.Second
)

// ping answers PingCircuit.
func (o *observer) ping(ctx context.Context, q *api.PingCircuitRequest) (*api.PingCircuitResponse, error) {
	n, gap := int(q.GetCount()), time.Duration(q.GetIntervalUs())*time.Microsecond
	n, gap = cmp.Or(n, 5), cmp.Or(gap, 100*time.Millisecond)
	switch {
	case n > pingsMost:
		return nil, api.Errorf(codes.InvalidArgument, "count is %d: want at most %d", n, pingsMost)
	case gap < pingGapLeast || gap > pingGapMost:
		return nil, api.Errorf(codes.InvalidArgument, "interval_us is %d: want %d to %d", q.IntervalUs, pingGapLeast.Microseconds(), pingGapMost.Microseconds())
	case q.Size > 9000:
		return nil, api.Errorf(codes.InvalidArgument, "size is %d: want at most 9000", q.Size)
	case len(q.Ends) != 0 && len(q.Ends) != 2:
		return nil, api.Errorf(codes.InvalidArgument, "it names %d ends: want two, or none for all", len(q.Ends))
	}
	ways, lanes, length, err := o.waysOf(q)
	if err != nil {
		return nil, err
	}
	if len(q.Ends) > 0 {
		defer func() {
			for _, id := range lanes {
				o.p.Remove(id)
			}
		}()
	}
	gap = max(gap, time.Duration(len(lanes))*pingGapLeast) // of a vpls there may be many
	r := &api.PingCircuitResponse{}
	var pings []*oam.Ping
	for i, id := range lanes {
		g := o.p.NewPing(id, n)
		if g == nil {
			return nil, api.Errorf(codes.Aborted, "circuit %s: it has changed meanwhile; try again", q.Name)
		}
		defer o.p.End(g)
		pings = append(pings, g)
		r.Ways = append(r.Ways, ways[i])
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := func(d time.Duration) error {
		timer.Reset(d)
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return api.Errorf(codes.DeadlineExceeded, "circuit %s: probes are under way: %w", q.Name, ctx.Err())
		}
	}
	<-timer.C
	for i := range n {
		if i > 0 {
			if err := pause(gap); err != nil {
				return nil, err
			}
		}
		d := &flow.Decision{}
		for _, g := range pings {
			o.p.Send(o.now(), d, g, i, length)
		}
		if err := o.send(ctx, d); err != nil {
			return nil, err
		}
	}
	timer.Reset(probeTimeout)
	for _, g := range pings {
		select {
		case <-g.Done():
		case <-timer.C:
			timer.Reset(0)
		case <-ctx.Done():
			return nil, api.Errorf(codes.DeadlineExceeded, "circuit %s: probes are under way: %w", q.Name, ctx.Err())
		}
	}
	for i, g := range pings {
		w := r.Ways[i]
		w.Sent = uint32(n)
		for _, d := range o.p.End(g) {
			if d >= 0 {
				w.Received++
				w.DelaysUs = append(w.DelaysUs, uint32(d/1000))
			}
		}
	}
	return r, nil
}

// waysOf returns the ways of a circuit that are asked for, and their lanes: between two
// ends lanes of their own, which the caller removes. It returns, too, how long a frame is that
// carries an IP packet of the size that is asked for.
func (o *observer) waysOf(q *api.PingCircuitRequest) (ways []*api.CircuitPing, lanes []uint32, length int, err error) {
	o.follow()
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[q.Name]
	if s == nil {
		return nil, nil, 0, missing(q.Name)
	}
	c := s.circuit
	add := func(from, to int, l lane) {
		ways = append(ways, &api.CircuitPing{From: c.ends[from].String(), To: c.ends[to].String(),
			ControlUs: uint32((o.p.Control(l.From) + o.p.Control(l.To)) / 2000)})
		lanes = append(lanes, l.id)
	}
	if len(q.Ends) > 0 {
		if err := o.between(s, q.Ends, add); err != nil {
			return nil, nil, 0, err
		}
		return ways, lanes, probeLength(c, int(q.Size)), nil
	}
	for i := range c.ends {
		for far := range c.ends {
			if l, there := o.lanes[way{q.Name, i, far}]; there {
				add(i, far, l)
			}
		}
	}
	if len(lanes) == 0 {
		return nil, nil, 0, unprobed(s, c.switches())
	}
	return ways, lanes, probeLength(c, int(q.Size)), nil
}

// between calls add with lanes of their own between two ends, both ways. It is called with
// b.mu held.
func (o *observer) between(s *status, names []string, add func(from, to int, l lane)) error {
	c := s.circuit
	var at [2]int
	for i, text := range names {
		e, err := parseEnd(text)
		if err != nil {
			return api.Errorf(codes.InvalidArgument, "%w", err)
		}
		if at[i] = slices.Index(c.ends, e); at[i] < 0 {
			return api.Errorf(codes.InvalidArgument, "circuit %s has no end %v; it has %s", c.Name, e, strings.Join(c.Ends, ", "))
		}
	}
	there, ok := o.laneOf(s, at[0], at[1])
	back, too := o.laneOf(s, at[1], at[0])
	if !ok || !too {
		return unprobed(s, []flow.DPID{c.ends[at[0]].at.Switch, c.ends[at[1]].at.Switch})
	}
	add(at[0], at[1], lane{there, o.p.Add(there)})
	add(at[1], at[0], lane{back, o.p.Add(back)})
	return nil
}

// unprobed returns why there is nothing to be probed between ends on some switches.
func unprobed(s *status, switches []flow.DPID) error {
	why := "its ends are on one switch: nothing is between them"
	if slices.Min(switches) != slices.Max(switches) {
		why = "it is " + s.state + ", " + s.reason
	}
	return api.Errorf(codes.FailedPrecondition, "circuit %s cannot be probed: %s", s.circuit.Name, why)
}

// probeLength returns how long a probe is that takes as much room as a customer's
// frame with an IP packet of a size: what the circuit carries of it, covered by a label
// and an Ethernet header.
func probeLength(c *circuit, size int) int {
	if size == 0 {
		return oam.FrameMin
	}
	return max(oam.FrameMin, 14+labelOctets+c.header()+size)
}
