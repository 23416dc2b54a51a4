package nodes

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// The states of a node.
const (
	stateLive    = "live"
	stateStale   = "stale"
	stateUnknown = "unknown"
)

// forgotten is how many times Stale a node is remembered that is not heard of.
const forgotten = 720

// A registry is what is known of nodes, links and tunnel ports.
type registry struct {
	reached  object.Limits // of the configuration
	cfg      *Config
	now      func() time.Time
	tellNode func(*api.NodeChanged)
	tellPort func(*api.TunnelPortChanged)
	began    time.Time

	mu     object.Guard // guards the following
	nodes  map[flow.DPID]*node
	held   held
	names  map[flow.DPID]string            // of nodes, as their switches have last said them
	hybrid map[flow.DPID]bool              // whether switches say that they are, of those that are connected
	links  map[flow.Location]flow.Location // that are up, from and to hybrid nodes or not
	ports  *object.Store[*tunnelPort]
	of     map[flow.DPID]map[string]bool // the tunnel ports of a switch
	told   map[string]*api.TunnelPort    // as subscribers know them
	damped map[string]*damping           // by agent
}

// node is a node that has been heard of.
type node struct {
	dpid     flow.DPID
	report   *api.NodeReport // nobody writes to it
	agent    string
	heard    time.Time
	known    bool // its switch has been here
	octets   int  // of its report, as held counts them
	state    string
	wanted   *api.NodeWanted // as it was last computed; nil: not since the start; nobody writes to it
	sessions map[uint32]*session
}

func newRegistry(cfg *Config, bucket object.Bucket, now func() time.Time, bad func(string, error)) *registry {
	b := &registry{cfg: cfg, now: now, began: now(), tellNode: func(*api.NodeChanged) {}, tellPort: func(*api.TunnelPortChanged) {},
		nodes: map[flow.DPID]*node{}, held: held{agents: map[string]int{}}, hybrid: map[flow.DPID]bool{}, names: map[flow.DPID]string{}, links: map[flow.Location]flow.Location{},
		of: map[flow.DPID]map[string]bool{}, told: map[string]*api.TunnelPort{}, damped: map[string]*damping{}}
	b.ports = object.New(&b.mu, bucket, object.Kind[*tunnelPort]{
		What: "tunnel port", Many: "tunnel ports", Most: func() int { return mostTunnels }, Raise: "",
		Name:    func(p *tunnelPort) string { return p.name() },
		Format:  object.Messages(parsePort, (*tunnelPort).message),
		Changed: b.portChanged, Bad: bad,
	})
	return b
}

// report takes the report of an agent, and returns what is wanted and how many
// nodes were refused. All nodes are entered before any is answered: what is wanted of
// one depends on the others.
func (b *registry) report(q *api.ReportNodesRequest) (*api.ReportNodesResponse, int, error) {
	if err := checkReport(q); err != nil {
		return nil, len(q.GetNodes()), err
	}
	answer := &api.ReportNodesResponse{}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, refused := b.now(), 0
	var taken []*node
	var alarms []flow.Location
	has := map[flow.DPID]uint64{} // versions
	for _, r := range q.Nodes {
		sw, _ := flow.ParseDPID(r.Dpid)
		if why := b.refuse(q.Agent, sw, r, now); why != "" {
			refused++
			answer.Nodes = append(answer.Nodes, &api.NodeWanted{Dpid: r.Dpid, Refused: why})
			continue
		}
		n := b.nodes[sw]
		if r.Unchanged && (n == nil || n.agent != q.Agent) {
			answer.Nodes = append(answer.Nodes, &api.NodeWanted{Dpid: r.Dpid, Whole: true})
			continue
		}
		alarms = append(alarms, b.take(q.Agent, sw, r, now)...)
		taken, has[sw] = append(taken, b.nodes[sw]), r.Wanted
	}
	b.damp(q.Agent, alarms, now)
	interval := b.interval(q.Agent)
	for _, n := range taken {
		if n.wanted == nil {
			n.learn(interval, now)
		}
	}
	for _, n := range taken {
		w := b.want(n, interval)
		if w.Version != 0 {
			n.wanted = w
		}
		if w.Version != has[n.dpid] {
			answer.Nodes = append(answer.Nodes, w)
		}
	}
	return answer, refused, nil
}

// refuse returns why the report of a node is not taken; empty: it is. It is
// called with mu held.
func (b *registry) refuse(agent string, sw flow.DPID, r *api.NodeReport, now time.Time) string {
	n := b.nodes[sw]
	switch {
	case !b.cfg.mayReport(agent, r.Dpid):
		return "by nodes.agents, " + agent + " may not report it"
	case n != nil && n.agent != agent && !b.named(agent, sw) && (now.Sub(n.heard) < b.cfg.Stale || b.named(n.agent, sw)):
		return n.agent + " reports it, too: one at a time may, and the one that has the node's name before others; see nodes.agents"
	case n == nil && len(b.nodes) >= b.cfg.Nodes:
		b.reached.Reach(now.UnixNano(), "nodes.nodes", b.cfg.Nodes, "node of switch "+sw.String())
		return "there are as many nodes as nodes.nodes says"
	case !r.Unchanged:
		if err := checkNode(r); err != nil {
			return err.Error()
		}
		if o := b.holder(sw, r.Loopback); o != nil && !b.named(agent, sw) {
			return fmt.Sprintf("loopback %s is that of the node of switch %v, by %s", r.Loopback, o.dpid, o.agent)
		}
		return b.held.full(agent, n, r, b.hybrid[sw] || n != nil && n.known)
	}
	return ""
}

