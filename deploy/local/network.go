package local

import (
	"sync/atomic"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/nib"
)

// networks are the network information bases of this process: that of its own
// partition's publishers, and that of all, which clustered services read.
type networks struct{ own, all *nib.Base }

func newNetworks() networks { return networks{nib.New(), nib.New()} }

// of returns the base that clustered services read, or the others.
func (n networks) of(clustered bool) *nib.Base {
	if clustered {
		return n.all
	}
	return n.own
}

// begin says that a publisher of this process begins a run: what it publishes is
// heard from the first event on.
func (n networks) begin(spec *weft.Spec, run nib.Source) {
	for _, p := range spec.Publishes {
		if part := nib.PartOf(p.SubjectName()); part != 0 {
			n.own.Complete(part, run)
			n.all.Complete(part, run)
		}
	}
}

// end says that a run of a service has ended, here or in another process.
func (n networks) end(spec *weft.Spec, run nib.Source) {
	for _, p := range spec.Publishes {
		if part := nib.PartOf(p.SubjectName()); part != 0 {
			n.own.Over(part, run)
			n.all.Over(part, run)
		}
	}
}

// network is what a service reads of the network.
type network struct {
	parts    nib.Parts                                        // that its Spec names
	base     *nib.Base                                        // that it reads since it has been entered
	register func(declared bool, what string, do func() bool) // of the service
	queue    func(handle func()) (notify func())              // notify has handle called as an event
	readers  []*reader
}

// reader is one registration of OnChange.
type reader struct {
	base   *nib.Base
	parts  nib.Parts
	handle func(nib.Change)
	seen   nib.Snapshot // at the last call; of the goroutine of the service's events
	queued atomic.Bool
	watch  *nib.Watch
}

// Network returns the present snapshot, of what the Spec reads (weft.Runtime).
func (n *network) Network() nib.Snapshot { return n.base.Snapshot().Only(n.parts.Closed()) }

// OnChange registers a handler of changes of some parts of the network
// (weft.Runtime). It is queued once, however many there are until it runs.
func (n *network) OnChange(p nib.Parts, h func(nib.Change)) {
	n.register(n.parts&p == p, "a handler of changes of the network", func() bool {
		r := &reader{base: n.base, parts: p.Closed(), handle: h}
		run := n.queue(r.follow)
		notify := func() {
			if !r.queued.Swap(true) {
				run()
			}
		}
		r.watch = n.base.Watch(r.parts, notify)
		n.readers = append(n.readers, r)
		notify() // of what is known already
		return true
	})
}

// follow calls the handler with what has changed since its last call.
func (r *reader) follow() {
	r.queued.Store(false) // first: what changes from here on is another call's
	is := r.base.Snapshot().Only(r.parts)
	c := nib.Change{Was: r.seen, Is: is}
	r.seen = is
	r.handle(c)
}

// enter makes the service a reader of a base, and returns the parts that nobody has
// read before.
func (n *network) enter(base *nib.Base) (first nib.Parts) {
	n.base = base
	if n.parts == 0 {
		return 0
	}
	return base.Read(n.parts.Closed())
}

// leave ends what enter began.
func (n *network) leave() {
	for _, r := range n.readers {
		n.base.Unwatch(r.watch)
	}
	if n.parts != 0 {
		n.base.Leave(n.parts.Closed())
	}
}
