package forwarding

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// net is a network of switches for tests: links by port, paths by breadth
// first, and entries that really forward.
type network struct {
	t     testing.TB
	links map[flow.Location]flow.Location
	down  map[flow.Location]bool
	table map[flow.DPID]map[flow.EntryKey]flow.Entry
	group map[flow.DPID]map[uint32]flow.Group
	out   []delivery
	log   []flow.Op
	mods  []flow.Mod
}

// delivery is a frame that a host got.
type delivery struct {
	at    flow.Location
	frame string
}

func newNetwork(t testing.TB) *network {
	return &network{
		t: t, links: map[flow.Location]flow.Location{}, down: map[flow.Location]bool{},
		table: map[flow.DPID]map[flow.EntryKey]flow.Entry{}, group: map[flow.DPID]map[uint32]flow.Group{},
	}
}

func (n *network) link(a flow.DPID, ap flow.Port, b flow.DPID, bp flow.Port) {
	n.links[flow.Location{Switch: a, Port: ap}] = flow.Location{Switch: b, Port: bp}
	n.links[flow.Location{Switch: b, Port: bp}] = flow.Location{Switch: a, Port: ap}
}

// cut takes a link down at both ends.
func (n *network) cut(at flow.Location) {
	n.down[at], n.down[n.links[at]] = true, true
}

// search returns a shortest path that does not begin with one of the links in
// but; of equals, that with the lowest ports.
func (n *network) search(src, dst flow.DPID, but map[flow.Port]bool) *api.Path {
	type step struct {
		sw   flow.DPID
		from *step
		via  flow.Location
	}
	seen := map[flow.DPID]bool{src: true}
	queue := []*step{{sw: src}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.sw == dst {
			var hops []*api.Hop
			out := uint32(0)
			for ; s != nil; s = s.from {
				h := &api.Hop{Dpid: s.sw.String(), OutPort: out}
				if s.from != nil {
					h.InPort, out = uint32(n.links[s.via].Port), uint32(s.via.Port)
				}
				hops = append([]*api.Hop{h}, hops...)
			}
			return &api.Path{Hops: hops}
		}
		for p := flow.Port(1); p < 20; p++ {
			at := flow.Location{Switch: s.sw, Port: p}
			to, ok := n.links[at]
			if ok && !n.down[at] && !seen[to.Switch] && !(s.sw == src && but[p]) {
				seen[to.Switch] = true
				queue = append(queue, &step{sw: to.Switch, from: s, via: at})
			}
		}
	}
	return nil
}

func (n *network) findPath(req *api.FindPathRequest) (*api.FindPathResponse, error) {
	src, _ := flow.ParseDPID(req.Src)
	dst, _ := flow.ParseDPID(req.Dst)
	resp := &api.FindPathResponse{}
	but := map[flow.Port]bool{}
	for range max(1, req.Count) {
		p := n.search(src, dst, but)
		if p == nil {
			break
		}
		resp.Paths = append(resp.Paths, p)
		but[flow.Port(p.Hops[0].OutPort)] = true
	}
	return resp, nil
}

// apply carries out a decision, in order.
func (n *network) apply(d *flow.Decision) {
	for _, op := range d.Ops {
		n.log = append(n.log, op)
		switch op.Kind {
		case flow.OpFlow:
			m := d.Flows[op.Index]
			m.Entry = m.Entry.Clone()
			n.mods = append(n.mods, m)
			if n.table[op.Switch] == nil {
				n.table[op.Switch] = map[flow.EntryKey]flow.Entry{}
			}
			if m.Command == flow.Add {
				n.table[op.Switch][m.Entry.Key()] = m.Entry
			} else {
				delete(n.table[op.Switch], m.Entry.Key())
			}
		case flow.OpGroup:
			g := d.Groups[op.Index]
			if n.group[op.Switch] == nil {
				n.group[op.Switch] = map[uint32]flow.Group{}
			}
			_, there := n.group[op.Switch][g.Group.ID]
			switch {
			case g.Command == flow.Add && there:
				n.t.Errorf("switch %v: group %d added twice", op.Switch, g.Group.ID)
			case g.Command == flow.Modify && !there:
				n.t.Errorf("switch %v: group %d modified before it was added", op.Switch, g.Group.ID)
			case g.Command == flow.Delete:
				delete(n.group[op.Switch], g.Group.ID)
				continue
			}
			n.group[op.Switch][g.Group.ID] = g.Group
		case flow.OpPacketOut:
			o := d.Outs[op.Index]
			n.actions(op.Switch, 0, o.Actions, string(o.Data), 0)
		}
	}
}

