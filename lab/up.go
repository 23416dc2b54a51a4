package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// Options says how Up brings a topology up.
type Options struct {
	// Name of the lab, unique among those that are up; empty: the topology's.
	Name string
	// Controllers replaces the topology's, if not empty: tcp:HOST:PORT,
	// ssl:HOST:PORT (TCP, too; what is in it, switch and controller keep secret) and
	// unix:PATH are dialled from the namespace Up was called in, ControllerDirect
	// expects the controller to listen on Lab.ControllerSocket, ControllerNone is none.
	Controllers []string
	// TLS is what the switches show a controller that is ssl:HOST:PORT.
	TLS *layout.TLS
	// KeeperCommand runs keeper.Run; the lab's name is appended. In a test it is
	// os.Args[0], and TestMain begins with keeper.RunIfAsked.
	KeeperCommand []string
	// Weft is the absolute path of the program that is weft in the hosts' commands,
	// and that is run for hybrid nodes; empty: the one in PATH.
	Weft string
	// Temporary says that the lab is to last as long as this process: once that
	// has ended, nobody owns the lab, and Prune takes it down.
	Temporary bool
	// Progress, if not nil, receives the steps of the work, from one goroutine.
	Progress func(doing string)
	// Node, if not nil, receives what has been done to each node, from several goroutines.
	Node func(node, did string)
}

// Up brings a topology up and returns once every switch has its ports, every
// host its addresses, and every program has run for a second or ended, which
// Lab.Programs says; whether switches have reached their controller is theirs
// to say. If anything fails, or ctx ends, it takes down what it made.
// It refuses a name already up.
func Up(ctx context.Context, topo *topology.Topology, opt Options) (*Lab, error) {
	t := topo.Clone()
	if opt.Name != "" {
		t.Name = opt.Name
	}
	if len(opt.Controllers) > 0 {
		t.Controllers = slices.Clone(opt.Controllers)
	}
	t.Complete()
	if err := topology.Check(t); err != nil {
		return nil, err
	}
	if len(opt.KeeperCommand) == 0 {
		return nil, errors.New("lab.Options.KeeperCommand is empty: give the command that runs keeper.Run")
	}
	if os.Getenv(machine.KeeperEnv) != "" {
		return nil, errors.New("this process is a lab's keeper: its main or TestMain must begin with keeper.RunIfAsked")
	}
	if err := machine.NeedRoot(); err != nil {
		return nil, err
	}
	s := layout.Lay(t)
	s.TLS, s.Weft, s.Notify, s.Given = opt.TLS, opt.Weft, opt.Node, len(opt.Controllers) > 0
	dir, err := filepath.Abs(filepath.Dir(t.File()))
	if err != nil {
		return nil, fmt.Errorf("find the directory of %s: %w", t.File(), err)
	}
	s.Directory = dir
	if err := errors.Join(nodes.HostsOf(s).CheckPrograms(), nodes.HostsOf(s).CheckCPUs()); err != nil {
		return nil, err
	}
	if err := nodes.SwitchesOf(s).CheckTLS(); err != nil {
		return nil, err
	}
	s.Created, s.Maker, s.Temporary = time.Now(), machine.Self(), opt.Temporary
	tools := []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "prlimit"}
	if t.Tunnels() || slices.ContainsFunc(s.Wires, func(w layout.Wire) bool { return w.Lossy() }) {
		tools = append(tools, "nft")
	}
	if err := machine.NeedTools(tools...); err != nil {
		return nil, err
	}
	if err := nodes.RoutingOf(s).NeedRouting(); err != nil {
		return nil, err
	}
	if err := s.Claim(); err != nil {
		return nil, err
	}
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	if err := build(ctx, s, opt); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, errors.Join(fmt.Errorf("bring lab %s up: %w", s.Name, err), Down(clean, s.Name))
	}
	return handleOf(s), nil
}

