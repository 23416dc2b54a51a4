package nodes

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

const (
	mostTunnels = 100_000
	mostKey     = 1<<24 - 1
)

// The octets that tunnels put around a frame: an IPv4 header without options, and
// UDP and VXLAN, or GRE with a key.
var overhead = map[string]uint32{"vxlan": 20 + 8 + 8, "gre": 20 + 8}

// A tunnelPort is two ports of two nodes, joined by a tunnel through their routing.
// Nobody writes to one that is in the store.
type tunnelPort struct {
	user, kind string
	a, b       flow.Location // in the order of their switches
	key        uint32
}

// name is the same for whichever end is named first.
func (p *tunnelPort) name() string {
	return fmt.Sprintf("%s-%s-%v-%v", p.user, p.kind, p.a.Switch, p.b.Switch)
}

// readPort returns what is wanted, without numbers.
func readPort(user string, m *api.TunnelPort) (*tunnelPort, error) {
	p := &tunnelPort{user: user, kind: m.GetKind()}
	if overhead[p.kind] == 0 {
		return nil, fmt.Errorf("kind %.20q: want vxlan or gre", p.kind)
	}
	var err error
	if p.a.Switch, err = flow.ParseDPID(m.GetA().GetDpid()); err != nil {
		return nil, fmt.Errorf("a: %w", err)
	}
	if p.b.Switch, err = flow.ParseDPID(m.GetB().GetDpid()); err != nil {
		return nil, fmt.Errorf("b: %w", err)
	}
	if p.a.Switch == p.b.Switch {
		return nil, fmt.Errorf("a and b are both switch %v: a tunnel needs two", p.a.Switch)
	}
	if p.b.Switch < p.a.Switch {
		p.a, p.b = p.b, p.a
	}
	return p, nil
}

// parsePort returns a stored tunnel port.
func parsePort(m *api.SetTunnelPortsRequest) (*tunnelPort, error) {
	if len(m.Ports) != 1 {
		return nil, fmt.Errorf("%d ports, want one", len(m.Ports))
	}
	p, err := readPort(m.User, m.Ports[0])
	if err != nil {
		return nil, err
	}
	is := m.Ports[0]
	p.a, p.b, p.key = is.A.Flow(), is.B.Flow(), is.Key
	if !flow.IsTunnelPort(p.a.Port) || !flow.IsTunnelPort(p.b.Port) || p.key == 0 || p.key > mostKey {
		return nil, fmt.Errorf("ports %v and %v with key %d", p.a, p.b, p.key)
	}
	return p, nil
}

func (p *tunnelPort) message() *api.SetTunnelPortsRequest {
	return &api.SetTunnelPortsRequest{User: p.user, Ports: []*api.TunnelPort{{Kind: p.kind, A: api.NewLocation(p.a), B: api.NewLocation(p.b), Key: p.key}}}
}

// setPorts handles SetTunnelPorts.
func (b *registry) setPorts(ctx context.Context, q *api.SetTunnelPortsRequest) (*api.SetTunnelPortsResponse, error) {
	if err := api.CheckName("user", q.GetUser()); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	wanted := map[string]*tunnelPort{}
	var names []string
	var flipped []bool
	for i, m := range q.Ports {
		p, err := readPort(q.User, m)
		if err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "port %d: %w", i+1, err)
		}
		wanted[p.name()] = p
		names = append(names, p.name())
		first, _ := flow.ParseDPID(m.A.Dpid)
		flipped = append(flipped, first != p.a.Switch)
	}
	b.mu.Lock()
	var gone []string
	for p := range b.ports.All() {
		if p.user == q.User && wanted[p.name()] == nil {
			gone = append(gone, p.name())
		}
	}
	b.mu.Unlock()
	for _, name := range gone {
		if _, err := b.ports.Remove(ctx, name); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		_, _, err := b.ports.Change(ctx, name, func(old *tunnelPort) (*tunnelPort, error) {
			if old != nil {
				return old, nil
			}
			return b.number(wanted[name])
		})
		if err != nil {
			return nil, err
		}
	}
	answer := &api.SetTunnelPortsResponse{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, name := range names {
		p := b.ports.Get(name)
		if p == nil {
			return nil, api.Errorf(codes.Aborted, "tunnel port %s: somebody else has deleted it meanwhile", name)
		}
		m := b.status(p)
		if flipped[i] {
			m.A, m.B = m.B, m.A
		}
		answer.Ports = append(answer.Ports, m)
	}
	return answer, nil
}

