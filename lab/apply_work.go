package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
)

// do does a task of Apply, whatever is there of it already.
func (s changes) do(ctx context.Context, home machine.Home, t *layout.Task) error {
	switch t.Work {
	case layout.Unwire:
		return wiringOf(s.Lab).removeWire(ctx, t.Wire)
	case layout.DeleteHost:
		return nodes.HostsOf(s.Lab).DeleteHost(ctx, home, t.Name)
	case layout.DeleteSwitch:
		return s.deleteSwitch(ctx, home, t.Name, t.Of)
	case layout.AddSwitch:
		return s.addSwitch(ctx, home, t.Name)
	case layout.SetSwitch, layout.SetControllers:
		return nodes.SwitchesOf(s.Lab).SetSwitch(ctx, t.Name, t.Work == layout.SetControllers)
	case layout.SetControl:
		return s.tendControl(ctx, home)
	case layout.SetNode:
		return nodes.RoutersOf(s.Lab).SetNode(ctx, t.Name, t.Gone)
	case layout.AddHost:
		return nodes.HostsOf(s.Lab).AddHost(ctx, home, t.Name)
	case layout.AddWire:
		w := s.WireByID(t.ID)
		if err := wiringOf(s.Lab).removeWire(ctx, w); err != nil {
			return err
		}
		return wiringOf(s.Lab).makeWire(ctx, w)
	case layout.SetShape:
		return wiringOf(s.Lab).applyShape(ctx, s.WireByID(t.ID))
	case layout.SetAddresses:
		return nodes.HostsOf(s.Lab).SetAddresses(t.Name)
	}
	return nodes.HostsOf(s.Lab).SetManagement(ctx, t.Name)
}

// removeWire removes what there is of a wire.
func (s wiring) removeWire(ctx context.Context, w *layout.Wire) error {
	err := nodes.SwitchesOf(s.Lab).ChangePorts(ctx, w, func(_ string, e *layout.End) []string {
		if _, err := os.Stat(filepath.Join(nodes.SwitchesOf(s.Lab).OVSOf(e.Node).Dir, "db.sock")); err != nil {
			return nil // its Open vSwitch is not made yet
		}
		return []string{"--", "--if-exists", "del-port", e.Iface}
	})
	if err != nil {
		return err
	}
	if _, err := keeper.Ask(ctx, s.Name, keeper.Order{Wire: w.ID, Remove: true}); err != nil {
		return err
	}
	if err := links.RemoveTunnel(w); err != nil {
		return err
	}
	loses := machine.NeedTools("nft") == nil
	for _, e := range w.Ends() {
		if _, err := os.Stat(machine.NetnsPath(e.Netns)); err != nil {
			continue
		}
		err := machine.WithLinks(e.Netns, func(h *netlink.Handle) error {
			if loses { // or did, before an apply that was cut off
				calm := *w
				calm.State, calm.Shape.Loss = layout.LinkIsUp, 0
				if err := links.RunNft(links.LossRules(&calm, e.Netns)); err != nil {
					return err
				}
			}
			link, err := h.LinkByName(e.Iface)
			if gone := (netlink.LinkNotFoundError{}); errors.As(err, &gone) {
				return nil
			} else if err == nil {
				err = h.LinkDel(link)
			}
			if errors.Is(err, unix.ENODEV) { // with its other end
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("remove %s of %s: %w", e.Iface, e, err)
		}
	}
	return nil
}

// makeWire makes a wire of which there is nothing.
func (s wiring) makeWire(ctx context.Context, w *layout.Wire) error {
	if w.Cable {
		if _, err := keeper.Ask(ctx, s.Name, keeper.Order{Wire: w.ID, Lay: true}); err != nil {
			return err
		}
	} else if err := machine.WithLinks(w.A.Netns, func(h *netlink.Handle) error { return links.AddWire(h, w) }); err != nil {
		return err
	}
	if err := s.dressEnds(w); err != nil {
		return err
	}
	if w.State == layout.LinkIsDown && !w.Cable {
		if err := links.SetVeth(w, s.Dressed(w), false); err != nil {
			return err
		}
	}
	if err := links.MakeTunnel(w); err != nil {
		return err
	}
	if err := nodes.SwitchesOf(s.Lab).ChangePorts(ctx, w, nodes.AddPort); err != nil {
		return err
	}
	if w.Shape.Rate != 0 {
		if err := links.ApplyRates(w); err != nil {
			return err
		}
	}
	if w.Lossy() {
		return links.ApplyLoss(w)
	}
	return nil
}

// applyShape has a wire do to packets what its shape says.
func (s wiring) applyShape(ctx context.Context, w *layout.Wire) error {
	if w.Cable {
		o := keeper.Order{Wire: w.ID, Delay: w.Shape.Delay, Jitter: w.Shape.Jitter, Down: w.State == layout.LinkIsDown}
		if _, err := keeper.Ask(ctx, s.Name, o); err != nil {
			return err
		}
	}
	if err := links.ApplyRates(w); err != nil {
		return err
	}
	if machine.NeedTools("nft") != nil { // then it has no loss, and had none
		return nil
	}
	return links.ApplyLoss(w)
}