func (n *network) send(d *flow.Decision) (*api.ApplyResult, error) {
	n.apply(d)
	return &api.ApplyResult{}, nil
}

func (n *network) actions(sw flow.DPID, in flow.Port, list []flow.Action, frame string, hops int) {
	for _, a := range list {
		switch a.Kind {
		case flow.ActionOutput:
			out := flow.Port(a.Arg)
			if out == flow.PortIn {
				out = in
			}
			at := flow.Location{Switch: sw, Port: out}
			if n.down[at] {
				continue
			}
			if to, ok := n.links[at]; ok {
				n.forward(to, frame, hops+1)
			} else {
				n.out = append(n.out, delivery{at, frame})
			}
		case flow.ActionGroup:
			for _, b := range n.group[sw][a.Arg].Buckets {
				if !n.down[flow.Location{Switch: sw, Port: b.WatchPort}] {
					n.actions(sw, in, b.Actions, frame, hops)
					break
				}
			}
		default:
			b, ok := packet.Apply([]byte(frame), a)
			if !ok {
				n.t.Fatalf("action %v cannot be applied", a)
			}
			frame = string(b)
		}
	}
}

// forward sends a frame into a switch by a port.
func (n *network) forward(at flow.Location, frame string, hops int) {
	if hops > 3*len(n.table)+3 {
		n.t.Fatalf("a loop at %v", at)
	}
	var k flow.Key
	packet.Parse([]byte(frame), &k)
	k.InPort = at.Port
	for _, e := range n.table[at.Switch] {
		if e.Match.Matches(&k) {
			n.actions(at.Switch, at.Port, e.Apply, frame, hops)
			return
		}
	}
}

// testEngine returns an engine on a network, all of whose ports that are no
// links are edge ports.
func testEngine(t testing.TB, n *network, change func(*Config), edges ...flow.Location) *engine {
	t.Helper()
	cfg := defaults()
	if change != nil {
		change(cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.log = slog.New(slog.DiscardHandler)
	e.findPath, e.findNow, e.send, e.publish = n.findPath, n.findPath, n.send, func(*api.RouteChanged) {}
	e.observe = func([]string) ([]string, error) { return nil, nil }
	for at := range n.links {
		setRole(e.portTable, at, flow.RoleLink)
	}
	for _, at := range edges {
		setRole(e.portTable, at, flow.RoleEdge)
	}
	return e
}

// linkedEngine is testEngine that has heard of the links, too.
func linkedEngine(t testing.TB, n *network, change func(*Config), edges ...flow.Location) *engine {
	t.Helper()
	e := testEngine(t, n, change, edges...)
	for at, far := range n.links {
		e.links.up[at] = far
	}
	return e
}

func setRole(ports *portTable, at flow.Location, role flow.PortRole) {
	ports.portChanged(&api.PortChanged{Port: &api.Port{Dpid: at.Switch.String(), Port: uint32(at.Port), Up: true}})
	ports.roleChanged(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: role.String()}})
}

// host is a host of a test.
type host struct {
	mac flow.MAC
	ip  netip.Addr
	at  flow.Location
}

func newHost(i int, sw flow.DPID, port flow.Port) host {
	return host{flow.MACFrom(uint64(0x020000000000 + i)), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), flow.Location{Switch: sw, Port: port}}
}

// punt runs a frame from a host through the stage as the hosts stage leaves it.
func punt(e *engine, from host, to *host, frame []byte) (*flow.PacketIn, *flow.Decision, flow.Verdict) {
	p := packetIn(from, to, frame, time.Now().UnixNano())
	d := &flow.Decision{}
	v := e.open(p.Switch)(p, d)
	return p, d, v
}

// packetIn returns a frame as the hosts stage leaves it.
func packetIn(from host, to *host, frame []byte, at int64) *flow.PacketIn {
	p := &flow.PacketIn{Switch: from.at.Switch, Time: at, BufferID: flow.BufferNone, Data: frame, TotalLen: uint16(len(frame)), Role: flow.RoleEdge, Src: from.at}
	packet.Parse(frame, &p.Key)
	p.Key.InPort = from.at.Port
	if to != nil {
		p.Dst, p.DstMAC = to.at, to.mac
	}
	return p
}

func tcp(from, to host) []byte {
	return packet.AppendTCP(nil, packet.Ether{Src: from.mac, Dst: to.mac}, packet.IP{Src: from.ip, Dst: to.ip, TTL: 64}, packet.TCPFields{SrcPort: 1, DstPort: 2}, nil)
}
