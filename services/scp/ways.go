package scp

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// ways keeps the entries by which switches take consumers' packets to the NRF, and its
// answers back, while the controller is away: routes between hosts come with their first
// packet, and what is for the NRF goes to the front else.
type ways struct {
	mu    sync.Mutex // guards the following
	asked *table[netip.Addr, struct{}]
	at    map[flow.DPID][]flow.Entry
	gates doorGates
}

// mostWays bounds the consumers that have such entries, and mostWayClients those of them
// that have not registered.
const (
	mostWays       = 1000
	mostWayClients = 256
)

func newWays() *ways {
	return &ways{asked: newTable[netip.Addr, struct{}](mostWayClients), gates: doorGates{switches: map[flow.DPID]*doorSwitch{}}}
}

// nrfClient is a host that talks to the NRF.
type nrfClient struct {
	addr netip.Addr
	object.Station
}

// note notes a client of the front.
func (w *ways) note(client nrfClient) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked.use(client.addr, client.At)
}

// clients returns the clients that were noted.
func (w *ways) clients() (list []netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked.all(func(a netip.Addr, _ *struct{}) { list = append(list, a) })
	return list
}

// want returns a switch's entries, which it is then declared.
func (w *ways) want(sw flow.DPID) (list []*api.FlowEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gates.declared(sw, w.at[sw])
	for i := range w.at[sw] {
		list = append(list, api.NewFlowEntry(sw, &w.at[sw][i]))
	}
	return list
}

// standing returns a switch's entries that stand whatever the traffic, with those of a
// front without a host; nil if it has none.
func (w *ways) standing(front *wire, info *api.Switch) (req *api.SetStandingRequest) {
	if front != nil {
		req = front.want(info)
	}
	sw, err := flow.ParseDPID(info.GetDpid())
	if list := w.want(sw); err == nil && len(list) > 0 {
		if req == nil {
			req = &api.SetStandingRequest{}
		}
		req.Flows = append(req.Flows, list...)
	}
	return req
}

// set takes the entries of all switches. It returns the switches where they differ.
func (w *ways) set(at map[flow.DPID][]flow.Entry) (changed []flow.DPID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range []map[flow.DPID][]flow.Entry{w.at, at} {
		for sw := range list {
			same := slices.EqualFunc(w.at[sw], at[sw], func(x, y flow.Entry) bool { return x.Key() == y.Key() && x.Same(&y) })
			if !same && !slices.Contains(changed, sw) {
				changed = append(changed, sw)
			}
		}
	}
	w.at = at
	return changed
}

// keep follows the consumers of a proxy and its network until ctx ends; changed declares
// the entries of switches anew.
func (w *ways) keep(ctx context.Context, p *proxy, changed func(...flow.DPID)) {
	var last *wayInputs
	for {
		if x := w.inputs(p); x != nil && !x.same(last) {
			last = x
			if list := w.set(x.plan(&p.tagging)); len(list) > 0 {
				changed(list...)
			}
		}
		if backoff.Sleep(ctx, wayInterval) != nil {
			return
		}
	}
}

const wayInterval = time.Second

// wayInputs are what the entries follow from.
type wayInputs struct {
	net     nib.Snapshot
	tags    uint64 // flow.Tagging.Changes
	vlan    uint16
	nrf     netip.AddrPort
	there   object.Station // of the NRF
	clients []nrfClient
	doors   []netip.AddrPort
	past    []netip.Addr // from which no packet is for a door as a consumer's
}

// same reports whether the entries are the same for both.
func (x *wayInputs) same(o *wayInputs) bool {
	return o != nil && x.net.Rev() == o.net.Rev() && x.tags == o.tags && x.nrf == o.nrf && x.there == o.there && slices.Equal(x.clients, o.clients) &&
		slices.Equal(x.doors, o.doors) && slices.Equal(x.past, o.past)
}

// plan returns the entries of all switches.
func (x *wayInputs) plan(tagging *flow.Tagging) map[flow.DPID][]flow.Entry {
	at := planWays(x.net, tagging, x.vlan, x.nrf, x.there, x.clients)
	for sw, list := range planDoors(x.net, x.vlan, x.doors, x.past) {
		at[sw] = append(at[sw], list...)
	}
	return at
}

