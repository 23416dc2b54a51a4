package wefttest

import "github.com/weft-sdn/weft/nib"

// Network returns a function that brings events to a service's logic in the way in
// which weft.OnChange does: for tests of logic without its service. Their publisher has
// just begun.
func Network(reads nib.Parts, changed func(nib.Change)) func(events ...any) {
	b, from := nib.New(), nib.Source{Epoch: 1}
	b.Read(reads.Closed())
	for p := nib.Switches; p <= reads.Closed(); p <<= 1 {
		if reads.Closed()&p != 0 {
			b.Complete(p, from)
		}
	}
	return func(events ...any) {
		for _, e := range events {
			was := b.Snapshot()
			b.Apply(from, e)
			changed(nib.Change{Was: was, Is: b.Snapshot()})
		}
	}
}
