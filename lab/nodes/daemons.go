package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/node"
)

// The keeper of a lab with hybrid nodes or routers is to their daemons what the
// machine's init is to those of a real one: it starts again what has ended.

// Daemon is a process that detaches itself and names itself in a file.
type Daemon struct {
	Name    string
	pidfile string
	Start   func(context.Context) error
	Then    func() error // once it has been started again
	Pidfd   int          // -1 if it is not known to run
}

// Daemons lists those of the lab's Open vSwitches and nodes.
func (s Routers) Daemons() []*Daemon {
	var all []*Daemon
	for _, o := range SwitchesOf(s.Lab).AllOVS() {
		if o.Node != "" && s.Pending(o.Node) {
			continue
		}
		all = append(all,
			&Daemon{Name: "ovsdb-server", pidfile: filepath.Join(o.Dir, "ovsdb-server.pid"), Start: o.serveDatabase},
			&Daemon{Name: "ovs-vswitchd", pidfile: filepath.Join(o.Dir, "ovs-vswitchd.pid"), Start: o.StartSwitching, Then: func() error { return SwitchesOf(s.Lab).restoreRates(o) }})
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if s.Pending(n.Name) {
			continue
		}
		for _, d := range RoutingOf(s.Lab).FRRDaemons() {
			all = append(all, &Daemon{Name: d + " of " + n.Name, pidfile: filepath.Join(RoutingOf(s.Lab).RoutingDir(n), d+".pid"),
				Start: func(ctx context.Context) error { return RoutingOf(s.Lab).startFRR(ctx, n, d) }})
		}
	}
	return all
}

// restoreRates sets the rates of an Open vSwitch's ports anew, which it removes
// when it starts.
func (s Switches) restoreRates(o OVS) error {
	now, err := layout.Load(s.Name) // links may have changed
	if err != nil {
		return err
	}
	for i := range now.Wires {
		if w := &now.Wires[i]; w.Shape.Rate != 0 && (w.A.Netns == o.Netns || w.B.Netns == o.Netns) {
			if err := links.ApplyRates(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// Open finds the process; false if it does not run.
func (d *Daemon) Open() bool {
	d.Pidfd = -1
	text, err := asowner.ReadFile(d.pidfile)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return false
	}
	if d.Pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		d.Pidfd = -1
		return false
	}
	if machine.PollUntil(int32(d.Pidfd), time.Now()) { // it has ended, and nobody has asked how
		d.Close()
		return false
	}
	return true
}

func (d *Daemon) Close() {
	if d.Pidfd >= 0 {
		unix.Close(d.Pidfd)
		d.Pidfd = -1
	}
}

// NodesFile is the configuration of `weft node run`.
func (s Routers) NodesFile() string { return filepath.Join(s.Dir(), "nodes.json") }

// WriteNodes writes it.
func (s Routers) WriteNodes() error {
	c := node.Config{}
	for i := range s.Nodes {
		if s.Nodes[i].Kind == topology.KindHybrid {
			c.Nodes = append(c.Nodes, s.Entity(&s.Nodes[i]))
		}
	}
	if c.Nodes == nil {
		return os.RemoveAll(s.NodesFile())
	}
	b, err := json.MarshalIndent(&c, "", " ")
	if err == nil {
		err = machine.ReplaceFile(s.NodesFile(), b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the nodes: %w", err)
	}
	return nil
}

// Entity is a hybrid node as its management entity knows it.
func (s Routers) Entity(n *layout.Node) node.Node {
	o := SwitchesOf(s.Lab).OVSOf(n.Name)
	e := node.Node{Name: n.Name, Management: filepath.Join(o.Dir, n.Short+".mgmt"), Namespace: o.Netns, Ports: []node.Port{}}
	if s.Topology.InBand() {
		e.Protected = []netip.Prefix{topology.ControlPrefix()}
	}
	if sw, ok := s.Topology.SwitchByName(n.Name); ok {
		e.DPID = flow.DPID(sw.DPID)
	}
	e.Bridge, e.Database, e.Switchd = n.Short, filepath.Join(o.Dir, "db.sock"), filepath.Join(o.Dir, "ovs-vswitchd.ctl")
	e.RoutingNamespace, e.Routing = machine.HostNetns(s.Name, n.Name), RoutingOf(s.Lab).RoutingDir(n)
	e.Loopback, e.Loopbacks, e.Neighbours = n.Loopback, s.Loopbacks(), s.Expected(n)
	if !s.Topology.Routing.IPv4Only {
		e.Loopback6 = n.Loopback6
	}
	for i := range n.Ports {
		switch p := &n.Ports[i]; p.Role {
		case layout.RoleAccess:
			e.Access = append(e.Access, node.AccessPort{Port: p.Port, Interface: s.EndOf(n, p).Iface})
		case layout.RoleLink, layout.RoleSegment:
			if e.MTU == 0 || p.MTU < e.MTU {
				e.MTU = p.MTU
			}
		}
	}
	for _, p := range n.Routed() {
		e.Ports = append(e.Ports, node.Port{
			Port: p.Port, Interface: s.EndOf(n, p).Iface,
			Internal: p.Internal, InternalInterface: p.InternalInterface, Routed: p.Interface, Customer: p.Role == layout.RoleGateway,
		})
	}
	return e
}

// NodeOptions is that of `weft node run`.
func (s Routers) NodeOptions() string {
	if slices.Contains(s.Topology.Controllers, topology.ControllerNone) {
		return "--alone"
	}
	return ""
}

// KillAfter is the time from SIGTERM to SIGKILL.
const KillAfter = time.Second
