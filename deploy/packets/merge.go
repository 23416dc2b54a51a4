package packets

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Byte-identical packets of a session that wait together cross once. The stages
// see the first, and the messages that they send for it are also sent for each
// of the others, in their places. So a burst that arrives before the switch has
// its entry costs one crossing, nothing is lost, and the order stays.

// merge marks the packets of a batch that equal an earlier one, and returns
// how many there are.
func (p *batch) merge(seed maphash.Seed) (merged int) {
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
			if f.session == r.session && r.trace == 0 && bytes.Equal(p.data[f.start:f.end], packet) {
				r.like = first
				merged++
				break
			}
		}
	}
	return merged
}

// unlike adds to list the merged packets whose original is done without a
// decision: a stage keeps it and sends it later, so these cross by themselves.
func (p *batch) unlike(list []int) []int {
	for i := range p.records {
		r := &p.records[i]
		if r.like == 0 {
			continue
		}
		if f := &p.records[r.like-1]; f.done && f.verdict == flow.Done && len(f.decision) == 0 {
			r.like = 0
			list = append(list, i)
		}
	}
	return list
}

// unmerge gives each merged packet the verdict of its original, and the
// messages that it sends, but not its flow entries, which are written once.
func (p *batch) unmerge() error {
	var d, own flow.Decision
	for i := range p.records {
		r := &p.records[i]
		if r.like == 0 {
			continue
		}
		f := &p.records[r.like-1]
		if !f.done {
			continue // it was held for too long
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