// inputs returns what the entries follow from; nil if it is not known where the NRF is.
func (w *ways) inputs(p *proxy) *wayInputs {
	cfg, net := p.cfg.Load(), p.net.Load()
	nrf, _, _ := cfg.nrf() // Validate has seen it
	if !nrf.IsValid() || net == nil {
		return nil
	}
	x := &wayInputs{net: *net, tags: p.tagging.Changes(), vlan: object.VLAN(uint32(cfg.VLAN)), nrf: nrf, past: []netip.Addr{nrf.Addr()}}
	if listen, err := cfg.listen(); err == nil && listen.IsValid() {
		x.past = append(x.past, listen.Addr())
	}
	for door := range p.index.Load().doors {
		if !slices.Contains(x.past, door.Addr()) {
			x.doors = append(x.doors, door)
		}
	}
	slices.SortFunc(x.doors, netip.AddrPort.Compare)
	clients := w.clients()
	slices.SortFunc(clients, netip.Addr.Compare)
	p.mu.Lock()
	defer p.mu.Unlock()
	there, known := p.located(nrf.Addr())
	if x.there = there; !known {
		return nil
	}
	var registered []netip.Addr
	for _, nf := range p.book {
		registered = append(registered, nf.addresses()...)
		if nf.front {
			x.past = append(x.past, nf.addresses()...)
		}
	}
	slices.SortFunc(x.past, netip.Addr.Compare)
	x.past = slices.Compact(x.past)
	slices.SortFunc(registered, netip.Addr.Compare)
	seen := map[netip.Addr]bool{nrf.Addr(): true}
	for _, a := range append(registered, clients...) {
		s, known := p.located(a)
		if known && !seen[a] && a.Is4() == nrf.Addr().Is4() && len(x.clients) < mostWays {
			seen[a] = true
			x.clients = append(x.clients, nrfClient{a, s})
		}
	}
	return x
}

// step is how packets leave a switch for the NRF, and come in from it.
type step struct {
	up   flow.Port     // the port towards the NRF
	from flow.Location // the other end: where they come in at the next switch
}

// tree returns how switches reach the NRF's, by as few links as there can be.
func tree(net nib.Snapshot, root flow.DPID) map[flow.DPID]step {
	fits := func(sw flow.DPID) bool {
		info := net.Connected(sw)
		return info != nil && flow.ForwardTable(info.Tables, info.Openflow == "1.0") != 0
	}
	next := map[flow.DPID]step{}
	if !fits(root) {
		return nil
	}
	next[root] = step{}
	for queue := []flow.DPID{root}; len(queue) > 0; queue = queue[1:] {
		var links []nib.LinkKey
		for l := range net.LinksFrom(queue[0]) {
			if back := net.Link(nib.LinkKey{Src: l.Key.Dst, Dst: l.Key.Src}); l.Is.State == "up" && back != nil && back.Is.State == "up" {
				links = append(links, l.Key)
			}
		}
		slices.SortFunc(links, func(x, y nib.LinkKey) int {
			return cmp.Or(cmp.Compare(x.Dst.Switch, y.Dst.Switch), cmp.Compare(x.Src.Port, y.Src.Port))
		})
		for _, l := range links {
			if _, has := next[l.Dst.Switch]; !has && fits(l.Dst.Switch) {
				next[l.Dst.Switch] = step{l.Dst.Port, l.Src}
				queue = append(queue, l.Dst.Switch)
			}
		}
	}
	return next
}

