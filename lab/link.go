package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// linkChanges changes the links of a lab that is up.
type linkChanges struct{ state *layout.Lab }

// LinkDown unplugs the link between a and b: both ends lose carrier, and the
// switches report port status LINK_DOWN. An end is a switch, a host, or
// SWITCH:PORT where two switches have several links. The ends of a veth pair
// between switches also show as PORT_DOWN (administratively down): a veth has
// no other way to lose carrier.
func (l linkChanges) LinkDown(ctx context.Context, a, b string) error {
	return l.setLinkState(ctx, a, b, layout.LinkIsDown)
}

// LinkUp undoes LinkDown and LinkSilent.
func (l linkChanges) LinkUp(ctx context.Context, a, b string) error {
	return l.setLinkState(ctx, a, b, layout.LinkIsUp)
}

// LinkSilent makes the link lose every frame while both ends keep carrier: a
// failure no port status tells of.
func (l linkChanges) LinkSilent(ctx context.Context, a, b string) error {
	return l.setLinkState(ctx, a, b, layout.LinkIsSilent)
}

func (l linkChanges) setLinkState(ctx context.Context, a, b string, to layout.LinkState) error {
	return l.changeLink(a, b, func(s *layout.Lab, w *layout.Wire) error {
		was := w.State
		w.State = to
		if (was == layout.LinkIsSilent) != (to == layout.LinkIsSilent) {
			if err := machine.NeedTools("nft"); err != nil {
				return err
			}
			if err := links.ApplyLoss(w); err != nil {
				return err
			}
		}
		if (was == layout.LinkIsDown) == (to == layout.LinkIsDown) {
			return nil
		}
		if w.Cable {
			_, err := keeper.Ask(ctx, s.Name, keeper.Order{Wire: w.ID, Delay: w.Shape.Delay, Jitter: w.Shape.Jitter, Down: to == layout.LinkIsDown})
			return err
		}
		return links.SetVeth(w, s.Dressed(w), to != layout.LinkIsDown)
	})
}

// Change is what ShapeLink changes: nil leaves a value as it is.
type Change struct {
	Rate   *topology.Rate // 0: unlimited
	Delay  *topology.Delay
	Jitter *topology.Delay
	Loss   *topology.Percent
}

// ShapeLink changes what a link does to packets, from now on. Delay on a link
// that had none since the lab came up replaces its veth pair by a cable: its
// ports are gone for a moment and come back under the same numbers.
func (l linkChanges) ShapeLink(ctx context.Context, a, b string, change Change) error {
	return l.changeLink(a, b, func(s *layout.Lab, w *layout.Wire) error {
		to := w.Shape
		if change.Rate != nil {
			to.Rate = *change.Rate
		}
		if change.Delay != nil {
			to.Delay = *change.Delay
		}
		if change.Jitter != nil {
			to.Jitter = *change.Jitter
		}
		if change.Loss != nil {
			to.Loss = *change.Loss
		}
		return wiringOf(s).reshape(ctx, w, to)
	})
}

// wiring is the wires of a lab, with the ports that they end at.
type wiring struct{ *layout.Lab }

func wiringOf(s *layout.Lab) wiring { return wiring{s} }

// reshape changes what a link does to packets.
func (s wiring) reshape(ctx context.Context, w *layout.Wire, to topology.Shape) error {
	was := w.Shape
	w.Shape = to
	replaced := false
	switch {
	case w.Cable && (to.Delay != was.Delay || to.Jitter != was.Jitter):
		o := keeper.Order{Wire: w.ID, Delay: to.Delay, Jitter: to.Jitter, Down: w.State == layout.LinkIsDown}
		if _, err := keeper.Ask(ctx, s.Name, o); err != nil {
			return err
		}
	case !w.Cable && to.NeedsCable():
		w.Cable, replaced = true, true
		if err := s.replaceByCable(ctx, w); err != nil {
			return err
		}
	}
	if to.Rate != was.Rate || (replaced && to.Rate != 0) {
		if err := links.ApplyRates(w); err != nil {
			return err
		}
	}
	if to.Loss != was.Loss || (replaced && w.Lossy()) {
		if err := machine.NeedTools("nft"); err != nil {
			return err
		}
		return links.ApplyLoss(w)
	}
	return nil
}

// dressEnds gives both ends of a wire what they have there, addresses among it.
func (s wiring) dressEnds(w *layout.Wire) error {
	for _, e := range w.Ends() {
		err := machine.WithLinks(e.Netns, func(h *netlink.Handle) error {
			if e.Host {
				return links.DressHost(h, w, s.Dressed(w))
			}
			return nodes.RoutersOf(s.Lab).BringUp(h, w, e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceByCable removes a wire's veth pair and has the keeper lay a cable
// whose ends have the same names. Open vSwitch is told to forget the ports
// meanwhile: it would hold on to the removed devices.
func (s wiring) replaceByCable(ctx context.Context, w *layout.Wire) error {
	if err := nodes.SwitchesOf(s.Lab).ChangePorts(ctx, w, func(br string, e *layout.End) []string {
		return []string{"--", "--if-exists", "del-port", br, e.Iface}
	}); err != nil {
		return err
	}
	err := machine.WithLinks(w.A.Netns, func(h *netlink.Handle) error {
		link, err := h.LinkByName(w.A.Iface)
		if err != nil {
			return fmt.Errorf("find %s of %s: %w", w.A.Iface, &w.A, err)
		}
		return h.LinkDel(link)
	})
	if err != nil {
		return err
	}
	if err := s.Save(); err != nil { // the keeper reads it there
		return err
	}
	if _, err := keeper.Ask(ctx, s.Name, keeper.Order{Wire: w.ID, Lay: true}); err != nil {
		return err
	}
	if err := s.dressEnds(w); err != nil {
		return err
	}
	if err := links.JoinTunnel(w); err != nil {
		return err
	}
	return nodes.SwitchesOf(s.Lab).ChangePorts(ctx, w, nodes.AddPort)
}

// changeLink runs change on the wire between a and b, under the lab's lock,
// and saves the state.
func (l linkChanges) changeLink(a, b string, change func(*layout.Lab, *layout.Wire) error) error {
	lock, err := machine.Lock(l.state.Name)
	if err != nil {
		return err
	}
	defer lock.Close()
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return err
	}
	w, err := s.Find(a, b)
	if err != nil {
		return err
	}
	if err := s.CheckRoom(0); err != nil {
		return err
	}
	if err := change(s, w); err != nil {
		if errors.Is(err, unix.ENODEV) {
			err = fmt.Errorf("%w: an interface of the link is gone", err)
		}
		return fmt.Errorf("link %s to %s: %w", a, b, err)
	}
	return s.Save()
}

// Links is every link as it is now, those of hosts first, of their eth1 last.
func (l linkChanges) Links() ([]layout.LinkStatus, error) {
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return nil, err
	}
	return s.Links(), nil
}

// Link is the link between a and b as it is now.
func (l linkChanges) Link(a, b string) (layout.LinkStatus, error) {
	s, err := layout.Load(l.state.Name)
	if err != nil {
		return layout.LinkStatus{}, err
	}
	w, err := s.Find(a, b)
	if err != nil {
		return layout.LinkStatus{}, err
	}
	return w.Status(), nil
}
