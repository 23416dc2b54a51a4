package forwarding

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// cluster is several instances of forwarding on one network. What they tell
// each other waits until it is carried.
type cluster struct {
	t      *testing.T
	net    *network
	edges  []flow.Location
	change func(*Config)
	run    []*instance
	sent   [][]flow.Mod // by each decision that an instance has sent on its own
	told   []*api.RouteChanged
	clock  time.Time
}

type instance struct {
	*engine
	f *flooding
}

func newCluster(t *testing.T, net *network, n int, change func(*Config), edges ...flow.Location) *cluster {
	c := &cluster{t: t, net: net, edges: edges, change: change, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for range n {
		c.start()
	}
	return c
}

// start adds an instance as the runtime does: it is told what is retained.
func (c *cluster) start() *instance {
	e := testEngine(c.t, c.net, c.change)
	i := &instance{e, newFlooding(e, time.Millisecond)}
	e.now = func() time.Time { return c.clock }
	e.send = func(d *flow.Decision) (*api.ApplyResult, error) {
		c.sent = append(c.sent, slices.Clone(d.Flows))
		return c.net.send(d)
	}
	e.publish = func(ev *api.RouteChanged) { c.told = append(c.told, ev) }
	e.observe, e.readGroups = c.observe, c.groups
	e.askAgain()
	for sw := range c.switches() {
		ev := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Since: "2026-01-01T00:00:00Z"}}
		for at := range c.net.links {
			if at.Switch == sw {
				ev.Ports = append(ev.Ports, &api.Port{Dpid: sw.String(), Port: uint32(at.Port), Up: !c.net.down[at]})
			}
		}
		e.switchChanged(ev)
		i.f.switchChanged(ev)
	}
	for at := range c.net.links {
		setRole(e.portTable, at, flow.RoleLink)
	}
	for _, at := range c.edges {
		setRole(e.portTable, at, flow.RoleEdge)
	}
	for at := range c.net.links {
		if !c.net.down[at] {
			e.linkChanged(c.link(at))
		}
	}
	c.run = append(c.run, i)
	c.regroup()
	i.upkeep()
	return i
}

// upkeep does what is due now.
func (i *instance) upkeep() {
	i.runPeriodic(i.now())
	i.rescue(i.now())
}

func (c *cluster) switches() map[flow.DPID]bool {
	all := map[flow.DPID]bool{}
	for at := range c.net.links {
		all[at.Switch] = true
	}
	return all
}

func (c *cluster) link(at flow.Location) *api.LinkChanged {
	state := "up"
	if c.net.down[at] {
		state = "one_way"
	}
	return &api.LinkChanged{
		Link:    &api.Link{Src: api.NewLocation(at), Dst: api.NewLocation(c.net.links[at]), State: state},
		Removed: c.net.down[at],
	}
}

// kill ends an instance; what it has not told is lost with it.
func (c *cluster) kill(n int) {
	c.run = slices.Delete(c.run, n, n+1)
	c.regroup()
}

func (c *cluster) regroup() {
	for n, i := range slices.Clone(c.run) {
		i.regroup(i.f, n, len(c.run))
	}
}

// observe has all switches tell all instances what they have.
func (c *cluster) observe([]string) (dpids []string, err error) {
	for sw := range c.switches() {
		dpids = append(dpids, sw.String())
		for _, i := range c.run {
			i.handleRouteReport(c.entries(sw))
		}
	}
	return dpids, nil
}

func (c *cluster) entries(sw flow.DPID) *api.FlowsObserved {
	ev := &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerRoutes.String()}
	for _, entry := range c.net.table[sw] {
		ev.Flows = append(ev.Flows, api.NewFlowEntry(sw, &entry))
	}
	return ev
}

// groups returns the groups that a switch has.
func (c *cluster) groups(dpid string) (*api.ReadGroupsResponse, error) {
	sw, _ := flow.ParseDPID(dpid)
	resp := &api.ReadGroupsResponse{}
	for id, g := range c.net.group[sw] {
		m := &api.Group{Dpid: dpid, Id: id}
		for _, b := range g.Buckets {
			m.Buckets = append(m.Buckets, &api.Bucket{Actions: flow.ActionStrings(b.Actions)})
		}
		resp.Groups = append(resp.Groups, m)
	}
	return resp, nil
}