func build(ctx context.Context, s *layout.Lab, opt Options) error {
	home, err := machine.FindHome()
	if err != nil {
		return err
	}
	defer home.Close()
	if err := home.PrepareNetnsDir(); err != nil {
		return err
	}
	if err := s.WriteNames(); err != nil {
		return err
	}
	if err := nodes.RoutersOf(s).WriteNodes(); err != nil {
		return err
	}
	if err := s.KeepText(s.Topology.Text()); err != nil {
		return err
	}
	if err := machine.RaiseNeighbourLimits(len(s.Topology.Hosts)); err != nil {
		return err
	}
	opt.Progress(fmt.Sprintf("making %d hosts and %d links", len(s.Topology.Hosts), len(s.Wires)))
	if err := home.CreateNetns(machine.SwitchNetns(s.Name), links.PrepareSwitchNetns); err != nil {
		return err
	}
	if err := nodes.RoutersOf(s).BuildNodes(ctx, home); err != nil {
		return err
	}
	if s.Topology.Secure() || s.Topology.InBand() {
		if err := machine.WithLinks(machine.SwitchNetns(s.Name), machine.SetLoopbackUp); err != nil {
			return err
		}
	}
	if s.Topology.InBand() {
		if err := machine.WithLinks(machine.HostNetns(s.Name, s.Topology.Control.At), nodes.SwitchesOf(s).LinkControllers); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return machine.ForEach(gctx, nodes.SwitchesOf(s).AllOVS(), nodes.OVS.StartDatabase) })
	g.Go(func() error { return nodes.HostsOf(s).BuildHosts(gctx, home) })
	g.Go(func() error { return wiringOf(s).buildSwitchLinks(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	if err := nodes.HostsOf(s).BuildManagement(ctx); err != nil {
		return err
	}
	if err := keeper.Start(ctx, s, opt.KeeperCommand); err != nil {
		return err
	}
	if err := wiringOf(s).finishLinks(ctx); err != nil {
		return err
	}
	for i := range s.Wires {
		if err := errors.Join(ctx.Err(), links.MakeTunnel(&s.Wires[i])); err != nil {
			return err
		}
	}
	if err := nodes.RoutersOf(s).DressNodes(ctx); err != nil {
		return err
	}
	opt.Progress(fmt.Sprintf("starting %d switches", len(s.Topology.Switches)))
	g, gctx = errgroup.WithContext(ctx)
	g.Go(func() error {
		return machine.ForEach(gctx, nodes.SwitchesOf(s).AllOVS(), func(o nodes.OVS, ctx context.Context) error { return o.StartSwitches(ctx, s) })
	})
	g.Go(func() error { return nodes.RoutingOf(s).StartRouting(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range s.Wires { // now: Open vSwitch removes what it finds on a new port
		if w := &s.Wires[i]; w.Shape.Rate != 0 {
			if err := links.ApplyRates(w); err != nil {
				return err
			}
		}
	}
	if len(s.Nodes) > 0 {
		if _, err := keeper.Ask(ctx, s.Name, keeper.Order{Nodes: true}); err != nil {
			return err
		}
	}
	s.Ready = true
	if err := s.Save(); err != nil || !s.Topology.HasPrograms() {
		return err
	}
	opt.Progress("starting programs")
	return keeper.StartPrograms(ctx, s)
}

// buildSwitchLinks makes the veth pairs between switches.
func (s wiring) buildSwitchLinks(ctx context.Context) error {
	hosts := len(s.Topology.Hosts)
	spaces, of := bySpace(s.Wires[hosts:hosts+len(s.Topology.Links)], func(w *layout.Wire) []*layout.End { return []*layout.End{&w.A} })
	return machine.ForEach(ctx, spaces, func(ns string, ctx context.Context) error {
		return machine.WithLinks(ns, func(h *netlink.Handle) error {
			for _, at := range of[ns] {
				if err := ctx.Err(); err != nil {
					return err
				}
				if w := at.wire; !w.Cable {
					if err := links.AddWire(h, w); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// finishLinks sets the switches' ends up, dresses the hosts on cables, and
// gives every link its loss.
func (s wiring) finishLinks(ctx context.Context) error {
	spaces, of := bySpace(s.Wires, func(w *layout.Wire) []*layout.End {
		if w.B.Host {
			return []*layout.End{&w.A}
		}
		return []*layout.End{&w.A, &w.B}
	})
	err := machine.ForEach(ctx, spaces, func(ns string, ctx context.Context) error {
		var rules strings.Builder
		return machine.WithLinks(ns, func(h *netlink.Handle) error {
			for _, at := range of[ns] {
				if err := nodes.RoutersOf(s.Lab).BringUp(h, at.wire, at.end); err != nil {
					return err
				}
				if at.wire.Lossy() && (at.end == &at.wire.A || at.wire.A.Netns != ns) {
					rules.WriteString(links.LossRules(at.wire, ns))
				}
			}
			if rules.Len() > 0 {
				return links.RunNft(rules.String())
			}
			return ctx.Err()
		})
	})
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(4)
	for i := range s.Topology.Hosts {
		host, w := &s.Topology.Hosts[i], &s.Wires[i]
		if w.Shape == (topology.Shape{}) && !w.Cable {
			continue
		}
		g.Go(func() error { return finishHost(w, host) })
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// finishHost does at a host's end of a wire what must wait for the wire.
func finishHost(w *layout.Wire, host *topology.Host) error {
	return machine.WithLinks(w.B.Netns, func(h *netlink.Handle) error {
		if err := links.DressHost(h, w, host); err != nil {
			return err
		}
		if w.Lossy() {
			return links.RunNft(links.LossRules(w, w.B.Netns))
		}
		return nil
	})
}

// wireEnd is an end of a wire.
type wireEnd struct {
	wire *layout.Wire
	end  *layout.End
}

// bySpace returns the namespaces of the ends that pick picks of each wire, in
// order, and those ends.
func bySpace(wires []layout.Wire, pick func(*layout.Wire) []*layout.End) (spaces []string, of map[string][]wireEnd) {
	of = map[string][]wireEnd{}
	for i := range wires {
		for _, e := range pick(&wires[i]) {
			if of[e.Netns] == nil {
				spaces = append(spaces, e.Netns)
			}
			of[e.Netns] = append(of[e.Netns], wireEnd{&wires[i], e})
		}
	}
	return spaces, of
}
