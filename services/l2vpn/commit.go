package l2vpn

import (
	"context"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// commit stores the batch, all of it or nothing.
func (b *store) commit(ctx context.Context, t *batch) error {
	var undo []func() // takes back what is done to numbers
	var edits []object.Edit
	for _, name := range t.gone {
		edits = append(edits, b.circuits.Edit(name, func(old *circuit) (*circuit, error) {
			b.free(old, nil, &undo)
			return nil, nil
		}))
	}
	for _, c := range t.circuits {
		edits = append(edits, b.circuits.Edit(c.Name, func(old *circuit) (*circuit, error) {
			n, err := b.complete(c, old, &undo)
			if err == nil {
				b.free(old, n, &undo)
			}
			return n, err
		}))
	}
	edits = append(edits, object.Then(func() {
		for _, c := range t.circuits { // a number may have been another's before
			b.numbered(b.status[c.Name].circuit, (*numbers).mark)
		}
	}))
	err := object.Change(ctx, edits...)
	if err != nil {
		b.mu.Lock()
		for _, f := range slices.Backward(undo) {
			f()
		}
		b.mu.Unlock()
	}
	return err
}

// numbered calls do for each number that a circuit has at a switch. It is called with mu
// held.
func (b *store) numbered(c *circuit, do func(n *numbers, sw flow.DPID, number uint32)) {
	for i, m := range c.Members {
		sw := c.ends[i].at.Switch
		for _, l := range c.labelsOf(m) {
			do(b.labels, sw, *l)
		}
		for _, meter := range []uint32{m.Meter, m.StormMeter} {
			if meter != 0 {
				do(b.meters, sw, meter)
			}
		}
	}
	for _, a := range c.arcs() {
		do(b.labels, a.to, a.label)
	}
}

// free gives back the numbers of a circuit that its successor does not have, for those
// that follow in the same batch; not those of a tree, which stays until switches have
// another. It is called with mu held.
func (b *store) free(old, now *circuit, undo *[]func()) {
	if old == nil {
		return
	}
	type number struct {
		of *numbers
		sw flow.DPID
		n  uint32
	}
	kept := map[number]bool{}
	if now != nil {
		b.numbered(now, func(of *numbers, sw flow.DPID, n uint32) { kept[number{of, sw, n}] = true })
		for _, a := range old.arcs() {
			kept[number{b.labels, a.to, a.label}] = true
		}
	}
	b.numbered(old, func(of *numbers, sw flow.DPID, n uint32) {
		if !kept[number{of, sw, n}] {
			of.give(sw, n)
			*undo = append(*undo, func() { of.mark(sw, n) })
		}
	})
}
