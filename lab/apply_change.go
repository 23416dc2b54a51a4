package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// change is the work of Apply. The lab's state becomes that of the changed lab
// at once, with the tasks that lead there; each that is done is struck off.
type change struct {
	state    *layout.Lab
	text     []byte
	progress func(Step)
	done     []string
}

func (c *change) run(ctx context.Context, to *topology.Topology) error {
	s := c.state
	todo := changesOf(s).become(to)
	slices.SortStableFunc(todo, func(a, b layout.Task) int { return int(a.Work) - int(b.Work) })
	s.Todo = todo
	if err := s.CheckRoom(len(c.text) + len(s.Topology.HostsFile())); err != nil {
		return err
	}
	if err := s.Save(); err != nil {
		return err
	}
	if err := s.KeepText(c.text); err != nil {
		return err
	}
	if err := s.WriteNames(); err != nil {
		return err
	}
	if err := machine.RaiseNeighbourLimits(len(s.Topology.Hosts)); err != nil {
		return err
	}
	for _, o := range []keeper.Order{{Programs: true, End: true}, {Nodes: true}} {
		if _, err := keeper.Ask(ctx, s.Name, o); err != nil {
			return err
		}
	}
	home, err := machine.FindHome()
	if err != nil {
		return err
	}
	defer home.Close()
	for len(s.Todo) > 0 {
		t := s.Todo[0]
		if err := errors.Join(ctx.Err(), s.CheckEnding()); err != nil {
			return err
		}
		c.progress(Step{Item: t.Item, Do: t.Do})
		if err := changesOf(s).do(ctx, home, &t); err != nil {
			return fmt.Errorf("%s is not %s: %w", t.Item, t.Do, err)
		}
		s.Todo = s.Todo[1:]
		if err := s.Save(); err != nil {
			return err
		}
		if !slices.ContainsFunc(s.Todo, func(o layout.Task) bool { return o.Item == t.Item }) {
			c.done = append(c.done, t.Item.String()+" "+t.Do)
			c.progress(Step{Item: t.Item, Do: t.Do, Done: true})
		}
	}
	for _, o := range nodes.SwitchesOf(s).AllOVS() {
		if err := o.CheckPorts(ctx, s); err != nil {
			return err
		}
	}
	if err := nodes.RoutersOf(s).WriteNodes(); err != nil {
		return err
	}
	if _, err := keeper.Ask(ctx, s.Name, keeper.Order{Nodes: true}); err != nil {
		return err
	}
	return keeper.StartPrograms(ctx, s)
}