// named reports whether an agent has the name of a node, as the node's switch says it, or its
// number: then it is the node's own, unless nodes.agents says whose it is. It is called with mu held.
func (b *registry) named(agent string, sw flow.DPID) bool {
	return len(b.cfg.Agents) == 0 && agent != "" && (agent == b.names[sw] || agent == sw.String())
}

// holder returns another node with a loopback; nil if there is none, or it is stale. It is
// called with mu held.
func (b *registry) holder(sw flow.DPID, loopback string) *node {
	if n := b.nodes[sw]; loopback == "" || n != nil && n.report.Loopback == loopback {
		return nil
	}
	for _, n := range b.nodes {
		if n.dpid != sw && n.report.Loopback == loopback && n.state != stateStale {
			return n
		}
	}
	return nil
}

// take enters a report that is as it should be, and returns the links whose sessions
// have had a false alarm. It is called with mu held.
func (b *registry) take(agent string, sw flow.DPID, r *api.NodeReport, now time.Time) (alarms []flow.Location) {
	n := b.nodes[sw]
	if n == nil {
		n = &node{dpid: sw, sessions: map[uint32]*session{}, report: &api.NodeReport{}}
		b.nodes[sw] = n
	}
	b.held.drop(n)
	defer b.held.add(n)
	n.agent, n.heard, n.known = agent, now, n.known || b.hybrid[sw]
	changed := n.judge(b, now)
	is := n.report
	if !r.Unchanged {
		is = proto.CloneOf(r)
		is.Wanted = 0
	}
	for _, p := range is.Ports {
		if n.damp(p, now) && p.Role == flow.RoleLink.String() {
			alarms = append(alarms, flow.Location{Switch: sw, Port: flow.Port(p.Port)})
		}
	}
	if !proto.Equal(is, n.report) {
		n.report, changed = is, true
	}
	if changed {
		b.tell(n)
	}
	return alarms
}

// port returns a port as it was last reported; nil if there is none.
func (n *node) port(number uint32) *api.NodePort {
	i, found := slices.BinarySearchFunc(n.report.Ports, number, func(p *api.NodePort, x uint32) int { return int(p.Port) - int(x) })
	if !found {
		return nil
	}
	return n.report.Ports[i]
}

// judge sets the state of a node, and reports whether it has changed.
func (n *node) judge(b *registry, now time.Time) bool {
	was := n.state
	switch {
	case now.Sub(n.heard) >= b.cfg.Stale:
		n.state = stateStale
	case !b.hybrid[n.dpid]:
		n.state = stateUnknown
	default:
		n.state = stateLive
	}
	return n.state != was
}

// tell makes a node known, and what follows for its tunnel ports. It is called
// with mu held.
func (b *registry) tell(n *node) {
	m := n.message()
	m.Wanted = nil
	b.tellNode(&api.NodeChanged{Node: m})
	for name := range b.of[n.dpid] {
		b.tellTunnel(b.ports.Get(name))
	}
}

func (n *node) message() *api.Node {
	return &api.Node{Report: n.report, Agent: n.agent, State: n.state, Heard: n.heard.UTC().Format(time.RFC3339), Wanted: n.wanted}
}

// look finds the nodes that are stale or forgotten.
func (b *registry) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for sw, n := range b.nodes {
		switch {
		case now.Sub(n.heard) >= forgotten*b.cfg.Stale, !n.known && now.Sub(n.heard) >= forgottenUnknown*b.cfg.Stale:
			delete(b.nodes, sw)
			b.held.drop(n)
			b.tellNode(&api.NodeChanged{Node: n.message(), Gone: true})
		case n.judge(b, now):
			b.tell(n)
		}
	}
}

// list returns the nodes by their switches.
func (b *registry) list() []*api.Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*api.Node, 0, len(b.nodes))
	for _, sw := range slices.Sorted(maps.Keys(b.nodes)) {
		list = append(list, b.nodes[sw].message())
	}
	return list
}

func (b *registry) count(state string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.nodes {
		if x.state == state {
			n++
		}
	}
	return n
}

// switchChanged handles the southbound's event.
func (b *registry) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	h, _ := flow.ParseHybrid(e.Switch.Description)
	b.mu.Lock()
	defer b.mu.Unlock()
	if h != nil {
		b.names[sw] = h.Name
	}
	if e.Switch.Connected {
		b.hybrid[sw] = h != nil
	} else {
		delete(b.hybrid, sw)
	}
	n := b.nodes[sw]
	if n == nil {
		return
	}
	if b.hybrid[sw] && !n.known {
		b.held.drop(n)
		n.known = true
		b.held.add(n)
	}
	if n.judge(b, b.now()) {
		b.tell(n)
	}
}

// linkChanged handles discovery's event.
func (b *registry) linkChanged(e *api.LinkChanged) {
	src, dst := e.GetLink().GetSrc().Flow(), e.GetLink().GetDst().Flow()
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Removed {
		if b.links[src] == dst {
			delete(b.links, src)
		}
	} else {
		b.links[src] = dst
	}
}

// version returns what identifies what is wanted: the same for the same, after
// restarts, too.
func version(w *api.NodeWanted) uint64 {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(w)
	if err != nil {
		return 0 // unknown to the agent: told again
	}
	h := fnv.New64a()
	h.Write(text)
	return max(h.Sum64(), 1)
}
