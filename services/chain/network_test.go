package chain

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/wefttest"
)

// A network is switches that have the entries of a store, links between them,
// hosts, and functions that hand packets from one port to the other.
type network struct {
	t       *testing.T
	kept    *wefttest.Store
	b       *store
	feed    func(events ...any)
	links   map[flow.Location]flow.Location
	entries map[flow.DPID][]flow.Entry
	hosts   []flow.Location
}

func dpid(n int) flow.DPID { return flow.DPID(n + 1) }

func hostMAC(n int) flow.MAC { return flow.MACFrom(0x020000000001 + uint64(n)) }

// newNetwork returns a connected random network with a host at each switch, at
// port 100; ports from 200 are for functions.
func newNetwork(t *testing.T, r *rand.Rand, switches int) *network {
	n := &network{t: t, kept: wefttest.NewStore(), links: map[flow.Location]flow.Location{}}
	n.begin()
	ports := map[flow.DPID]flow.Port{}
	link := func(a, b flow.DPID) {
		ports[a]++
		ports[b]++
		x, y := flow.Location{Switch: a, Port: ports[a]}, flow.Location{Switch: b, Port: ports[b]}
		n.links[x], n.links[y] = y, x
		for _, l := range [][2]flow.Location{{x, y}, {y, x}} {
			n.feed(&api.LinkChanged{Link: &api.Link{Src: api.NewLocation(l[0]), Dst: api.NewLocation(l[1]), State: "up"}})
		}
	}
	for i := range switches {
		n.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: dpid(i).String(), Connected: true, Openflow: "1.3", Tables: 254}})
		if i > 0 {
			link(dpid(i), dpid(r.IntN(i)))
		}
		at := flow.Location{Switch: dpid(i), Port: 100}
		n.hosts = append(n.hosts, at)
		n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: "edge"}})
		n.feed(&api.HostChanged{Host: &api.Host{Mac: hostMAC(i).String(), At: api.NewLocation(at)}})
	}
	for range switches / 2 {
		if a, b := r.IntN(switches), r.IntN(switches); a != b {
			link(dpid(a), dpid(b))
		}
	}
	return n
}

// begin has the network get a store, which continues with what an earlier one has kept.
func (n *network) begin() {
	n.t.Helper()
	chains, err := n.kept.Bucket(n.t.Context(), "chain.chains")
	if err != nil {
		n.t.Fatal(err)
	}
	numbers, err := n.kept.Bucket(n.t.Context(), "chain.tags")
	if err != nil {
		n.t.Fatal(err)
	}
	probes, err := n.kept.Bucket(n.t.Context(), "chain.probes")
	if err != nil {
		n.t.Fatal(err)
	}
	n.b = newStore(defaults(), numbers, probes, func(name string, err error) { n.t.Errorf("tag %s: %v", name, err) })
	n.b.find = n.path
	n.b.chains.Open(chains)
	n.feed = wefttest.Network(nib.Switches|n.b.kind().Reads, n.b.networkChanged)
	if err := errors.Join(n.b.tags.kept.Load(n.t.Context()), n.b.probes.kept.Load(n.t.Context()), n.b.chains.Load(n.t.Context())); err != nil {
		n.t.Fatal(err)
	}
}