// become makes the state that of a changed lab and returns what has to be done,
// with what was to be done before.
func (s changes) become(to *topology.Topology) []layout.Task {
	d := topology.Compare(s.now(), to)
	was := *s.Lab
	laid := layout.LayAgain(to, &was)
	s.Topology, s.Bridges, s.Wires, s.Nodes = to, laid.Bridges, laid.Wires, laid.Nodes
	todo := append(s.wireTasks(&was, d.Anew()), s.nodeTasks(&was, d)...)
	for _, i := range d.Deleted {
		switch i.Kind {
		case topology.ItemHost:
			todo = append(todo, layout.Task{Item: i, Do: layout.Deleted, Work: layout.DeleteHost})
		case topology.ItemSwitch:
			todo = append(todo, layout.Task{Item: i, Do: layout.Deleted, Work: layout.DeleteSwitch, Of: was.Bridges[i.Name]})
		}
	}
	for _, i := range d.Added {
		switch i.Kind {
		case topology.ItemHost:
			todo = append(todo, layout.Task{Item: i, Do: layout.Added, Work: layout.AddHost})
		case topology.ItemSwitch:
			todo = append(todo, layout.Task{Item: i, Do: layout.Added, Work: layout.AddSwitch})
		}
	}
	for _, e := range d.Changed {
		t := layout.Task{Item: e.Item, Do: layout.Changed}
		switch {
		case e.Kind == topology.ItemSwitch && slices.Contains([]string{"dpid", "protocols", "fail_mode"}, e.What):
			t.Work = layout.SetSwitch
		case e.Kind == topology.ItemHost && e.What == "manage":
			t.Work = layout.SetManage
		case e.Kind == topology.ItemHost && slices.Contains([]string{"ipv4", "ipv6", "gateway4", "gateway6"}, e.What):
			t.Work = layout.SetAddresses
		default:
			continue
		}
		todo = append(todo, t)
	}
	for _, t := range was.Todo {
		if s.still(&t) {
			todo = append(todo, t)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(todo, func(t layout.Task) bool {
		key := fmt.Sprint(t.Work, t.Item, t.ID, t.Of, t.Gone)
		if t.Wire != nil {
			key += fmt.Sprint(t.Wire.ID)
		}
		twice := seen[key]
		seen[key] = true
		return twice
	})
}

// still reports whether a task that was to be done before still is.
func (s changes) still(t *layout.Task) bool {
	host, hasHost := s.Topology.HostByName(t.Name)
	_, hasSwitch := s.Topology.SwitchByName(t.Name)
	switch t.Work {
	case layout.Unwire:
		return true
	case layout.DeleteHost:
		return !hasHost
	case layout.DeleteSwitch:
		return hasSwitch == (t.Do == layout.Changed)
	case layout.SetControl:
		return true
	case layout.AddWire, layout.SetShape:
		return s.WireByID(t.ID) != nil
	case layout.AddSwitch, layout.SetSwitch, layout.SetControllers, layout.SetNode:
		return hasSwitch
	}
	return hasHost && host != nil
}

// wireTasks takes over the wires that are there already, and returns what is to
// be done to others, and to those at switches that are made anew.
func (s changes) wireTasks(was *layout.Lab, anew map[string]bool) (todo []layout.Task) {
	old := map[string]*layout.Wire{}
	for i := range was.Wires {
		old[was.Wires[i].Key()] = &was.Wires[i]
	}
	for i := range s.Wires {
		w := &s.Wires[i]
		item, do := s.ItemOf(w), layout.Changed
		there := old[w.Key()]
		if there == nil {
			if item.Kind == topology.ItemLink {
				do = layout.Added
			} else if _, before := was.Topology.HostByName(item.Name); !before {
				do = layout.Added
			}
			todo = append(todo, layout.Task{Item: item, Do: do, Work: layout.AddWire, ID: w.ID})
			continue
		}
		delete(old, w.Key())
		wanted := *w
		mac := wanted.B.MAC
		*w = *there
		w.Shape, w.VLAN, w.Cable = wanted.Shape, wanted.VLAN, there.Cable || wanted.Cable || wanted.Shape.NeedsCable()
		if w.B.Host && w.B.Iface == layout.HostIface {
			w.B.MAC = mac
		}
		moved := anew[w.A.Node] || anew[w.B.Node] || !layout.SameTunnel(&wanted, there)
		if moved {
			w.A, w.B = wanted.A, wanted.B
		}
		switch {
		case moved, w.MTU() != there.MTU(), w.VLAN != there.VLAN, w.Cable != there.Cable, w.B.MAC != there.B.MAC:
			todo = append(todo, layout.Task{Item: item, Do: do, Work: layout.Unwire, Wire: there}, layout.Task{Item: item, Do: do, Work: layout.AddWire, ID: w.ID})
		case w.Shape != there.Shape:
			todo = append(todo, layout.Task{Item: item, Do: do, Work: layout.SetShape, ID: w.ID})
		}
	}
	for i := range was.Wires {
		w := &was.Wires[i]
		if old[w.Key()] == nil {
			continue
		}
		item, do := was.ItemOf(w), layout.Deleted
		if _, stays := s.Topology.HostByName(item.Name); item.Kind == topology.ItemHost && stays {
			do = layout.Changed
		}
		todo = append(todo, layout.Task{Item: item, Do: do, Work: layout.Unwire, Wire: w})
	}
	return todo
}
