package l2vpn

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/l2vpn/cfm"
)

// crowdedMEPs returns an error if a circuit has more maintenance end points than there may be beside those of
// others. It is called with mu held.
func crowdedMEPs(b *store, c *circuit) error {
	n := mepFrames(c)
	for name := range b.maintained {
		if name != c.Name {
			n += mepFrames(b.status[name].circuit)
		}
	}
	if most := b.cfg.ProbeRate / mepParts * 60; len(c.meps) > 0 && n > most {
		return api.Errorf(codes.ResourceExhausted, "circuit %s: mep: all maintenance end points would send %d frames a second, and may send %d: want longer intervals, or raise l2vpn.probe_rate",
			c.Name, n/60, most/60)
	}
	return nil
}

// A maintenance has the maintenance end points send, and hears what they are sent.
type maintenance struct {
	b       *store
	control func(flow.DPID) int64 // how long a frame takes to a switch and back, ns
}

// due appends the frames that are to be sent now.
func (o *maintenance) due(d *flow.Decision) {
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.maintained {
		s := b.status[name]
		for e, m := range s.meps {
			if s.phase != inForce || b.net.unusable(e.at) != "" {
				continue
			}
			for _, frame := range m.Due(b.now()) {
				e.emit(d, frame)
			}
		}
	}
}

// takes takes a frame for a maintenance end point, and answers it; it returns false for other packets.
func (o *maintenance) takes(in *flow.PacketIn, d *flow.Decision) bool {
	tags, kind, body := frameTags(in.Data)
	if kind != cfm.EthType || in.Cookie.Owner() != flow.OwnerCircuits {
		return false
	}
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	for e, names := range b.taken[at.Switch][at.Port] {
		for name := range names {
			m := b.status[name].meps[e]
			if m == nil || !e.carries(tags, b.taken.vlans(at)) {
				continue
			}
			if answer := m.Receive(b.now(), in.Key.EthSrc, in.Key.EthDst, body, o.control(in.Switch)); answer != nil {
				e.emit(d, answer)
			}
		}
	}
	return true
}

// judge has the circuits assessed whose maintenance end points hear something else than before.
func (o *maintenance) judge() {
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.maintained {
		s := b.status[name]
		if why := s.unheard(); why != s.defect {
			s.defect = why
			b.assess(s)
		}
	}
}

// run has maintenance end points send, and judges what they hear, until ctx ends.
func (o *maintenance) run(ctx context.Context, send func(context.Context, *flow.Decision) error) {
	probe(ctx, mepTick, o.judge, o.due, send)
}
