package l2vpn

import (
	"context"
	"slices"

	"github.com/weft-sdn/weft/object"
)

// commit stores the batch, all of it or nothing.
func (b *store) commit(ctx context.Context, t *batch) error {
	var undo []func() // takes back what is done to numbers
	var edits []object.Edit
	for _, name := range t.gone {
		edits = append(edits, b.circuits.Edit(name, func(old *circuit) (*circuit, error) {
			b.alloc.free(old, nil, &undo)
			return nil, nil
		}))
	}
	for _, c := range t.circuits {
		edits = append(edits, b.circuits.Edit(c.Name, func(old *circuit) (*circuit, error) {
			n, err := b.complete(c, old, &undo)
			if err == nil {
				b.alloc.free(old, n, &undo)
			}
			return n, err
		}))
	}
	edits = append(edits, object.Then(func() {
		for _, c := range t.circuits { // a number may have been another's before
			b.alloc.ofAll(b.status[c.Name].circuit, (*numbers).mark)
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

// complete gives a circuit what the service gives: numbers, and a vpls its tree: the one that it
// has, if that joins the same switches, or another. Without one, as while links are down, it has
// none and another is sought when links change. It is called with mu held.
func (b *store) complete(c, old *circuit, undo *[]func()) (*circuit, error) {
	n, err := b.alloc.number(c, old, b.cfg.stormy(c), undo)
	if err != nil || n.Type != vpls {
		return n, err
	}
	if n.sameTree(old) {
		n.TreeLabels = old.TreeLabels
	} else if arcs, noTree := b.net.plant(n); noTree == nil {
		n.TreeLabels, err = b.alloc.label(n, arcs, undo)
	}
	return n, err
}
