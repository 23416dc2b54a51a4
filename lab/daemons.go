package lab

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

// daemon is a process that detaches itself and names itself in a file.
type daemon struct {
	name    string
	pidfile string
	start   func(context.Context) error
	then    func() error // once it has been started again
	pidfd   int          // -1 if it is not known to run
}

// daemons lists those of the lab's Open vSwitches and nodes.
func (s routers) daemons() []*daemon {
	var all []*daemon
	for _, o := range switchesOf(s.Lab).allOVS() {
		if o.node != "" && s.Pending(o.node) {
			continue
		}
		all = append(all,
			&daemon{name: "ovsdb-server", pidfile: filepath.Join(o.dir, "ovsdb-server.pid"), start: o.serveDatabase},
			&daemon{name: "ovs-vswitchd", pidfile: filepath.Join(o.dir, "ovs-vswitchd.pid"), start: o.startSwitching, then: func() error { return switchesOf(s.Lab).restoreRates(o) }})
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if s.Pending(n.Name) {
			continue
		}
		for _, d := range routingOf(s.Lab).frrDaemons() {
			all = append(all, &daemon{name: d + " of " + n.Name, pidfile: filepath.Join(routingOf(s.Lab).routingDir(n), d+".pid"),
				start: func(ctx context.Context) error { return routingOf(s.Lab).startFRR(ctx, n, d) }})
		}
	}
	return all
}

// restoreRates sets the rates of an Open vSwitch's ports anew, which it removes
// when it starts.
func (s switches) restoreRates(o ovs) error {
	now, err := layout.Load(s.Name) // links may have changed
	if err != nil {
		return err
	}
	for i := range now.Wires {
		if w := &now.Wires[i]; w.Shape.Rate != 0 && (w.A.Netns == o.netns || w.B.Netns == o.netns) {
			if err := links.ApplyRates(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// open finds the process; false if it does not run.
func (d *daemon) open() bool {
	d.pidfd = -1
	text, err := asowner.ReadFile(d.pidfile)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return false
	}
	if d.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		d.pidfd = -1
		return false
	}
	if machine.PollUntil(int32(d.pidfd), time.Now()) { // it has ended, and nobody has asked how
		d.close()
		return false
	}
	return true
}

func (d *daemon) close() {
	if d.pidfd >= 0 {
		unix.Close(d.pidfd)
		d.pidfd = -1
	}
}

// nodesFile is the configuration of `weft node run`.
func (s routers) nodesFile() string { return filepath.Join(s.Dir(), "nodes.json") }

// writeNodes writes it.
func (s routers) writeNodes() error {
	c := node.Config{}
	for i := range s.Nodes {
		if s.Nodes[i].Kind == topology.KindHybrid {
			c.Nodes = append(c.Nodes, s.entity(&s.Nodes[i]))
		}
	}
	if c.Nodes == nil {
		return os.RemoveAll(s.nodesFile())
	}
	b, err := json.MarshalIndent(&c, "", " ")
	if err == nil {
		err = machine.ReplaceFile(s.nodesFile(), b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the nodes: %w", err)
	}
	return nil
}

// entity is a hybrid node as its management entity knows it.
func (s routers) entity(n *layout.Node) node.Node {
	o := switchesOf(s.Lab).ovsOf(n.Name)
	e := node.Node{Name: n.Name, Management: filepath.Join(o.dir, n.Short+".mgmt"), Namespace: o.netns, Ports: []node.Port{}}
	if s.Topology.InBand() {
		e.Protected = []netip.Prefix{topology.ControlPrefix()}
	}
	if sw, ok := s.Topology.SwitchByName(n.Name); ok {
		e.DPID = flow.DPID(sw.DPID)
	}
	e.Bridge, e.Database, e.Switchd = n.Short, filepath.Join(o.dir, "db.sock"), filepath.Join(o.dir, "ovs-vswitchd.ctl")
	e.RoutingNamespace, e.Routing = machine.HostNetns(s.Name, n.Name), routingOf(s.Lab).routingDir(n)
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

// nodeOptions is that of `weft node run`.
func (s routers) nodeOptions() string {
	if slices.Contains(s.Topology.Controllers, topology.ControllerNone) {
		return "--alone"
	}
	return ""
}

// killAfter is the time from SIGTERM to SIGKILL.
const killAfter = time.Second
