package l2vpn

import (
	"context"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// metersOf returns the meters of an end.
func (c *circuit) metersOf(i int) []uint32 {
	return slices.DeleteFunc([]uint32{c.Members[i].Meter, c.Members[i].StormMeter}, func(m uint32) bool { return m == 0 })
}

// A holder is whose a meter is.
type holder struct {
	s  *status
	at end
}

// metered returns the meters of circuits at a switch: of the one with a number, or, of
// 0, of all. It is called with mu held.
func (b *store) metered(sw flow.DPID, id uint32) map[uint32]holder {
	list := map[uint32]holder{}
	for name := range b.at[sw] {
		s := b.status[name]
		if id != 0 && s.circuit.Id != id {
			continue
		}
		for i, e := range s.circuit.ends {
			if e.at.Switch != sw {
				continue
			}
			for _, m := range s.circuit.metersOf(i) {
				list[m] = holder{s, e}
			}
		}
	}
	return list
}

// single is how many meters of a switch are read one by one; of more all are read.
const single = 4

// readMeters reads what the meters of circuits at a switch have dropped, as readAll does.
func (b *store) readMeters(ctx context.Context, read reader, sw flow.DPID, id uint32) {
	b.mu.Lock()
	list := b.metered(sw, id)
	b.mu.Unlock()
	which := []uint32{flow.MeterAll}
	if len(list) <= single {
		which = nil
		for m := range list {
			which = append(which, m)
		}
	}
	for _, m := range which {
		stats, err := read.meters(ctx, sw, m)
		if err != nil {
			continue // it may not be there yet
		}
		b.droppedBy(sw, id, stats)
	}
}

// droppedBy takes over what meters of a switch have dropped.
func (b *store) droppedBy(sw flow.DPID, id uint32, stats []*api.MeterStats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.metered(sw, id)
	for _, x := range stats {
		h, is := list[x.Meter]
		if !is {
			continue
		}
		var n amount
		for _, band := range x.Bands {
			n = n.plus(amount{band.Packets, band.Bytes})
		}
		b.saw(h.s, counter{at: h.at, kind: dropped, meter: x.Meter}, n)
	}
}
