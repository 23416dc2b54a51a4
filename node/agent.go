package node

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
)

const (
	reportEvery = time.Second
	reportGap   = 20 * time.Millisecond // between two reports of changes
	reportTime  = 5 * time.Second
)

// keeping is a node that is looked after.
type keeping struct {
	*Node
	log   *slog.Logger
	db    *database // nil if it is not reported
	light atomic.Bool
	roads roads
	kick  chan struct{} // a database has changed

	mu      sync.Mutex                        // guards the following
	routing atomic.Pointer[api.NodeRouting]   // nil: not known
	macs    atomic.Pointer[map[string]string] // by the interfaces of the routing; nil: not known
	told    *api.NodeReport                   // the last report that was taken; nil: none
	version uint64                            // of what is wanted
	problem map[uint32]string                 // by port: why it is not as it is wanted
}

// agent reports nodes and does what is wanted of them.
type agent struct {
	nodes  []*keeping
	report Report
	log    *slog.Logger
	kick   chan struct{}
	said   string
}

// wake has a report made soon.
func (a *agent) wake() { kick(a.kick) }

// changed is called when a database has.
func (a *agent) changed() {
	a.wake()
	for _, k := range a.nodes {
		kick(k.kick)
	}
}

// kick has who waits for a channel look once more.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// keepReporting reports until ctx ends.
func (a *agent) keepReporting(ctx context.Context) {
	for ctx.Err() == nil {
		if err := a.once(ctx); ctx.Err() == nil {
			a.say(err)
		}
		if backoff.Sleep(ctx, reportGap) != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-a.kick:
		case <-time.After(reportEvery):
		}
	}
}

// say logs what has changed about the controller.
func (a *agent) say(err error) {
	text := "ok"
	if err != nil {
		text = err.Error()
	}
	if text == a.said {
		return
	}
	if a.said = text; err != nil {
		a.log.Warn("the nodes are not reported; what they have by themselves is kept", "error", err)
	} else {
		a.log.Info("the nodes are reported", "nodes", len(a.nodes))
	}
}

// once makes one report and does what the answer says.
func (a *agent) once(ctx context.Context) error {
	q := &api.ReportNodesRequest{}
	is := map[string]*api.NodeReport{}
	for _, k := range a.nodes {
		if !k.db.reached() {
			continue // nothing is known of its ports
		}
		r := k.describe()
		is[r.Dpid] = r
		k.mu.Lock()
		send := r
		if k.told != nil && proto.Equal(k.told, r) {
			send = &api.NodeReport{Dpid: r.Dpid, Unchanged: true}
		} else {
			send = proto.CloneOf(r)
		}
		send.Wanted = k.version
		k.mu.Unlock()
		q.Nodes = append(q.Nodes, send)
	}
	if len(q.Nodes) == 0 {
		return fmt.Errorf("the database of Open vSwitch at %s is not reached", a.nodes[0].Database)
	}
	wait, cancel := context.WithTimeout(ctx, reportTime)
	answer, err := a.report(wait, q)
	cancel()
	if err != nil {
		return err
	}
	wanted := map[string]*api.NodeWanted{}
	for _, w := range answer.GetNodes() {
		wanted[w.Dpid] = w
	}
	var refused error
	for _, k := range a.nodes {
		r, w := is[k.DPID.String()], wanted[k.DPID.String()]
		if r == nil {
			continue
		}
		k.mu.Lock()
		k.told = r
		if w != nil && (w.Whole || w.Refused != "") {
			k.told = nil
		}
		k.mu.Unlock()
		switch {
		case w == nil:
		case w.Refused != "":
			refused = fmt.Errorf("the controller refuses the report of node %s: %s", k.Name, w.Refused)
		case w.Whole:
			a.wake()
		case w.Version != 0:
			k.obey(ctx, w)
			a.wake()
		}
	}
	return refused
}

// describe returns how a node does.
func (k *keeping) describe() *api.NodeReport {
	r := &api.NodeReport{Dpid: k.DPID.String(), Name: k.Name, Dark: !k.light.Load(), Routing: k.routing.Load()}
	if k.Loopback.IsValid() {
		r.Loopback = k.Loopback.String()
	}
	if k.Loopback6.IsValid() {
		r.Loopback6 = k.Loopback6.String()
	}
	k.mu.Lock()
	problems := k.problem
	k.mu.Unlock()
	add := func(number uint16, name string, role flow.PortRole) *api.NodePort {
		i, there := k.db.iface(name)
		if !there {
			return &api.NodePort{}
		}
		p := &api.NodePort{Port: uint32(number), Name: name, Role: role.String(), Mtu: uint32(max(i.mtu, 0)), Carrier: i.linkState == "up",
			Bfd: i.bfdStatus["state"], Error: problems[uint32(number)]}
		if role == flow.RoleTunnel {
			p.Mtu = uint32(k.MTU)
		}
		if n, err := strconv.ParseUint(i.bfdStatus["flap_count"], 10, 32); err == nil && p.Bfd != "" {
			p.BfdFlaps = uint32(n)
		}
		if n, err := strconv.ParseUint(i.bfd["min_tx"], 10, 16); err == nil && i.bfd["enable"] == "true" {
			p.BfdIntervalMs = uint32(n)
		}
		if p.Error == "" && i.problem != "" {
			p.Error = printable(i.problem)
		}
		r.Ports = append(r.Ports, p)
		return p
	}
	macs := k.macs.Load()
	for _, p := range k.Ports {
		role := flow.RoleLink
		if p.Customer {
			role = flow.RoleAccess
		}
		m := add(p.Port, p.Interface, role)
		m.Internal = uint32(p.Internal)
		if macs != nil {
			m.RoutedMac = (*macs)[p.routed()]
		}
		add(p.Internal, p.InternalInterface, flow.RoleInternal)
	}
	for _, p := range k.Access {
		add(p.Port, p.Interface, flow.RoleAccess)
	}
	for _, t := range k.tunnels() {
		add(t.port, t.name, flow.RoleTunnel)
	}
	slices.SortFunc(r.Ports, func(a, b *api.NodePort) int { return int(a.Port) - int(b.Port) })
	return r
}

