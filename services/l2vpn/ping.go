package l2vpn

import (
	"cmp"
	"context"
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
	}
	ways, lanes, length, err := o.waysOf(q.GetName(), int(q.Size))
	if err != nil {
		return nil, err
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

// waysOf returns the ways of a circuit and their lanes, and how long a frame is
// that carries an IP packet of a size.
func (o *observer) waysOf(name string, size int) (ways []*api.CircuitPing, lanes []uint32, length int, err error) {
	o.follow()
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[name]
	if s == nil {
		return nil, nil, 0, missing(name)
	}
	for i, a := range s.circuit.ends {
		for far, z := range s.circuit.ends {
			if l, there := o.lanes[way{name, i, far}]; there {
				ways = append(ways, &api.CircuitPing{From: a.String(), To: z.String(),
					ControlUs: uint32((o.p.Control(l.From) + o.p.Control(l.To)) / 2000)})
				lanes = append(lanes, l.id)
			}
		}
	}
	if len(lanes) == 0 {
		why := "its ends are on one switch: nothing is between them"
		if len(s.circuit.switches()) > 1 {
			why = "it is " + s.state + ", " + s.reason
		}
		return nil, nil, 0, api.Errorf(codes.FailedPrecondition, "circuit %s cannot be probed: %s", name, why)
	}
	return ways, lanes, probeLength(s.circuit, size), nil
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