// set makes a chain.
func (n *network) set(m *api.ServiceChain) *chain {
	_, c, err := n.b.chains.Set(n.t.Context(), m)
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// path finds a shortest path, any of them.
func (n *network) path(_ context.Context, q *api.FindPathRequest) (*api.FindPathResponse, error) {
	src, _ := flow.ParseDPID(q.Src)
	dst, _ := flow.ParseDPID(q.Dst)
	distance := map[flow.DPID]int{dst: 0}
	for queue := []flow.DPID{dst}; len(queue) > 0; queue = queue[1:] {
		for a, z := range n.links {
			if _, known := distance[a.Switch]; z.Switch == queue[0] && !known {
				distance[a.Switch] = distance[queue[0]] + 1
				queue = append(queue, a.Switch)
			}
		}
	}
	p := &api.Path{}
	for src != dst {
		for a, z := range n.links {
			if a.Switch == src && distance[z.Switch] == distance[src]-1 {
				p.Hops, src = append(p.Hops, &api.Hop{Dpid: src.String(), OutPort: uint32(a.Port)}), z.Switch
				break
			}
		}
	}
	p.Hops = append(p.Hops, &api.Hop{Dpid: q.Dst})
	return &api.FindPathResponse{Paths: []*api.Path{p}}, nil
}

// settle gives all switches their entries.
func (n *network) settle() {
	if err := n.b.seek(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	n.entries = map[flow.DPID][]flow.Entry{}
	for s := range n.b.net.Switches() {
		sw := s.Key
		for _, e := range n.b.rules(s.Is.Switch).Flows {
			_, told, err := api.NewFlowEntry(sw, &e).Entry()
			if err != nil {
				n.t.Fatal(err)
			}
			n.entries[sw] = append(n.entries[sw], told)
		}
	}
}

// pass sends a packet into a port of a switch, and returns the port by which it
// leaves that switch. Packets that forwarding would have are returned as plain.
func (n *network) pass(at flow.Location, k flow.Key) (out flow.Port, left flow.Key, plain bool) {
	k.InPort, k.Metadata = at.Port, 0
	for table := uint8(flow.TableIngress); ; {
		var best *flow.Entry
		for i := range n.entries[at.Switch] {
			e := &n.entries[at.Switch][i]
			if e.Table != table || !e.Match.Matches(&k) {
				continue
			}
			if best != nil && best.Priority == e.Priority {
				n.t.Fatalf("two entries of one priority for a packet in table %d of switch %v: %v and %v", table, at.Switch, best.Match, e.Match)
			}
			if best == nil || e.Priority > best.Priority {
				best = e
			}
		}
		switch {
		case best == nil && table == flow.TableIngress:
			table = flow.TableForward
			continue
		case best == nil:
			return 0, k, table == flow.TableForward
		}
		for _, a := range best.Apply {
			switch a.Kind {
			case flow.ActionPushVLAN:
			case flow.ActionSetField:
				k.VLAN = uint16(a.Value[0])<<8 | uint16(a.Value[1])
			case flow.ActionPopVLAN:
				k.VLAN = 0
			case flow.ActionOutput:
				if p := flow.Port(a.Arg); p != at.Port {
					return p, k, false
				}
				return 0, k, false
			}
		}
		k.Metadata = k.Metadata&^best.MetaMask | best.Metadata&best.MetaMask
		if table = best.Goto; table == 0 {
			return 0, k, false
		}
	}
}

// send sends a packet from a host. It returns the ports by which it went into
// functions, and where it arrived; the zero location if it was dropped.
func (n *network) send(c *chain, from int, k flow.Key) (visited []flow.Location, arrived flow.Location, plain bool) {
	at := n.hosts[from]
	for range 1000 {
		out, left, plain := n.pass(at, k)
		k = left
		to := flow.Location{Switch: at.Switch, Port: out}
		if plain || out == 0 {
			return visited, flow.Location{}, plain
		}
		if far, linked := n.links[to]; linked {
			at = far
			continue
		}
		if k.VLAN != 0 {
			n.t.Fatalf("a packet leaves %v with tag %d", to, k.VLAN)
		}
		if slices.Contains(n.hosts, to) {
			return visited, to, false
		}
		visited = append(visited, to)
		for _, f := range c.functions {
			for _, p := range f {
				if p.in == to {
					at = p.out
				} else if p.out == to {
					at = p.in
				}
			}
		}
	}
	n.t.Fatal("a packet circles")
	return nil, flow.Location{}, false
}

// udp returns a packet from one host to another, and the one back.
func udp(from, to int, client, server uint16) (k, back flow.Key) {
	addr := func(i int) [4]byte { return [4]byte{10, 0, byte(i >> 8), byte(i)} }
	k = flow.Key{EthType: flow.EthTypeIPv4, EthSrc: hostMAC(from), EthDst: hostMAC(to), IPProto: flow.IPProtoUDP,
		IPv4Src: addr(from), IPv4Dst: addr(to), TPSrc: client, TPDst: server}
	back = k
	back.EthSrc, back.EthDst, back.IPv4Src, back.IPv4Dst, back.TPSrc, back.TPDst = k.EthDst, k.EthSrc, k.IPv4Dst, k.IPv4Src, k.TPDst, k.TPSrc
	return k, back
}

// TestChains: on random networks every packet of the match passes one copy of
// each function that is alive, once and in order, and the packets back pass the
// same copies in the reverse order; others pass none.
func TestChains(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 15))
		n := newNetwork(t, r, 1+r.IntN(8))
		m := &api.ServiceChain{Name: "c", Match: map[string]string{"eth_type": "0x0800", "ip_proto": "17", "udp_dst": "5001"}, OnFailure: []string{"bypass", "block"}[r.IntN(2)]}
		m.Hash = []string{"", "addresses"}[r.IntN(2)]
		port := uint32(200)
		at := func() *api.Location {
			port++
			l := &api.Location{Dpid: dpid(r.IntN(len(n.hosts))).String(), Port: port}
			n.feed(&api.PortChanged{Port: &api.Port{Dpid: l.Dpid, Port: l.Port, Up: r.IntN(6) > 0}})
			n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: l, Role: "edge"}})
			return l
		}
		for range 1 + r.IntN(4) {
			f := &api.ChainFunction{}
			for range 1 + r.IntN(4) {
				p := &api.ChainCopy{In: at()}
				if r.IntN(3) > 0 {
					p.Out = at()
				}
				f.Copies = append(f.Copies, p)
			}
			m.Functions = append(m.Functions, f)
		}
		c := n.set(m)
		n.settle()
		blocked, wanted := false, 0
		for _, f := range c.functions {
			if len(n.b.alive(f)) > 0 {
				wanted++
			} else if c.block {
				blocked = true
			}
		}
		for range 60 {
			from, to := r.IntN(len(n.hosts)), r.IntN(len(n.hosts))
			if from == to {
				continue
			}
			k, back := udp(from, to, uint16(32768+r.IntN(20000)), 5001)
			there, arrived, plain := n.send(c, from, k)
			home, returned, plainBack := n.send(c, to, back)
			switch {
			case blocked:
				if arrived != (flow.Location{}) || returned != (flow.Location{}) || plain || plainBack {
					t.Fatalf("seed %d: a packet passes a function that is dead and blocks: %v, %v", seed, there, home)
				}
				continue
			case wanted == 0:
				if !plain || !plainBack {
					t.Fatalf("seed %d: nothing is alive, and forwarding does not have the packets", seed)
				}
				continue
			case arrived != n.hosts[to] || returned != n.hosts[from]:
				t.Fatalf("seed %d: from %v to %v: arrived at %v by %v, and back at %v by %v", seed, n.hosts[from], n.hosts[to], arrived, there, returned, home)
			}
			slices.Reverse(home)
			if len(there) != wanted || len(home) != wanted {
				t.Fatalf("seed %d: %d functions are alive; visited %v, and back %v", seed, wanted, there, home)
			}
			next := 0
			for i, in := range there {
				for len(n.b.alive(c.functions[next])) == 0 {
					next++
				}
				j := slices.IndexFunc(c.functions[next], func(p copyOf) bool { return p.in == in })
				if j < 0 || !slices.Contains(n.b.alive(c.functions[next]), j) || c.functions[next][j].out != home[i] {
					t.Fatalf("seed %d: visited %v, and back, reversed, %v; the chain is %v", seed, there, home, c.functions)
				}
				next++
			}
			k.TPDst = 5002
			if v, _, plain := n.send(c, from, k); !plain || len(v) > 0 {
				t.Fatalf("seed %d: a packet that the match does not name goes through %v", seed, v)
			}
		}
	}
}

