package tunnels

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/policy"
)

// steering is the steers and what their entries depend on. The store's mu guards it.
type steering struct {
	b       *store
	steers  *policy.Policy[*api.Steer, *steer]
	began   time.Time
	declare func(...flow.DPID)    // declares the entries of switches anew
	settle  func(context.Context) // waits until they are in force
	entered map[string]steerWay   // by tunnel: what the entries were last declared for
}

// A steerWay is what entries of steers depend on of a tunnel and of the nodes at its ends.
type steerWay struct {
	from, to         flow.DPID
	up               bool
	customers, links []routedPort // of the head, and of the tail
}

func (w steerWay) equal(o steerWay) bool {
	return w.from == o.from && w.to == o.to && w.up == o.up && slices.Equal(w.customers, o.customers) && slices.Equal(w.links, o.links)
}

func newSteering(b *store) *steering {
	t := &steering{b: b, began: b.now(), declare: func(...flow.DPID) {}, settle: func(context.Context) {}, entered: map[string]steerWay{}}
	t.steers = policy.New(t.kind())
	return t
}

// kind describes the steers. Their entries follow from tunnels and nodes as well, so that the service
// declares them itself.
func (t *steering) kind() policy.Kind[*api.Steer, *steer] {
	return policy.Kind[*api.Steer, *steer]{
		What: "steer", Many: "steers", Bucket: "steers", Guard: &t.b.mu, Raise: "tunnels.steers",
		Set: api.SetSteer, Delete: api.DeleteSteer,
		Check: readSteer, Load: parseSteer, Said: (*steer).message, Status: t.message,
		Admit: t.admit, Changed: t.changed,
		Most:   func() int { return t.b.cfg.Steers },
		Settle: func(ctx context.Context) { t.settle(ctx) },
	}
}

// admit checks a steer beside the tunnels, nodes and other steers, and gives it a number. It is called with
// mu held.
func (t *steering) admit(now, old *steer) error {
	s := t.b.status[now.tunnel]
	refuse := func(format string, args ...any) error {
		return api.Errorf(codes.FailedPrecondition, "steer %s: %s", now.name, fmt.Sprintf(format, args...))
	}
	switch {
	case s == nil || s.tunnel.around != nil:
		return api.Errorf(codes.NotFound, "steer %s: there is no tunnel %s; weft tunnel list has those that are", now.name, now.tunnel)
	case s.tunnel.wanted.User != "":
		return refuse("tunnel %s is kept by %s, which may delete it: make one of your own", now.tunnel, s.tunnel.wanted.User)
	case s.tunnel.overlay():
		return refuse("tunnel %s goes by %s, the nodes' own routing, as plain IP does: want one of transport mpls", now.tunnel, s.tunnel.wanted.Transport)
	case now.at != 0 && now.at != s.tunnel.from:
		return api.Errorf(codes.InvalidArgument, "steer %s: at: tunnel %s begins at switch %v, not at %v", now.name, now.tunnel, s.tunnel.from, now.at)
	}
	now.at = s.tunnel.from
	for _, sw := range []flow.DPID{s.tunnel.from, s.tunnel.to} {
		if t.b.net.Node(sw) == nil {
			return refuse("switch %v, where tunnel %s begins or ends, is not a hybrid node that is reported (weft get nodes): it routes no IP", sw, now.tunnel)
		}
	}
	if p := flow.Port(now.match.Key.InPort); now.match.Set.Has(flow.FieldInPort) {
		found := false
		for _, q := range t.node(now.at).GetPorts() {
			found = found || flow.Port(q.Port) == p && q.Role == flow.RoleAccess.String() && q.Internal != 0
		}
		if !found {
			return api.Errorf(codes.InvalidArgument, "steer %s: match in_port: %v is no port at which node %v routes for a customer", now.name, p, now.at)
		}
	}
	used := map[uint32]bool{}
	for o := range t.steers.All() {
		if o.name == now.name {
			continue
		}
		if used[o.id] = true; o.overlaps(now) {
			return refuse("it overlaps with steer %s: a packet may match both %v and %v; make one of them narrower", o.name, now.match, o.match)
		}
	}
	if old != nil {
		now.id = old.id
		return nil
	}
	for now.id = 1; used[now.id]; now.id++ {
	}
	return nil
}

// changed follows a change of a steer. It is called with mu held.
func (t *steering) changed(old, now *steer) {
	for _, s := range []*steer{old, now} {
		if s == nil {
			continue
		}
		way := t.way(s.tunnel)
		if t.entered[s.tunnel] = way; t.through(s.tunnel) == "" {
			delete(t.entered, s.tunnel)
		}
		t.declare(s.at, way.to)
	}
}

// way returns what entries of steers depend on of a tunnel.
func (t *steering) way(tunnel string) (w steerWay) {
	if s := t.b.status[tunnel]; s != nil {
		from, to := s.tunnel.from, s.tunnel.to
		w = steerWay{from, to, s.state != "down" && !s.tunnel.overlay(),
			routedPorts(t.node(from), flow.RoleAccess), routedPorts(t.node(to), flow.RoleLink)}
	}
	return w
}

// tunnelChanged follows a tunnel. It is called with mu held.
func (t *steering) tunnelChanged(name string) {
	was, steered := t.entered[name]
	if !steered {
		return
	}
	if now := t.way(name); !now.equal(was) {
		t.entered[name] = now
		t.declare(was.from, was.to, now.from, now.to)
	}
}

