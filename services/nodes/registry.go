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
	"github.com/weft-sdn/weft/nib"
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
	names  map[flow.DPID]string // of nodes, as their switches have last said them
	net    nib.Snapshot
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
		nodes: map[flow.DPID]*node{}, held: held{agents: map[string]int{}}, names: map[flow.DPID]string{},
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
		hybrid, _ := b.hybrid(sw)
		return b.held.full(agent, n, r, hybrid || n != nil && n.known)
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
	hybrid, _ := b.hybrid(sw)
	n.agent, n.heard, n.known = agent, now, n.known || hybrid
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
	hybrid, _ := b.hybrid(n.dpid)
	switch {
	case now.Sub(n.heard) >= b.cfg.Stale:
		n.state = stateStale
	case !hybrid:
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

// networkChanged follows switches and links.
func (b *registry) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	for _, s := range c.Switches() {
		if s.Is == nil {
			continue
		}
		sw := s.Is.Key
		if h, _ := flow.ParseHybrid(s.Is.Is.Switch.Description); h != nil {
			b.names[sw] = h.Name
		}
		n := b.nodes[sw]
		if n == nil {
			continue
		}
		if hybrid, _ := b.hybrid(sw); hybrid && !n.known {
			b.held.drop(n)
			n.known = true
			b.held.add(n)
		}
		if n.judge(b, b.now()) {
			b.tell(n)
		}
	}
}

// hybrid reports whether a switch says that it is a hybrid node, and whether it is
// connected; one that is not says nothing.
func (b *registry) hybrid(sw flow.DPID) (hybrid, connected bool) {
	s := b.net.Connected(sw)
	if s == nil {
		return false, false
	}
	h, _ := flow.ParseHybrid(s.Description)
	return h != nil, true
}

// far returns where the link from a port leads, false if it has none.
func (b *registry) far(at flow.Location) (flow.Location, bool) {
	for l := range b.net.LinksFrom(at.Switch) {
		if l.Key.Src == at {
			return l.Key.Dst, true
		}
	}
	return flow.Location{}, false
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
