package forwarding

import (
	"context"
	"net/netip"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// sharing queues what this instance has programmed until it is sent to the
// others. The packet path only adds to the queue.
type sharing struct {
	wake chan struct{}

	mu       sync.Mutex // guards all below
	queue    []shared
	flooding *api.Flooding
}

// shared is a route that was programmed, or removed at the time gone if that is
// not 0.
type shared struct {
	r    *route
	gone int64 // ns
}

// sharedMost bounds the routes in one message.
const sharedMost = 256

func newSharing() *sharing { return &sharing{wake: make(chan struct{}, 1)} }

func (s *sharing) add(one shared) {
	s.mu.Lock()
	s.queue = append(s.queue, one)
	first := len(s.queue) == 1
	s.mu.Unlock()
	if first {
		s.ring()
	}
}

func (s *sharing) ring() { object.Notify(s.wake) }

// take returns the next message, nil if there is none.
func (s *sharing) take() *api.RoutesShared {
	s.mu.Lock()
	list := s.queue[:min(len(s.queue), sharedMost)]
	s.queue = s.queue[len(list):]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	m := &api.RoutesShared{Flooding: s.flooding}
	s.flooding = nil
	s.mu.Unlock()
	if len(list) == 0 && m.Flooding == nil {
		return nil
	}
	for _, one := range list {
		m.Routes = append(m.Routes, one.record())
	}
	return m
}

// run sends the messages until ctx ends.
func (s *sharing) run(ctx context.Context, publish func(*api.RoutesShared)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		for m := s.take(); m != nil && ctx.Err() == nil; m = s.take() {
			publish(m)
		}
	}
}

// record returns the message for a route.
func (s shared) record() *api.RouteRecord {
	r := s.r
	m := &api.RouteRecord{
		Src: r.src.Uint64(), Dst: r.dst.Uint64(), Vlan: uint32(r.vlan), Since: r.since, Sent: r.sent, Reroutes: r.moved,
	}
	if r.ip.IsValid() {
		m.Ip = r.ip.AsSlice()
	}
	if s.gone != 0 {
		m.Sent = s.gone
		return m
	}
	m.Hops = recordHops(r.hops)
	for _, a := range r.rewrite {
		m.Rewrite = append(m.Rewrite, a.String())
	}
	for _, alt := range r.detours {
		m.Detours = append(m.Detours, &api.RouteDetour{OutPort: uint32(alt.out), Hops: recordHops(alt.hops)})
	}
	return m
}

func recordHops(hops []hop) []*api.RouteHop {
	list := make([]*api.RouteHop, len(hops))
	for i, h := range hops {
		list[i] = &api.RouteHop{Dpid: uint64(h.sw), InPort: uint32(h.in), OutPort: uint32(h.out)}
	}
	return list
}

// routeOf decodes a record. If it cannot read the record of another version, it
// returns a route without hops, which counts as removed.
func routeOf(m *api.RouteRecord) *route {
	r := &route{
		pair: pair{src: flow.MACFrom(m.Src), dst: flow.MACFrom(m.Dst), vlan: uint16(m.Vlan)},
		hops: hopsOfRecord(m.Hops), since: m.Since, sent: m.Sent, moved: m.Reroutes,
	}
	r.ip, _ = netip.AddrFromSlice(m.Ip)
	rewrite, err := flow.ParseActionStrings(m.Rewrite)
	if err != nil {
		r.hops = nil
	}
	r.rewrite = rewrite
	for _, alt := range m.Detours {
		r.detours = append(r.detours, detour{out: flow.Port(alt.OutPort), hops: hopsOfRecord(alt.Hops)})
	}
	if len(r.detours) != 0 && len(r.detours) != len(r.hops) {
		r.detours = nil
	}
	return r
}

func hopsOfRecord(list []*api.RouteHop) []hop {
	if len(list) == 0 {
		return nil
	}
	hops := make([]hop, len(list))
	for i, h := range list {
		hops[i] = hop{flow.DPID(h.Dpid), flow.Port(h.InPort), flow.Port(h.OutPort)}
	}
	return hops
}
