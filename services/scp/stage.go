package scp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
)

// index is what packets are compared with; a new one replaces it, it never
// changes.
type index struct {
	doors map[netip.AddrPort][]*producer // where services are reached, but the NRF's
	vips  map[netip.AddrPort]sbi.NFType  // where those of a type are
	nfs   map[netip.Addr][]*producer
	names map[string][]*producer
	sets  map[string][]*producer // of instances and of services
	types map[sbi.NFType]bool    // that somebody has registered

	forbidden map[netip.AddrPort]bool   // doors that the policy of their type forbids
	balanced  map[netip.AddrPort]string // doors that it balances, and the VIPs by which
}

// reindex makes the index anew. It is called with mu held.
func (p *proxy) reindex() {
	x := &index{doors: map[netip.AddrPort][]*producer{}, vips: map[netip.AddrPort]sbi.NFType{}, nfs: map[netip.Addr][]*producer{},
		names: map[string][]*producer{}, sets: map[string][]*producer{}, types: map[sbi.NFType]bool{}}
	for _, e := range p.endpoints {
		for _, a := range e.Addrs {
			for _, d := range e.Doors {
				x.vips[netip.AddrPortFrom(a, d.Port)] = e.Group.Type
			}
		}
	}
	for _, nf := range p.book {
		x.types[nf.profile.NFType] = true
		for _, e := range nf.points {
			if list := x.doors[e.Addr]; nf.front || slices.Contains(nf.unproven, e.Addr.Addr()) {
				continue
			} else if len(list) == 0 || list[len(list)-1] != nf {
				x.doors[e.Addr] = append(list, nf)
			}
		}
		for _, a := range nf.addresses() {
			x.nfs[a] = append(x.nfs[a], nf)
		}
		for _, name := range nf.names {
			x.names[name] = append(x.names[name], nf)
		}
		for _, set := range nf.sets {
			x.sets[set] = append(x.sets[set], nf)
		}
	}
	x.forbidden, x.balanced = forbidden(p), balanced(p)
	p.index.Store(x)
}

// packet is the stage: it gives a front without a host what is for it, and judges
// the first packets of connections to producers' own addresses, which consumers
// have from Locations, or for callbacks.
func (p *proxy) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	if p.wire != nil {
		if v, taken := p.wire.packet(in, d); taken {
			return v
		}
	}
	x := p.index.Load()
	if len(x.doors) == 0 || in.Role != flow.RoleEdge {
		return flow.Next
	}
	k := packet.Headers(in)
	if k.IPProto != flow.IPProtoTCP {
		return flow.Next
	}
	src, dst, ok := addresses(k)
	if !ok {
		return flow.Next
	}
	to := netip.AddrPortFrom(dst, k.TPDst)
	producers, of := x.doors[to], x.vips[to]
	if len(producers) == 0 && of == "" {
		return flow.Next
	}
	t, ok := packet.ParseTCP(in.Data)
	opens := ok && t.Flags()&(packet.TCPSyn|packet.TCPAck) == packet.TCPSyn
	led := in.Table == flow.TableProxy && in.Cookie.Owner() == flow.OwnerSCP // by a door's entry
	if !opens && !led || of != "" && !opens {
		return flow.Next
	}
	cfg := p.cfg.Load()
	listen, _ := cfg.listen() // Validate has seen both
	nrf, _, _ := cfg.nrf()
	if src == listen.Addr() || src == nrf.Addr() || slices.ContainsFunc(x.nfs[src], func(nf *producer) bool { return nf.front }) { // the front's own, and what the NRF notifies without it
		return flow.Next
	}
	at := flow.Location{Switch: in.Switch, Port: k.InPort}
	if of != "" { // the balancer judges
		p.direct.partner(src, of, at)
		return flow.Next
	}
	if !permitted(x.nfs[src], producers, cfg.Strict) && !p.trusted(src) && !p.direct.callsBack(x.nfs[src], dst) {
		if !opens && !p.direct.has(src, to) { // of a connection that is older than the door's entry, or of none
			return flow.Next
		}
		if len(x.nfs[src]) == 0 && !p.surveyed.Load() { // it sends that again
			p.count.undecided.Add(1)
			return flow.Drop
		}
		p.count.refused.Add(1)
		if len(x.nfs[src]) > 0 {
			p.direct.refuse(directKey{src, to}, at, in.Time, reasonNotAllowed)
		}
		p.reset(in, d, t, src, dst)
		return flow.Drop
	}
	if opens && x.forbidden[to] && !excepted(p, x, src, dst) {
		p.count.ownForbidden.Add(1)
		p.direct.refuse(directKey{src, to}, at, in.Time, reasonForbidden)
		p.reset(in, d, t, src, dst)
		return flow.Drop
	}
	if vip := x.balanced[to]; vip != "" && balances(p, x, src, dst, producers) {
		if opens {
			p.count.ownBalanced.Add(1)
		}
		p.direct.partner(src, producers[0].profile.NFType, at)
		p.direct.balance(directKey{src, to}, at, in.Time)
		in.Cookie = flow.OwnAddressCookie(vip)
		return flow.Next
	}
	if opens {
		p.count.allowed.Add(1)
	}
	p.direct.partner(src, producers[0].profile.NFType, at)
	if x.forbidden[to] { // whose pair has no entries, by which new connections would pass
		if id, due := p.direct.goesOn(connection{netip.AddrPortFrom(src, k.TPSrc), to}, at, in.Time); due && led {
			countEntries(d, p.net.Load(), in.Switch, id, k, to, k.TPSrc)
		}
		return flow.Next
	}
	if id, due := p.direct.used(src, to, at, in.Time, led); due && (led || len(x.nfs[src]) > 0) {
		countEntries(d, p.net.Load(), in.Switch, id, k, to, 0)
	}
	return flow.Next
}

