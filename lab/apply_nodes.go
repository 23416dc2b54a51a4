package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// nodeTasks returns what is to be done to switches that stay: to make them anew, to
// have nodes be as they are laid out, and to have them connect elsewhere.
func (s changes) nodeTasks(was *layout.Lab, d *topology.Difference) (todo []layout.Task) {
	anew := d.Anew()
	for _, sw := range s.Topology.Switches {
		old, there := was.Topology.SwitchByName(sw.Name)
		t := layout.Task{Item: topology.Item{Kind: topology.ItemSwitch, Name: sw.Name}, Do: layout.Changed, Of: was.Bridges[sw.Name]}
		add := func(work layout.Work) { t.Work = work; todo = append(todo, t) }
		if !there || slices.Contains(d.Added, t.Item) {
			if t.Do = layout.Added; sw.Routes() {
				add(layout.SetNode)
			}
			continue
		}
		if anew[sw.Name] {
			add(layout.DeleteSwitch)
			add(layout.AddSwitch)
			if sw.Routes() {
				add(layout.SetNode)
			}
			continue
		}
		if sw.Controlled() && !slices.Equal(nodes.SwitchesOf(was).Targets(old), nodes.SwitchesOf(s.Lab).Targets(&sw)) {
			add(layout.SetControllers)
		}
		if n := s.Node(sw.Name); n != nil && s.nodeText(n) != changesOf(was).nodeText(was.Node(sw.Name)) {
			for _, p := range was.Node(sw.Name).Routed() {
				if now := n.PortAt(p.Port); now == nil || now.InternalInterface != p.InternalInterface {
					t.Gone = append(t.Gone, p.InternalInterface)
				}
			}
			add(layout.SetNode)
		}
	}
	if at := s.Topology.Control.At; changesOf(was).controlText() != s.controlText() || anew[at] {
		todo = append(todo, layout.Task{Item: topology.Item{Kind: topology.ItemLab, Name: s.Name}, Do: layout.Changed, Work: layout.SetControl})
	}
	return todo
}

// nodeText is all that a node has and does, to see whether it is another.
func (s changes) nodeText(n *layout.Node) string {
	if n == nil {
		return ""
	}
	c := *n
	c.Ports = slices.Clone(n.Ports)
	for i := range c.Ports {
		c.Ports[i].Wire = 0
	}
	b, _ := json.Marshal(&c)
	text := string(b) + s.Description(n.Name)
	for _, d := range nodes.RoutingOf(s.Lab).FRRDaemons() {
		text += nodes.RoutingOf(s.Lab).FRRConfig(n, d)
	}
	return text
}

// controlText is how the switches reach controllers, to see whether it is another.
func (s changes) controlText() string {
	text := fmt.Sprint(s.Topology.InBand(), s.Topology.Control, s.Topology.Secure())
	for _, p := range nodes.SwitchesOf(s.Lab).Posts() {
		text += "\n" + p.Key
	}
	return text
}

// addSwitch makes a switch without its ports.
func (s changes) addSwitch(ctx context.Context, home machine.Home, name string) error {
	br := s.Bridges[name]
	if err := s.deleteSwitch(ctx, home, name, br); err != nil {
		return err
	}
	sw, _ := s.Topology.SwitchByName(name)
	if sw.Routes() {
		err := home.CreateNetns(machine.HostNetns(s.Name, name), func() error { return machine.WithHandle(nodes.PrepareNodeNetns) })
		if err != nil || sw.Kind == topology.KindRouter {
			return err
		}
	}
	o := nodes.SwitchesOf(s.Lab).OVSOf(name)
	if o.Node != "" {
		if err := o.StartDatabase(ctx); err != nil {
			return err
		}
		if _, err := o.VSCtl(ctx, append([]string{"--no-wait"}, nodes.SwitchesOf(s.Lab).InitOVS()...)...); err != nil {
			return err
		}
		if err := o.StartSwitching(ctx); err != nil {
			return err
		}
	}
	_, err := o.VSCtl(ctx, nodes.SwitchesOf(s.Lab).AddBridge(sw, "@c")...)
	return err
}

// deleteSwitch removes a switch, of whatever kind it was.
func (s changes) deleteSwitch(ctx context.Context, home machine.Home, name, bridge string) error {
	if _, err := nodes.SwitchesOf(s.Lab).Shared().VSCtl(ctx, "--if-exists", "del-br", bridge); err != nil {
		return err
	}
	ns := machine.HostNetns(s.Name, name)
	if _, err := os.Stat(machine.NetnsPath(ns)); err == nil {
		if err := machine.EndIn(ctx, ns); err != nil {
			return err
		}
		if err := machine.EmptyNetns(ns); err != nil { // the keeper may still have a connection from there
			return err
		}
	}
	if err := home.DeleteNetns(ns); err != nil {
		return err
	}
	own := filepath.Join(s.Dir(), bridge)
	if _, err := os.Stat(filepath.Join(own, "conf.db")); err == nil {
		if err := os.RemoveAll(own); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(s.Dir(), "frr", bridge))
}

// tendControl has the way from the switches to the controllers be as the file says.
func (s changes) tendControl(ctx context.Context, home machine.Home) error {
	ctlSpace := layout.ControlNetns(s.Name)
	_, none := os.Stat(machine.NetnsPath(ctlSpace))
	if s.Topology.Secure() || s.Topology.InBand() {
		if err := machine.WithLinks(machine.SwitchNetns(s.Name), machine.SetLoopbackUp); err != nil {
			return err
		}
	}
	switch {
	case !s.Topology.InBand() && none == nil:
		if err := errors.Join(machine.EmptyNetns(ctlSpace), home.DeleteNetns(ctlSpace)); err != nil {
			return err
		}
	case s.Topology.InBand():
		if none != nil {
			if err := home.CreateNetns(ctlSpace, func() error { return machine.WithHandle(links.PrepareHostNetns) }); err != nil {
				return err
			}
		}
		if err := s.moveControllers(ctlSpace); err != nil {
			return err
		}
	}
	_, err := keeper.Ask(ctx, s.Name, keeper.Order{Relays: true})
	return err
}

// moveControllers links the controllers' machine to its node, and to no other.
func (s changes) moveControllers(ctlSpace string) error {
	linked := false
	at := machine.HostNetns(s.Name, s.Topology.Control.At)
	err := machine.WithLinks(at, func(h *netlink.Handle) error {
		l, err := h.LinkByName(nodes.ControlIface)
		linked = err == nil && l.Attrs().OperState == netlink.OperUp
		return nil
	})
	if err != nil || linked {
		return err
	}
	for _, ns := range []string{ctlSpace, at} {
		err := machine.WithLinks(ns, func(h *netlink.Handle) error {
			l, err := h.LinkByName(nodes.ControlIface)
			if err != nil {
				return nil // it is gone
			}
			return h.LinkDel(l)
		})
		if err != nil {
			return fmt.Errorf("unlink the controllers' machine: %w", err)
		}
	}
	return machine.WithLinks(at, nodes.SwitchesOf(s.Lab).LinkControllers)
}