// planWays returns the entries that take packets of some consumers to an NRF and back. A
// consumer has them for its own port and Ethernet address, as if by a route, for the NRF's
// service and for ARP or neighbour discovery. It is a pure function.
func planWays(net nib.Snapshot, tagging *flow.Tagging, vlan uint16, nrf netip.AddrPort, there object.Station, list []nrfClient) map[flow.DPID][]flow.Entry {
	next, all := tree(net, there.At.Switch), map[flow.DPID]map[flow.EntryKey]flow.Entry{}
	in := func(port flow.Port) flow.Match {
		if vlan == 0 {
			return flow.Match{}.WithNoVLAN().WithInPort(port)
		}
		return flow.Match{}.WithVLAN(vlan).WithInPort(port)
	}
	add := func(sw flow.DPID, priority uint16, m flow.Match, to flow.Port) {
		at := flow.Location{Switch: sw, Port: to}
		actions := []flow.Action{flow.Output(to)}
		if net.Has(at, flow.RoleEdge) {
			tag, ok := tagging.Egress(at, vlan)
			if !ok {
				return
			}
			actions = append(slices.Clone(tag), actions...)
		}
		e := flow.Entry{Table: flow.TableForward, Priority: priority, Match: m, Apply: actions, Cookie: flow.NewCookie(flow.OwnerSCP, 0, 0)}
		e.Match.Normalize()
		if all[sw] == nil {
			all[sw] = map[flow.EntryKey]flow.Entry{}
		}
		all[sw][e.Key()] = e
	}
	advert := func(sw flow.DPID, m flow.Match, to flow.Port) { // the answer to a neighbour solicitation
		if nrf.Addr().Is6() {
			add(sw, flow.PriorityNRFAsk, m.WithICMPv6Type(flow.ICMPv6Advert), to)
		}
	}
	toNRF := func(m flow.Match) flow.Match {
		return m.WithEthDst(there.MAC).WithIPDst(netip.PrefixFrom(nrf.Addr(), nrf.Addr().BitLen())).WithIPProto(flow.IPProtoTCP).WithTCPDst(nrf.Port())
	}
	for _, c := range list {
		if _, reached := next[c.At.Switch]; !reached || c.At == there.At {
			continue
		}
		in1, up := in(c.At.Port).WithEthSrc(c.MAC), upOf(next, there, c.At.Switch)
		add(c.At.Switch, flow.PriorityNRFWay, toNRF(in1), up)
		add(c.At.Switch, flow.PriorityNRFAsk, asks(in1, c.addr, nrf.Addr()), up)
		advert(c.At.Switch, in1.WithEthDst(there.MAC), up)
		out := c.At.Port
		for sw := c.At.Switch; ; {
			from := upOf(next, there, sw)
			back := in(from).WithEthSrc(there.MAC)
			add(sw, flow.PriorityNRFWay, serves(back.WithEthDst(c.MAC), nrf), out)
			advert(sw, back.WithEthDst(c.MAC), out)
			add(sw, flow.PriorityNRFAsk, asks(back, nrf.Addr(), c.addr), out)
			if sw == there.At.Switch {
				break
			}
			s := next[sw]
			sw, out = s.from.Switch, s.from.Port
			up = upOf(next, there, sw)
			add(sw, flow.PriorityNRFWay, toNRF(in(out)), up)
			add(sw, flow.PriorityNRFAsk, asks(in(out), netip.Addr{}, nrf.Addr()), up)
			advert(sw, in(out).WithEthDst(there.MAC), up)
		}
	}
	entries := map[flow.DPID][]flow.Entry{}
	for sw, of := range all {
		entries[sw] = slices.SortedFunc(maps.Values(of), func(x, y flow.Entry) int {
			return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Match.String(), y.Match.String()))
		})
	}
	return entries
}

// upOf returns the port of a switch towards the NRF.
func upOf(next map[flow.DPID]step, there object.Station, sw flow.DPID) flow.Port {
	if sw == there.At.Switch {
		return there.At.Port
	}
	return next[sw].up
}

// serves returns the match of what a server sends to its clients.
func serves(m flow.Match, from netip.AddrPort) flow.Match {
	return m.WithIPSrc(netip.PrefixFrom(from.Addr(), from.Addr().BitLen())).WithIPProto(flow.IPProtoTCP).WithTCPSrc(from.Port())
}

// asks returns the match of ARP from one address to another, or of neighbour
// solicitations. Who asks need not be given.
func asks(m flow.Match, from, to netip.Addr) flow.Match {
	if to.Is6() {
		return m.WithICMPv6Type(flow.ICMPv6Solicit).WithNDTarget(to)
	}
	m = m.WithARPTPA(netip.PrefixFrom(to, to.BitLen()))
	if from.IsValid() {
		m = m.WithARPSPA(netip.PrefixFrom(from, from.BitLen()))
	}
	return m
}