// TestCopiesShareFlows: flows by consecutive ports are split equally, and those
// of copies that are alive stay where they are when another dies.
func TestCopiesShareFlows(t *testing.T) {
	for _, copies := range []int{1, 2, 3, 4, 8, 16} {
		count := make([]int, copies)
		all := make([]int, copies)
		for i := range all {
			all[i] = i
		}
		for port := range 1024 {
			count[chooses(port>>portShift%cells, copies, all)]++
		}
		if least, most := slices.Min(count), slices.Max(count); most-least > 1024/cells {
			t.Errorf("%d copies: %v", copies, count)
		}
		if copies < 2 {
			continue
		}
		for cell := range cells {
			was, now := chooses(cell, copies, all), chooses(cell, copies, all[1:])
			if now == 0 || was != 0 && was != now {
				t.Errorf("%d copies, the first is dead: cell %d goes from %d to %d", copies, cell, was, now)
			}
		}
	}
}

// TestForged: tagged packets that do not come by a link go nowhere, and what a
// function sends of its own is dropped.
func TestForged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := newNetwork(t, r, 4)
	in, out := &api.Location{Dpid: dpid(2).String(), Port: 200}, &api.Location{Dpid: dpid(3).String(), Port: 201}
	for _, at := range []*api.Location{in, out} {
		n.feed(&api.PortChanged{Port: &api.Port{Dpid: at.Dpid, Port: at.Port, Up: true}})
	}
	c := n.set(&api.ServiceChain{Name: "c", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.1"},
		Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: in, Out: out}}}}})
	n.settle()
	if len(n.b.tags.list()) == 0 {
		t.Fatal("no tag is in use")
	}
	k, _ := udp(0, 1, 1, 2)
	for _, g := range n.b.tags.list() {
		k.VLAN = flow.VLANPresent | g.tag
		if out, _, plain := n.pass(n.hosts[0], k); out != 0 || plain {
			t.Errorf("a host's packet with the tag of %v leaves by %v (plain: %v)", g.at, out, plain)
		}
	}
	k.VLAN = 0
	k.IPv4Dst = [4]byte{10, 9, 9, 9}
	if out, _, plain := n.pass(c.functions[0][0].out, k); out != 0 || plain {
		t.Errorf("what a function sends of its own leaves by %v (plain: %v)", out, plain)
	}
	k.EthDst = flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if out, _, plain := n.pass(c.functions[0][0].in, k); out != 0 || plain {
		t.Errorf("a broadcast that a function sends leaves by %v (plain: %v)", out, plain)
	}
}

