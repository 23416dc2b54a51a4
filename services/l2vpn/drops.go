package l2vpn

import (
	"context"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A holder is whose a meter is.
type holder struct {
	s  *circuitCounters
	at end
}

// metered returns the meters of circuits at a switch: of the one with a number, or, of
// 0, of all. It is called with mu held.
func (p *poller) metered(sw flow.DPID, id uint32) map[uint32]holder {
	list := map[uint32]holder{}
	for name := range p.b.at[sw] {
		s := p.b.status[name]
		if id != 0 && s.circuit.Id != id {
			continue
		}
		for i, e := range s.circuit.ends {
			if e.at.Switch != sw {
				continue
			}
			for _, m := range s.circuit.metersOf(i) {
				list[m] = holder{&s.circuitCounters, e}
			}
		}
	}
	return list
}

// single is how many meters of a switch are read one by one; of more all are read.
const single = 4

// readMeters reads what the meters of circuits at a switch have dropped, as readAll does.
func (p *poller) readMeters(ctx context.Context, sw flow.DPID, id uint32) {
	p.b.mu.Lock()
	list := p.metered(sw, id)
	p.b.mu.Unlock()
	which := []uint32{flow.MeterAll}
	if len(list) <= single {
		which = nil
		for m := range list {
			which = append(which, m)
		}
	}
	for _, m := range which {
		stats, err := p.read.meters(ctx, sw, m)
		if err != nil {
			continue // it may not be there yet
		}
		p.droppedBy(sw, id, stats)
	}
}

// droppedBy takes over what meters of a switch have dropped.
func (p *poller) droppedBy(sw flow.DPID, id uint32, stats []*api.MeterStats) {
	b := p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	list := p.metered(sw, id)
	for _, x := range stats {
		h, is := list[x.Meter]
		if !is {
			continue
		}
		var n amount
		if last := len(x.Bands) - 1; last >= 0 { // those before mark
			n = amount{x.Bands[last].Packets, x.Bands[last].Bytes}
		}
		b.counters.saw(h.s, counter{at: h.at, kind: dropped, meter: x.Meter}, n)
	}
}