// number gives a new tunnel port its numbers and its key. It is called with mu held.
func (b *registry) number(p *tunnelPort) (*tunnelPort, error) {
	used, keys := map[flow.Location]bool{}, map[uint32]bool{}
	for o := range b.ports.All() {
		used[o.a], used[o.b], keys[o.key] = true, true, true
	}
	for _, end := range []*flow.Location{&p.a, &p.b} {
		for end.Port = flow.TunnelPorts; used[*end]; end.Port++ {
		}
		if !flow.IsTunnelPort(end.Port) {
			return nil, api.Errorf(codes.ResourceExhausted, "switch %v has as many tunnel ports as it can have", end.Switch)
		}
	}
	for p.key = 0; p.key == 0 || keys[p.key]; { // drawn: customers who guess it could send into the tunnel
		var text [4]byte
		rand.Read(text[:])
		p.key = binary.BigEndian.Uint32(text[:]) & mostKey
	}
	return p, nil
}

// portChanged follows a change of a tunnel port. It is called with mu held.
func (b *registry) portChanged(old, now *tunnelPort) {
	p := cmp.Or(now, old)
	for _, end := range []flow.Location{p.a, p.b} {
		switch {
		case now == nil:
			if delete(b.of[end.Switch], p.name()); len(b.of[end.Switch]) == 0 {
				delete(b.of, end.Switch)
			}
		case b.of[end.Switch] == nil:
			b.of[end.Switch] = map[string]bool{p.name(): true}
		default:
			b.of[end.Switch][p.name()] = true
		}
	}
	if now == nil {
		delete(b.told, p.name())
		b.tellPort(&api.TunnelPortChanged{Port: old.message().Ports[0], Gone: true})
		return
	}
	b.tellTunnel(now)
}

// tellTunnel makes a tunnel port known if it does other than before. It is called
// with mu held.
func (b *registry) tellTunnel(p *tunnelPort) {
	if p == nil {
		return
	}
	m := b.status(p)
	if m.State == "waiting" && b.now().Sub(b.began) < 2*b.cfg.Stale {
		return // after a start, its nodes have not been heard of yet
	}
	if !proto.Equal(m, b.told[p.name()]) {
		b.told[p.name()] = m
		b.tellPort(&api.TunnelPortChanged{Port: m})
	}
}

// status returns how a tunnel port does. It is called with mu held.
func (b *registry) status(p *tunnelPort) *api.TunnelPort {
	m := p.message().Ports[0]
	m.State = "up"
	for _, end := range []flow.Location{p.a, p.b} {
		state, why, mtu := b.end(end)
		if state != "up" && m.State != "waiting" {
			m.State, m.Reason = state, why
		}
		if mtu > overhead[p.kind] && (m.Mtu == 0 || mtu-overhead[p.kind] < m.Mtu) {
			m.Mtu = mtu - overhead[p.kind]
		}
	}
	return m
}

// end returns how one end of a tunnel port does. It is called with mu held.
func (b *registry) end(at flow.Location) (state, why string, mtu uint32) {
	n := b.nodes[at.Switch]
	if n == nil {
		return "waiting", fmt.Sprintf("nobody looks after the node of switch %v: is weft node run there, and is it let in?", at.Switch), 0
	}
	p := n.port(uint32(at.Port))
	switch {
	case n.state == stateUnknown:
		return "waiting", fmt.Sprintf("switch %v is not connected, or does not say that it is a hybrid node", at.Switch), 0
	case n.report.Loopback == "":
		return "waiting", fmt.Sprintf("the node of switch %v says no loopback address", at.Switch), 0
	case p == nil:
		return "waiting", fmt.Sprintf("the node of switch %v has not made it yet", at.Switch), 0
	case p.Error != "":
		return "down", fmt.Sprintf("the node of switch %v: %s", at.Switch, p.Error), p.Mtu
	case !p.Carrier:
		return "down", fmt.Sprintf("at switch %v it is down", at.Switch), p.Mtu
	case p.Bfd != "" && p.Bfd != bfdUp:
		return "down", fmt.Sprintf("switch %v does not hear the other side", at.Switch), p.Mtu
	}
	return "up", "", p.Mtu
}

// wantTunnels returns the tunnel ports of a node. It is called with mu held.
func (b *registry) wantTunnels(n *node, interval time.Duration) []*api.WantedTunnel {
	var list []*api.WantedTunnel
	now := b.now()
	for name := range b.of[n.dpid] {
		p := b.ports.Get(name)
		if p == nil {
			continue
		}
		own, far := p.a, p.b
		if own.Switch != n.dpid {
			own, far = far, own
		}
		w := &api.WantedTunnel{Port: uint32(own.Port), Kind: p.kind, Key: p.key}
		if o := b.nodes[far.Switch]; o != nil && (o.state != stateUnknown || o.wanted != nil) {
			if o.report.Loopback == "" {
				continue
			}
			every := min(interval*max(b.factorOf(n, w.Port, now), b.factorOf(o, uint32(far.Port), now)), mostBFD)
			w.Remote, w.BfdIntervalMs = o.report.Loopback, uint32(every.Milliseconds())
		} // else it is not known where to, since a start, say: one that is there stays as it is
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *api.WantedTunnel) int { return cmp.Compare(a.Port, b.Port) })
	return list
}
