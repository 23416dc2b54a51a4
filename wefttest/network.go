package wefttest

import "github.com/weft-sdn/weft/nib"

// Network returns a function that brings events to a service's logic in the way in
// which weft.OnChange does: for tests of logic without its service.
func Network(reads nib.Parts, changed func(nib.Change)) func(events ...any) {
	b := nib.New()
	b.Read(reads.Closed())
	return func(events ...any) {
		for _, e := range events {
			was := b.Snapshot()
			b.Apply(nib.Source{Epoch: 1}, e)
			changed(nib.Change{Was: was, Is: b.Snapshot()})
		}
	}
}
