package deploy

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Packets of a session that are the same to the octet, and wait together, cross
// once: the stages see the first, and what they send of it is sent for each of
// the others, too, in their places. So a burst that comes before the switch has
// its entry costs one crossing, nothing is lost, and the order stays.

// merge finds the packets of a parcel that are the same as an earlier one, and
// returns how many there are.
func (p *parcel) merge(seed maphash.Seed) (merged int) {
	n := len(p.records)
	if n < 2 {
		return 0
	}
	size := 4
	for size < 2*n {
		size *= 2
	}
	p.seen = slices.Grow(p.seen[:0], size)[:size]
	clear(p.seen)
	for i := range p.records {
		r := &p.records[i]
		packet := p.data[r.start:r.end]
		for at := int(maphash.Bytes(seed, packet)) & (size - 1); ; at = (at + 1) & (size - 1) {
			first := p.seen[at]
			if first == 0 {
				p.seen[at] = int32(i + 1)
				break
			}
			f := &p.records[first-1]
			if f.walk == r.walk && r.trace == 0 && bytes.Equal(p.data[f.start:f.end], packet) {
				r.like = first
				merged++
				break
			}
		}
	}
	return merged
}

// unmerge gives the packets that were the same as another its verdict, and what
// it sends; not the entries that it writes, for they are written.
func (p *parcel) unmerge() error {
	var d, own flow.Decision
	for i := range p.records {
		r := &p.records[i]
		if r.like == 0 {
			continue
		}
		f := &p.records[r.like-1]
		if !f.done {
			continue // has been held for too long
		}
		r.done, r.verdict, r.decision = true, f.verdict, nil
		if len(f.decision) == 0 {
			continue
		}
		if err := d.UnmarshalBinary(f.decision); err != nil {
			return err
		}
		own.Reset()
		for _, op := range d.Ops {
			if op.Kind == flow.OpPacketOut {
				own.PacketOut(op.Switch, d.Outs[op.Index])
			}
		}
		if own.Empty() {
			continue
		}
		var err error
		if r.decision, err = own.AppendBinary(nil); err != nil {
			return err
		}
	}
	return nil
}