// nodeChanged follows a hybrid node. It is called with mu held.
func (t *steering) nodeChanged(sw flow.DPID) {
	for name, w := range t.entered {
		if w.from == sw || w.to == sw {
			t.tunnelChanged(name)
		}
	}
}

// through returns the name of a steer that goes through a tunnel; empty if there is none. It is called with mu held.
func (t *steering) through(tunnel string) (name string) {
	for s := range t.steers.All() {
		if s.tunnel == tunnel && (name == "" || s.name < name) {
			name = s.name
		}
	}
	return name
}

func (t *steering) node(sw flow.DPID) *api.NodeReport {
	if n := t.b.net.Node(sw); n != nil {
		return n.Is.GetReport()
	}
	return nil
}

// lacks returns why the packets of a steer go by plain IP; empty if they do not. It is called with mu held.
func (t *steering) lacks(s *steer) string {
	u := t.b.status[s.tunnel]
	switch {
	case u == nil:
		return fmt.Sprintf("there is no tunnel %s any more", s.tunnel)
	case u.tunnel.from != s.at:
		return fmt.Sprintf("tunnel %s begins at switch %v now", s.tunnel, u.tunnel.from)
	case u.tunnel.overlay():
		return fmt.Sprintf("tunnel %s goes by %s now", s.tunnel, u.tunnel.wanted.Transport)
	case u.state == "down":
		return fmt.Sprintf("tunnel %s is down: %s", s.tunnel, u.reason)
	case len(s.entering(routedPorts(t.node(s.at), flow.RoleAccess), 0)) == 0:
		return fmt.Sprintf("node %v reports no port of such customers with the Ethernet address of its routing", s.at)
	case len(routedPorts(t.node(u.tunnel.to), flow.RoleLink)) == 0:
		return fmt.Sprintf("node %v, where the tunnel ends, reports no link with the Ethernet address of its routing", u.tunnel.to)
	}
	return ""
}

// message returns a steer with its state.
func (t *steering) message(s *steer) *api.Steer {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	m := s.message()
	if m.State, m.Reason = "up", t.lacks(s); m.Reason != "" {
		m.State = "down"
	}
	return m
}

// want returns the entries that a switch should have.
func (t *steering) want(sw *api.Switch) *api.SetStandingRequest {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil || sw.GetOpenflow() == "1.0" {
		return nil
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	customers := routedPorts(t.node(dpid), flow.RoleAccess)
	var list []flow.Entry
	six, tail := false, false
	for s := range t.steers.All() {
		u := t.b.status[s.tunnel]
		tail = tail || u != nil && u.tunnel.to == dpid
		if s.at == dpid && t.lacks(s) == "" {
			list = append(list, s.entering(customers, u.tunnel.group)...)
			six = six || !s.match.Set.Has(flow.FieldEthType) || s.match.Key.EthType == flow.EthTypeIPv6
		}
	}
	if six {
		list = append(list, unsteered(customers)...)
	}
	if tail { // also while the tunnel is down: what is under way arrives
		list = append(list, leaving(routedPorts(t.node(dpid), flow.RoleLink))...)
	}
	req := &api.SetStandingRequest{}
	for i := range list {
		req.Flows = append(req.Flows, api.NewFlowEntry(dpid, &list[i]))
	}
	return req
}

// nodesWithin is how long after a start switches keep their entries while their node, or that at the other end,
// has not been reported.
const nodesWithin = 10 * time.Second

// hold returns how much longer a switch keeps its entries of an earlier run.
func (t *steering) hold(sw *api.Switch) time.Duration {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil {
		return 0
	}
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	for s := range t.steers.All() {
		if w := t.way(s.tunnel); (s.at == dpid || w.to == dpid) && (t.b.net.Node(s.at) == nil || t.b.net.Node(w.to) == nil) {
			return max(t.began.Add(nodesWithin).Sub(t.b.now()), 0)
		}
	}
	return 0
}

// list answers ListSteers. Read returns the entries of a switch, with counters.
func (t *steering) list(ctx context.Context, read func(context.Context, flow.DPID) ([]*api.FlowEntry, error)) *api.ListSteersResponse {
	resp := &api.ListSteersResponse{}
	counted := map[flow.DPID]map[uint32][2]uint64{}
	t.b.mu.Lock()
	var steers []*steer
	for s := range t.steers.All() {
		steers = append(steers, s)
	}
	t.b.mu.Unlock()
	for _, s := range sortedSteers(steers) {
		m := t.message(s)
		if counted[s.at] == nil && m.State == "up" {
			if flows, err := read(ctx, s.at); err == nil {
				counted[s.at] = countSteers(flows)
			}
		}
		if n, ok := counted[s.at][s.id]; ok && m.State == "up" {
			m.Packets, m.Bytes = &n[0], &n[1]
		}
		resp.Steers = append(resp.Steers, m)
	}
	return resp
}

// countSteers returns the packets and octets that entries have counted, by the numbers of steers.
func countSteers(flows []*api.FlowEntry) map[uint32][2]uint64 {
	sum := map[uint32][2]uint64{}
	for _, f := range flows {
		n, err := strconv.ParseUint(f.Cookie, 16, 64)
		if c := flow.Cookie(n); err == nil && c.Owner() == flow.OwnerSteers && c.ID() != 0 {
			was := sum[c.ID()]
			sum[c.ID()] = [2]uint64{was[0] + f.Packets, was[1] + f.Bytes}
		}
	}
	return sum
}