// TestRefusals: what is wrong with a chain is said.
func TestRefusals(t *testing.T) {
	match := func(more ...string) map[string]string {
		m := map[string]string{"eth_type": "0x0800"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	via := func(ports ...uint32) (list []*api.ChainFunction) {
		for _, p := range ports {
			list = append(list, &api.ChainFunction{Copies: []*api.ChainCopy{{In: &api.Location{Dpid: "1", Port: p}}}})
		}
		return list
	}
	b := newStore(defaults(), nil, nil, nil)
	two := []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: &api.Location{Dpid: "1", Port: 1}}, {In: &api.Location{Dpid: "1", Port: 2}}}}}
	for want, m := range map[string]*api.ServiceChain{
		"chain: missing":            nil,
		"name \"\"":                 {},
		"0 functions: want 1 to 32": {Name: "c", Match: match("ipv4_dst", "10.0.0.1")},
		"function 1: 0 copies":      {Name: "c", Match: match("ipv4_dst", "10.0.0.1"), Functions: []*api.ChainFunction{{}}},
		"is used twice":             {Name: "c", Match: match("ipv4_dst", "10.0.0.1"), Functions: via(4, 4)},
		"want eth_type":             {Name: "c", Functions: via(4)},
		"the same for packets back": {Name: "c", Match: match("ip_proto", "6"), Functions: via(4)},
		"of IP packets only":        {Name: "c", Match: match("in_port", "1"), Functions: via(4)},
		"nothing chooses":           {Name: "c", Match: match("ipv4_src", "10.0.0.1"), Functions: two},
		"hash ports":                {Name: "c", Match: match("ipv4_dst", "10.0.0.1"), Functions: two, Hash: "ports"},
		"on_failure \"x\"":          {Name: "c", Match: match("ipv4_dst", "10.0.0.1"), Functions: via(4), OnFailure: "x"},
		"priority 1000":             {Name: "c", Match: match("ipv4_dst", "10.0.0.1"), Functions: via(4), Priority: 1000},
		"port 0 of switch":          {Name: "c", Match: match("ipv4_dst", "10.0.0.1"), Functions: via(0)},
	} {
		if _, _, err := b.chains.Set(t.Context(), m); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", m, err, want)
		}
	}
}