// carry has what instances have to tell each other told.
func (c *cluster) carry() {
	for busy := true; busy; {
		busy = false
		for _, from := range c.run {
			for m := from.sharing.take(); m != nil; m = from.sharing.take() {
				busy = true
				for _, to := range c.run {
					if to != from {
						to.handleShared(m)
						if m.Flooding != nil {
							to.f.handleShared(m.Flooding)
						}
					}
				}
			}
		}
	}
}

// packet has a packet from one host to another come to an instance, if the
// switches do not know it yet.
func (c *cluster) packet(n int, from, to host) {
	c.t.Helper()
	c.clock = c.clock.Add(2 * time.Second)
	c.packetAt(n, from, to, c.clock)
}

func (c *cluster) packetAt(n int, from, to host, at time.Time) {
	c.t.Helper()
	d := &flow.Decision{}
	if v := c.run[n].open(from.at.Switch)(packetIn(from, &to, tcp(from, to), at.UnixNano()), d); v != flow.Done {
		c.t.Fatalf("verdict %v", v)
	}
	c.net.apply(d)
}

// cut takes a link down and tells all instances, as three instances of paths do.
func (c *cluster) cut(at flow.Location) {
	c.net.cut(at)
	for range 3 {
		for _, i := range c.run {
			i.converged(lostLink(at, c.net.links[at]))
		}
	}
	c.linksChanged(at)
}

func (c *cluster) linksChanged(at flow.Location) {
	for _, i := range c.run {
		i.linkChanged(c.link(at))
		i.linkChanged(c.link(c.net.links[at]))
	}
}

// mend brings a link back up.
func (c *cluster) mend(at flow.Location) {
	delete(c.net.down, at)
	delete(c.net.down, c.net.links[at])
	c.linksChanged(at)
	for _, i := range c.run {
		i.converged(&api.PathsConverged{Gained: []*api.Link{c.link(at).Link, c.link(c.net.links[at]).Link}})
	}
}

// check fails if instances differ about the routes, or the switches have other
// entries than these need.
func (c *cluster) check() {
	c.t.Helper()
	first := c.run[0].ways()
	for n, i := range c.run[1:] {
		if other := i.ways(); fmt.Sprint(first) != fmt.Sprint(other) {
			c.t.Fatalf("instances 0 and %d differ:\n%v\n%v", n+1, first, other)
		}
	}
	checkEntries(c.t, 0, c.run[0].engine, c.net)
}

// ways returns the routes in words, in order.
func (e *engine) ways() (list []string) {
	e.routes.each(func(r *route) { list = append(list, fmt.Sprint(r.src, r.dst, r.hops, r.detours)) })
	slices.Sort(list)
	return list
}

// arrives fails if packets between two hosts do not arrive by what the switches
// have.
func (c *cluster) arrives(a, b host) {
	c.t.Helper()
	c.net.out = nil
	c.net.forward(a.at, string(tcp(a, b)), 0)
	c.net.forward(b.at, string(tcp(b, a)), 0)
	if len(c.net.out) != 2 || c.net.out[0].at != b.at || c.net.out[1].at != a.at {
		c.t.Fatalf("packets between %v and %v came out at %v", a.at, b.at, c.net.out)
	}
}

// ring returns six switches in a ring, and n hosts at each of two opposite ones.
func ring(t *testing.T, n int) (net *network, hosts []host, edges []flow.Location) {
	net = newNetwork(t)
	for i := range 6 {
		net.link(flow.DPID(i+1), 2, flow.DPID((i+1)%6+1), 1)
	}
	for i := range n {
		a, b := newHost(2*i+1, 1, flow.Port(30+i)), newHost(2*i+2, 4, flow.Port(30+i))
		hosts = append(hosts, a, b)
		edges = append(edges, a.at, b.at)
	}
	return net, hosts, edges
}