// printable returns a text as reports may have it.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.ToValidUTF8(s[:min(len(s), 255)], "")
}

// obey does what a controller wants of a node. What is not listed here, nobody
// can ask for.
func (k *keeping) obey(ctx context.Context, w *api.NodeWanted) {
	problems := map[uint32]string{}
	k.obeyTunnels(ctx, w.Tunnels, problems)
	k.obeyBFD(ctx, w.Bfd, problems)
	k.mu.Lock()
	if k.problem, k.version = problems, w.Version; len(problems) > 0 {
		k.version = 0 // it is tried again
	}
	k.mu.Unlock()
}

// obeyBFD sets the sessions of the ports to other nodes.
func (k *keeping) obeyBFD(ctx context.Context, list []*api.WantedBFD, problems map[uint32]string) {
	wanted := map[uint32]uint32{}
	for _, b := range list {
		wanted[b.Port] = b.IntervalMs
	}
	for _, p := range k.Ports {
		if p.Customer {
			continue
		}
		i, there := k.db.iface(p.Interface)
		set := session(wanted[uint32(p.Port)])
		if !there || equalTexts(i.bfd, set) {
			continue
		}
		err := k.db.transact(ctx, map[string]any{"op": "update", "table": "Interface", "where": named(p.Interface), "row": map[string]any{"bfd": mapping(set)}})
		if err != nil {
			problems[uint32(p.Port)] = printable(err.Error())
		}
	}
}

// The addresses of BFD's packets between bridges, by which they are told from those
// of routing, and of customers, that pass the same port.
const macBFD = "02:57:42:46:44:01"

const (
	leastInterval = 10
	mostInterval  = 10_000
)

// session returns the setting of a session that sends so often; empty for 0.
func session(ms uint32) map[string]string {
	if ms == 0 {
		return map[string]string{}
	}
	text := strconv.Itoa(int(min(max(ms, leastInterval), mostInterval)))
	return map[string]string{"enable": "true", "min_rx": text, "min_tx": text, "bfd_local_dst_mac": macBFD, "bfd_remote_dst_mac": macBFD}
}

func equalTexts(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if b[key] != v {
			return false
		}
	}
	return true
}

// askRouting is how many nodes' routing is asked in a second at most.
const askRouting = 50

// keepRouting asks what the nodes' routing says until ctx ends.
func (a *agent) keepRouting(ctx context.Context) {
	every := max(reportEvery, time.Duration(len(a.nodes))*time.Second/askRouting)
	pause := every / time.Duration(len(a.nodes))
	for {
		for _, k := range a.nodes {
			if macs, err := k.routedMACs(); err == nil {
				k.macs.Store(&macs)
			}
			if k.Routing != "" {
				k.routing.Store(k.ask(ctx))
			}
			if backoff.Sleep(ctx, pause) != nil {
				return
			}
		}
	}
}

// routedMACs returns the Ethernet addresses of the interfaces of a node's routing, by name.
func (k *keeping) routedMACs() (map[string]string, error) {
	macs := map[string]string{}
	ns, err := namespace(k.RoutingNamespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if mac := l.Attrs().HardwareAddr; len(mac) == len(flow.MAC{}) {
			macs[l.Attrs().Name] = flow.MAC(mac).String()
		}
	}
	return macs, nil
}

// ask asks the routing of a node; nil if it does not answer.
func (k *keeping) ask(ctx context.Context) *api.NodeRouting {
	full, err := Adjacencies(ctx, filepath.Join(k.Routing, "ospfd.vty"), OSPFNeighbours)
	if err != nil {
		return nil
	}
	r := &api.NodeRouting{OspfFull: uint32(full), OspfExpected: uint32(k.Neighbours)}
	if k.Loopback6.IsValid() {
		six, err := Adjacencies(ctx, filepath.Join(k.Routing, "ospf6d.vty"), OSPF6Neighbours)
		if err == nil {
			r.Ospf6Full = uint32(six)
		}
	}
	return r
}
