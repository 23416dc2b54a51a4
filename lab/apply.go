package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// ApplyOptions says how Apply changes a lab.
type ApplyOptions struct {
	// Name of the lab; empty: that of the file.
	Name string
	// MadeFrom, if not empty, is the revision of the lab that the file was made from: a lab
	// that has another one is not touched.
	MadeFrom string
	// DryRun says to return what differs, and to touch nothing.
	DryRun bool
	// Progress, if not nil, is told of each part of the lab before it is touched
	// and once that is done, from one goroutine.
	Progress func(Step)
}

// Step is a part of the work of Apply.
type Step struct {
	topology.Item
	Do   string // "added", "deleted" or "changed"
	Done bool   // else it begins
}

// Apply makes a running lab what a changed lab file says, and returns what
// differed. Only that is touched: other links carry on without loss. What the
// file leaves open stays as it is in the lab, and so do links that have been
// unplugged. A switch that cannot become what the file says, such as one of another
// kind, is made anew alone. What this machine lacks is said before anything is touched. If Apply fails, or is killed, another one completes it.
func Apply(ctx context.Context, file string, text []byte, opt ApplyOptions) (*topology.Difference, error) {
	if opt.Name == "" {
		t, err := topology.Parse(file, text)
		if err != nil {
			return nil, err
		}
		opt.Name = t.Name
	}
	if !opt.DryRun {
		if err := machine.NeedRoot(); err != nil {
			return nil, err
		}
		lock, err := machine.Lock(opt.Name)
		if err != nil {
			return nil, err
		}
		defer lock.Close()
	}
	l, err := Open(opt.Name)
	if err != nil {
		return nil, err
	}
	s := l.state
	if err := errors.Join(s.CheckEnding(), s.CheckRevision(opt.MadeFrom)); err != nil {
		return nil, err
	}
	to, err := topology.ParseChanged(file, text, topology.Running{Topology: s.Topology, Given: s.Given})
	if err != nil {
		return nil, err
	}
	to.Name = s.Name
	d := changesOf(s).differs(to)
	if err := changesOf(s).refuse(to, d); err != nil {
		return nil, fmt.Errorf("apply %s to lab %s: %w", file, s.Name, err)
	}
	if opt.DryRun {
		return d, nil
	}
	if opt.Progress == nil {
		opt.Progress = func(Step) {}
	}
	c := &change{state: s, text: to.Text(), progress: opt.Progress}
	if err := c.run(ctx, to); err != nil {
		done := "nothing was done"
		if len(c.done) > 0 {
			done = "done before: " + strings.Join(topology.Shorten(c.done), ", ")
		}
		return d, fmt.Errorf("apply %s to lab %s: %w; %s; apply it again to complete it", file, s.Name, err, done)
	}
	return d, nil
}

// changes are what leads from a lab to another topology.
type changes struct{ *layout.Lab }

func changesOf(s *layout.Lab) changes { return changes{s} }

// now is the topology of a lab with its links as they are, without what an
// apply that was not finished has not made.
func (s changes) now() *topology.Topology {
	t := s.Topology.Clone()
	for i := range t.Hosts {
		t.Hosts[i].Shape = s.Wires[i].Shape
	}
	for i := range t.Links {
		t.Links[i].Shape = s.Wires[len(t.Hosts)+i].Shape
	}
	return t
}

// differs is what leads from the lab to a topology, with what an apply that was
// not finished has left to be done.
func (s changes) differs(to *topology.Topology) *topology.Difference {
	from := s.now()
	unmade := func(kind, name string) bool {
		return slices.ContainsFunc(s.Todo, func(t layout.Task) bool {
			return t.Do == layout.Added && t.Item == topology.Item{Kind: kind, Name: name}
		})
	}
	from.Links = slices.DeleteFunc(from.Links, func(l topology.Link) bool { return unmade(topology.ItemLink, l.String()) })
	from.Hosts = slices.DeleteFunc(from.Hosts, func(h topology.Host) bool { return unmade(topology.ItemHost, h.Name) })
	from.Switches = slices.DeleteFunc(from.Switches, func(w topology.Switch) bool { return unmade(topology.ItemSwitch, w.Name) })
	d := topology.Compare(from, to)
	for _, t := range s.Todo {
		switch {
		case t.Do == layout.Deleted && !slices.Contains(d.Deleted, t.Item):
			d.Deleted = append(d.Deleted, t.Item)
		case t.Do == layout.Changed && !slices.ContainsFunc(d.Changed, func(e topology.Edit) bool { return e.Item == t.Item }):
			d.Changed = append(d.Changed, topology.Edit{Item: t.Item, What: "state", From: "half made", To: "up"})
		}
	}
	return d
}

// refuse says what of a changed lab this machine cannot make.
func (s changes) refuse(to *topology.Topology, d *topology.Difference) error {
	if d.None() {
		return nil
	}
	laid := layout.LayAgain(to, s.Lab)
	laid.Weft, laid.TLS, laid.Directory = s.Weft, s.TLS, s.Directory
	if err := nodes.RoutingOf(laid).NeedRouting(); err != nil {
		return err
	}
	s.Weft = laid.Weft
	if s.TLS == nil {
		if err := nodes.SwitchesOf(laid).CheckTLS(); err != nil {
			return err
		}
	}
	return errors.Join(nodes.HostsOf(laid).CheckPrograms(), nodes.HostsOf(laid).CheckCPUs(), s.needLoss(to))
}

// needLoss reports whether what makes links lose packets, and joins tunnels, is not installed and needed.
func (s changes) needLoss(t *topology.Topology) error {
	lossy := s.Topology.Tunnels() || t.Tunnels() || slices.ContainsFunc(s.Wires, func(w layout.Wire) bool { return w.Lossy() }) ||
		slices.ContainsFunc(t.Hosts, func(h topology.Host) bool { return h.Loss > 0 }) ||
		slices.ContainsFunc(t.Links, func(l topology.Link) bool { return l.Loss > 0 })
	if !lossy {
		return nil
	}
	return machine.NeedTools("nft")
}