// permitted reports whether consumers may use one of some producers.
func permitted(consumers, producers []*producer, strict bool) bool {
	for _, nf := range producers {
		if nf.class == "" && !strict {
			return true
		}
		for _, c := range consumers {
			if c == nf || nf.admits(c) {
				return true
			}
		}
	}
	return false
}

// callsBack reports whether an address has used one of some producers, which may
// then connect to it for callbacks.
func (d *direct) callsBack(producers []*producer, to netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(producers, func(nf *producer) bool { return d.partners.get(partnerKey{to, nf.profile.NFType}) != nil })
}

// partner notes that a consumer, at a port of the network, uses producers of a type.
func (d *direct) partner(consumer netip.Addr, of sbi.NFType, at flow.Location) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.partners.use(partnerKey{consumer, of}, at)
}

// addresses returns the IP addresses of a packet.
func addresses(k *flow.Key) (src, dst netip.Addr, ok bool) {
	switch k.EthType {
	case flow.EthTypeIPv4:
		return netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst), true
	case flow.EthTypeIPv6:
		return netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst), true
	}
	return src, dst, false
}

// reset appends the TCP reset for who may not connect, so that it need not wait, or may
// not go on.
func (p *proxy) reset(in *flow.PacketIn, d *flow.Decision, t packet.TCP, src, dst netip.Addr) {
	k := &in.Key
	tag, ok := p.tagging.Egress(flow.Location{Switch: in.Switch, Port: k.InPort}, k.VLAN)
	if !ok {
		return
	}
	f := packet.TCPFields{SrcPort: t.DstPort(), DstPort: t.SrcPort(), Flags: packet.TCPRst | packet.TCPAck, Ack: t.Seq() + 1}
	if t.Flags()&packet.TCPAck != 0 {
		f.Flags, f.Ack, f.Seq = packet.TCPRst, 0, t.Ack()
	}
	frame := packet.AppendTCP(nil, packet.Ether{Dst: k.EthSrc, Src: k.EthDst, VLAN: k.VLAN}, packet.IP{Src: dst, Dst: src}, f, nil)
	actions := append(append(make([]flow.Action, 0, 4), tag...), flow.Output(k.InPort))
	d.PacketOut(in.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
}

// direct is the consumers that use producers' own addresses.
type direct struct {
	mu       sync.Mutex // guards the following
	last     uint32     // number of a pair
	pairs    *table[directKey, directPair]
	partners *table[partnerKey, struct{}] // who has used whom, by way of a VIP or not
	choosers *table[partnerKey, struct{}] // who has chosen among the instances of a type itself
	goOn     *table[connection, int64]    // that have entries of their own, and when these were sent
}

type partnerKey struct {
	consumer netip.Addr
	of       sbi.NFType
}

type directKey struct {
	consumer netip.Addr
	producer netip.AddrPort
}

type directPair struct {
	since       int64
	connections uint64    // that the controller has seen
	id          uint32    // in the cookies of the entries that count
	at          flow.DPID // where they are
	sent        int64     // when they were last sent; 0: it has none
	refused     uint64    // connections
	reason      string    // of the last
	balanced    bool      // its connections are the balancer's
}

// How long entries that count a direct pair stay without packets, in seconds, and after
// which time they are sent again when the controller sees a connection.
const (
	countIdle = 300
	countRest = int64(countIdle/2) * int64(time.Second)
	countSoon = int64(time.Second) // where packets come to the controller as long as they are not there
	countLag  = 2 * time.Second    // after which switches tell what they have counted; Open vSwitch looks every half second
)

// mostDirect bounds each table of direct pairs.
const mostDirect = 20_000

func newDirect() *direct {
	return &direct{last: rand.Uint32(), pairs: newTable[directKey, directPair](mostDirect), partners: newTable[partnerKey, struct{}](mostDirect), choosers: newTable[partnerKey, struct{}](mostDirect), goOn: newTable[connection, int64](mostGoOn)}
}

// used notes a connection of a consumer, at a port of the network, to a producer's
// own address. It returns the number of the pair, and whether entries that count it are
// due; led says that packets come to the controller because there are none.
func (d *direct) used(src netip.Addr, to netip.AddrPort, at flow.Location, now int64, led bool) (id uint32, due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.pair(directKey{src, to}, at, now)
	x.balanced = false
	x.connections++
	rest := countRest
	if led {
		rest = countSoon
	}
	if due = x.at != at.Switch || now-x.sent > rest; due {
		x.at, x.sent = at.Switch, now
	}
	return x.id, due
}

// has reports whether a consumer has used a producer's own address.
func (d *direct) has(src netip.Addr, to netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pairs.get(directKey{src, to}) != nil
}

// countEntries appends the entries that count the packets of a direct pair, or of its
// connection from a port, at the consumer's switch: they let the packets go on.
func countEntries(d *flow.Decision, net *nib.Snapshot, sw flow.DPID, id uint32, k *flow.Key, to netip.AddrPort, port uint16) {
	if net == nil {
		return
	}
	info := net.Connected(sw)
	if info == nil || info.Openflow == "1.0" || flow.ForwardTable(info.Tables, false) == 0 {
		return
	}
	src, _, _ := addresses(k)
	between := func(from, to netip.Addr) flow.Match {
		m := flow.Match{}.WithIPSrc(netip.PrefixFrom(from, from.BitLen())).WithIPDst(netip.PrefixFrom(to, to.BitLen())).WithIPProto(flow.IPProtoTCP)
		if k.VLAN == 0 {
			return m.WithNoVLAN()
		}
		return m.WithVLAN(k.VLAN)
	}
	there, back := between(src, to.Addr()).WithTCPDst(to.Port()), between(to.Addr(), src).WithTCPSrc(to.Port())
	if port != 0 {
		there, back = there.WithTCPSrc(port), back.WithTCPDst(port)
	}
	for _, m := range []flow.Match{there, back} {
		e := &d.AddFlow(sw).Entry
		e.Table, e.Goto, e.Priority, e.Match = flow.TableTranslate, flow.TableForward, flow.PriorityCounted, m
		e.IdleTimeout, e.Cookie = countIdle, flow.NewCookie(flow.OwnerSCP, 1, id)
	}
}

// all calls f with each pair.
func (d *direct) all(f func(directKey, *directPair)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pairs.all(f)
}
