package l2vpn

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// A batch is what one request changes.
type batch struct {
	req      *api.SetCircuitsRequest
	circuits []*circuit      // that are wanted
	gone     []string        // that are deleted, by name
	refused  []error         // of each circuit
	planned  [][]*api.Tunnel // of each that is to begin: its tunnels as they would be
}

// read returns what a request wants, and refuses what cannot be.
func (b *store) read(req *api.SetCircuitsRequest) (*batch, error) {
	t := &batch{req: req, circuits: make([]*circuit, len(req.Circuits)), refused: make([]error, len(req.Circuits)), planned: make([][]*api.Tunnel, len(req.Circuits))}
	named := map[string]bool{}
	for i, m := range req.Circuits {
		t.circuits[i], t.refused[i] = readCircuit(m)
		if named[m.GetName()] && t.refused[i] == nil {
			t.refused[i] = api.Errorf(codes.InvalidArgument, "circuit %s: it is named twice", m.GetName())
		}
		named[m.GetName()] = true
	}
	for _, name := range req.Delete {
		if err := api.CheckName("delete", name); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
		if named[name] {
			return nil, api.Errorf(codes.InvalidArgument, "circuit %s is to be set and to be deleted", name)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range req.Delete {
		if b.status[name] != nil {
			t.gone = append(t.gone, name)
		}
	}
	if req.Exactly {
		for name := range b.status {
			if !named[name] {
				t.gone = append(t.gone, name)
			}
		}
	}
	slices.Sort(t.gone)
	t.gone = slices.Compact(t.gone)
	t.judge(b)
	return t, nil
}

// judge refuses those circuits of a batch whose ends cannot be had. It is called
// with b.mu held.
func (t *batch) judge(b *store) {
	mine := map[string]bool{} // whose ends count no more
	for _, name := range t.gone {
		mine[name] = true
	}
	for _, m := range t.req.Circuits {
		mine[m.GetName()] = true
	}
	taken, sinks := map[flow.Location]map[end]string{}, map[flow.Location]string{}
	for i, c := range t.circuits {
		if t.refused[i] != nil {
			continue
		}
		if d := c.DiverseFrom; d != "" && (b.status[d] == nil || slices.Contains(t.gone, d)) {
			t.refused[i] = api.Errorf(codes.FailedPrecondition, "circuit %s: diverse_from: there is no circuit %.80s", c.Name, d)
			continue
		}
		if c.over(b.circuits.Get(c.Name), b.now()) {
			t.refused[i] = api.Errorf(codes.InvalidArgument, "circuit %s: until: %s has passed", c.Name, c.Until)
			continue
		}
		if t.refused[i] = crowdedMEPs(b, c); t.refused[i] != nil {
			continue
		}
		for _, e := range c.ends {
			if t.refused[i] = t.admit(b, c, e, mine, taken[e.at]); t.refused[i] == nil && sinks[e.at] != "" {
				t.refused[i] = copied(c, e, sinks[e.at])
			}
			if t.refused[i] != nil {
				break
			}
			if taken[e.at] == nil {
				taken[e.at] = map[end]string{}
			}
			taken[e.at][e] = c.Name
		}
		for _, at := range c.sinks() {
			if t.refused[i] == nil {
				t.refused[i] = admitSink(b, c, at, mine, taken[at])
			}
			sinks[at] = c.Name
		}
	}
}

// copied returns the error of an end at a port where copies of a circuit's frames go.
func copied(c *circuit, e end, by string) error {
	return api.Errorf(codes.FailedPrecondition, "circuit %s: end %v: frames of circuit %s are copied to the port", c.Name, e, by)
}

// admitSink returns why copies of a circuit's frames cannot go to a port. It is called with b.mu held.
func admitSink(b *store, c *circuit, at flow.Location, mine map[string]bool, taken map[end]string) error {
	refuse := func(format string, args ...any) error {
		return api.Errorf(codes.FailedPrecondition, "circuit %s: mirror to port %v: "+format, append([]any{c.Name, at}, args...)...)
	}
	for o, name := range taken {
		return refuse("it is end %v of circuit %s", o, name)
	}
	for o, names := range b.taken[at.Switch][at.Port] {
		for name := range names {
			if !mine[name] {
				return refuse("it is end %v of circuit %s", o, name)
			}
		}
	}
	if old := b.status[c.Name]; old != nil && slices.Contains(old.circuit.sinks(), at) {
		return nil // it is there, whatever has become of the port
	}
	if why := b.net.unfitSink(at); why != "" {
		return refuse("%s", why)
	}
	return nil
}

// admit returns why a circuit cannot have an end: mine are the circuits that a
// batch sets anew, and taken is what they have at the port. It is called with b.mu held.
func (t *batch) admit(b *store, c *circuit, e end, mine map[string]bool, taken map[end]string) error {
	refuse := func(format string, args ...any) error {
		return api.Errorf(codes.FailedPrecondition, "circuit %s: end %v: "+format, append([]any{c.Name, e}, args...)...)
	}
	for o, name := range taken {
		if o.clashes(e) && name != c.Name {
			return refuse("circuit %s has %v", name, o)
		}
	}
	for o, names := range b.taken[e.at.Switch][e.at.Port] {
		for name := range names {
			if o.clashes(e) && !mine[name] {
				return refuse("circuit %s has %v", name, o)
			}
		}
	}
	for name := range b.sinks[e.at.Switch][e.at.Port] {
		if !mine[name] {
			return copied(c, e, name)
		}
	}
	if old := b.status[c.Name]; old != nil && slices.Contains(old.circuit.ends, e) {
		return nil // it is there, whatever has become of the port
	}
	if why := b.net.unfit(c, e); why != "" {
		return refuse("%s", why)
	}
	return nil
}

// commit stores the batch, all of it or nothing.
func (t *batch) commit(ctx context.Context, b *store) error {
	var undo []func()              // takes back what is done to numbers
	changed := map[string]string{} // what is changed, by circuit
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
				changed[c.Name] = changes(old, n)
			}
			return n, err
		}))
	}
	edits = append(edits, object.Then(func() {
		for _, c := range t.circuits { // a number may have been another's before
			b.alloc.ofAll(b.status[c.Name].circuit, (*numbers).mark)
			b.status[c.Name].log(b, changed[c.Name], client)
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
