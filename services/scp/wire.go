package scp

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// wire connects a TCP stack with the network, for a front that has no host: packets
// for the NRF come from the switches to the controller, and answers go out at the
// port where their receiver is. It reaches the NRF from an address that no host
// has, for which it answers.
type wire struct {
	own     netip.Addr
	mac     flow.MAC // of own
	nrf     netip.AddrPort
	vlan    uint16 // as in flow.Key
	rate    int64  // nanoseconds for a packet of one port
	stack   *netstack
	older   *older
	most    int // connections
	reached *object.Limits
	tagging *flow.Tagging
	count   wireCounts
	changed func(...flow.DPID)    // declares the entries of some switches anew, or of all
	settle  func(context.Context) // waits until switches have confirmed these
	send    func(context.Context, *flow.Decision)
	apply   func(context.Context, *flow.Decision) ([]*api.ApplyFailure, error) // waits until switches have confirmed it
	gateDue chan struct{}                                                      // a switch has confirmed its entries
	due     func(flow.DPID) bool                                               // whether entries of a switch are being declared
	locate  func(netip.Addr) (object.Station, bool)
	relays  func(netip.Addr) bool // who may send the NRF's notifications to own, besides the NRF

	open    atomic.Bool                    // the front takes what is for the NRF,
	leaving atomic.Bool                    // but no new connections, for it ends
	there   atomic.Pointer[object.Station] // where the NRF is, or was last; nil if that is not known
	conns   *places
	gating  sync.Mutex // held while gates are sent

	mu       sync.Mutex // guards the following
	peers    map[netip.Addr]*peer
	targets  map[netip.Addr]*target // by the stack's own connections, the NRF apart
	at       map[flow.Location]*portUse
	swept    int64
	net      nib.Snapshot
	switches map[flow.DPID]*wireSwitch
}

// peer is somebody who has sent packets to the stack, and how answers get there.
type peer struct {
	at       flow.Location
	mac, via flow.MAC // its own, or its router's; and to which it sent
	seen     int64
	conns    int
}

// portUse is what comes from one port.
type portUse struct {
	peers int
	full  int64 // when its allowance is whole again
}

// wireSwitch is what is known of the entries of a connected switch.
type wireSwitch struct {
	declared int   // the last time
	there    bool  // it has confirmed some since the front is open, and refused none of the last
	single   bool  // it has one table
	gated    bool  // it has had a gate since it connected
	sent     int64 // when that was last sent
}

// wireCounts are the metrics of a front without a host.
type wireCounts struct {
	in, out                               Counter
	fast, crowd, malformed, lost, feigned Counter // packets that were dropped
	half                                  Counter // connections that were refused
}

func newWireCounts(counter func(name, help string, labels ...string) Counter) wireCounts {
	const packets = "Packets of the front that has no host, by direction."
	const dropped = "Packets of the front that has no host that were dropped, by reason."
	const refused = "Connections to the front that did not come about, by reason."
	return wireCounts{
		in:        counter("front_packets_total", packets, "direction", "in"),
		out:       counter("front_packets_total", packets, "direction", "out"),
		fast:      counter("front_packets_dropped_total", dropped, "reason", "rate"),
		crowd:     counter("front_packets_dropped_total", dropped, "reason", "addresses"),
		malformed: counter("front_packets_dropped_total", dropped, "reason", "malformed"),
		lost:      counter("front_packets_dropped_total", dropped, "reason", "unknown_receiver"),
		feigned:   counter("front_packets_dropped_total", dropped, "reason", "spoofed"),
		half:      counter("front_connections_refused_total", refused, "reason", "half_open"),
	}
}

const (
	burst     = int64(250 * time.Millisecond) // of its allowance that a port may use at once
	peerLife  = int64(10 * time.Second)       // of a silent peer without a connection
	sweepRest = int64(time.Second)            // between two searches for peers that have gone
	outMost   = 64                            // packets of one decision
)

func newWire(cfg *Config, count wireCounts, tagging *flow.Tagging, conns *places) (*wire, error) {
	nrf, _, err := cfg.nrf()
	if err != nil {
		return nil, err
	}
	w := &wire{tagging: tagging, older: newOlder(cfg.Connections), reached: conns.reached, conns: conns,
		own: cfg.own(), nrf: nrf, vlan: object.VLAN(uint32(cfg.VLAN)), rate: int64(time.Second) / int64(cfg.PacketRate), most: cfg.Connections, count: count,
		changed: func(...flow.DPID) {}, settle: func(context.Context) {}, send: func(context.Context, *flow.Decision) {}, apply: func(context.Context, *flow.Decision) ([]*api.ApplyFailure, error) { return nil, nil }, gateDue: make(chan struct{}, 1), due: func(flow.DPID) bool { return false },
		locate: func(netip.Addr) (at object.Station, known bool) { return at, false }, relays: func(netip.Addr) bool { return false }, targets: map[netip.Addr]*target{},
		peers: map[netip.Addr]*peer{}, at: map[flow.Location]*portUse{}, switches: map[flow.DPID]*wireSwitch{},
	}
	h := fnv.New32a()
	h.Write(w.own.AsSlice())
	n := h.Sum32()
	w.mac = flow.MAC{0x06, 0x57, 0x73, byte(n >> 16), byte(n >> 8), byte(n)}
	if w.stack, err = newNetstack(w.own, w.admit, count.half); err != nil {
		return nil, err
	}
	w.stack.calls = func(from netip.Addr) bool { return from == nrf.Addr() || w.relays(from) }
	return w, nil
}

// packet handles a packet-in. It reports whether it was for the front.
func (w *wire) packet(in *flow.PacketIn, d *flow.Decision) (flow.Verdict, bool) {
	if in.Role != flow.RoleEdge {
		return flow.Next, false
	}
	k := packet.Headers(in)
	switch {
	case w.vlan == 0 && k.VLAN == flow.VLANPresent, k.VLAN == w.vlan && k.EthDst.Multicast():
		if _, dst, ok := addresses(k); ok && (dst == w.own || netip.AddrPortFrom(dst, k.TPDst) == w.nrf && k.IPProto == flow.IPProtoTCP) {
			w.count.feigned.Add(1)
			return flow.Drop, true // a way past the front
		}
		if k.VLAN != w.vlan {
			return flow.Next, false
		}
	case k.VLAN != w.vlan:
		return flow.Next, false
	}
	switch {
	case k.EthSrc == w.mac:
		w.count.feigned.Add(1)
		return flow.Drop, true
	case k.EthType == flow.EthTypeARP:
		return w.arp(in, d)
	case k.EthType == flow.EthTypeIPv6 && k.IPProto == flow.IPProtoICMPv6 && k.ICMPType == flow.ICMPv6Solicit:
		return w.solicited(in, d)
	}
	src, dst, ok := addresses(k)
	switch {
	case !ok:
		return flow.Next, false
	case src == w.own:
		w.count.feigned.Add(1)
		return flow.Drop, true
	case dst == w.own:
		if k.IPProto == flow.IPProtoTCP && (w.stack.calls(src) || w.isTarget(src)) {
			w.take(in, src)
		}
		return flow.Done, true
	case netip.AddrPortFrom(dst, k.TPDst) != w.nrf || k.IPProto != flow.IPProtoTCP || !w.open.Load():
		return flow.Next, false
	}
	if s := w.there.Load(); s != nil && s.MAC != k.EthDst && in.DstMAC == k.EthDst && in.Dst != (flow.Location{}) {
		return flow.Next, false // to a router, which sends it on to the NRF
	}
	if w.leaving.Load() && !w.stack.has(netip.AddrPortFrom(src, k.TPSrc), w.nrf) {
		return flow.Next, false
	}
	if v, is := w.olderPacket(in, d, src); is {
		return v, v != flow.Next
	}
	w.take(in, src)
	return flow.Done, true
}

// take gives a TCP segment to the stack, unless its sender has sent too much.
func (w *wire) take(in *flow.PacketIn, src netip.Addr) {
	if _, ok := packet.ParseTCP(in.Data); !ok || !src.IsValid() || src.IsUnspecified() || src.IsMulticast() {
		w.count.malformed.Add(1)
		return
	}
	if !w.meet(in, src) {
		return
	}
	w.count.in.Add(1)
	if src.Is4() {
		ip, _ := packet.ParseIPv4(in.Data) // has been one
		w.stack.input(protocolOf(src), ip)
	} else {
		ip, _ := packet.ParseIPv6(in.Data)
		w.stack.input(protocolOf(src), ip)
	}
}

// meet notes where the sender of a packet is. It reports whether it may send one
// more.
func (w *wire) meet(in *flow.PacketIn, src netip.Addr) bool {
	k, at := &in.Key, flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	w.mu.Lock()
	defer w.mu.Unlock()
	if in.Time-w.swept > sweepRest {
		w.sweep(in.Time)
	}
	u := w.at[at]
	if u == nil {
		u = &portUse{}
		w.at[at] = u
	}
	full := max(u.full, in.Time) + w.rate
	if full-in.Time > max(burst, w.rate) {
		w.count.fast.Add(1)
		w.reached.ReachAt(in.Time, "scp.packet_rate", int(int64(time.Second)/w.rate), at)
		return false
	}
	u.full = full
	p := w.peers[src]
	if p == nil || p.at != at {
		if !w.makeRoom(u, p != nil, in.Time) {
			w.count.crowd.Add(1)
			w.reached.ReachAt(in.Time, "scp.connections", w.most, at)
			return false
		}
		conns := 0
		if p != nil {
			conns = p.conns
		}
		w.forget(src)
		p = &peer{at: at, conns: conns}
		w.peers[src] = p
		u.peers++
	}
	if p.mac, p.seen = k.EthSrc, in.Time; k.EthDst != w.mac {
		p.via = k.EthDst
	}
	return true
}

// Among how many peers one that makes room is looked for, and for how long it has
// been silent at least.
const (
	peersLooked = 64
	peerRest    = int64(time.Second)
)

// makeRoom makes room for a peer more at a port, which may have been at another one:
// where the port has its share, one of its own that has no connection goes, and where
// all have, one of a port that has more. It reports whether there is room. It is
// called with mu held.
func (w *wire) makeRoom(u *portUse, moved bool, now int64) bool {
	share, full := u.peers >= max(1, w.most/portPart), !moved && len(w.peers) >= w.most
	if !share && !full {
		return true
	}
	var goes netip.Addr
	oldest, looked := now-peerRest, 0
	for a, p := range w.peers { // in an order that nobody knows
		if looked++; looked > peersLooked {
			break
		}
		of := w.at[p.at]
		if p.conns > 0 || p.seen > oldest || share && of != u || !share && of.peers <= u.peers {
			continue
		}
		goes, oldest = a, p.seen
	}
	w.forget(goes)
	return goes.IsValid()
}

// forget forgets a peer. It is called with mu held.
func (w *wire) forget(a netip.Addr) {
	if p := w.peers[a]; p != nil {
		w.at[p.at].peers--
		delete(w.peers, a)
	}
}

// sweep forgets peers that have been silent for long, and ports that have none. It
// is called with mu held.
func (w *wire) sweep(now int64) {
	w.swept = now
	for a, p := range w.peers {
		if now-p.seen > peerLife && p.conns == 0 {
			w.forget(a)
		}
	}
	for a, r := range w.targets {
		if r.conns == 0 && now-r.left > peerLife {
			delete(w.targets, a)
		}
	}
	for at, u := range w.at {
		if u.peers == 0 && u.full < now {
			delete(w.at, at)
		}
	}
}

// admit says whether a peer may have a connection more, and has room for it.
func (w *wire) admit(from netip.Addr, abort func()) (room, bool) {
	w.mu.Lock()
	p := w.peers[from]
	w.mu.Unlock()
	if p == nil {
		return room{}, false
	}
	r, ok := w.conns.take(p.at, abort)
	if !ok {
		return room{}, false
	}
	w.counted(from, 1)
	give := r.give
	r.give = func() { give(); w.counted(from, -1) }
	return r, true
}

// counted notes connections of a peer that have begun or ended.
func (w *wire) counted(from netip.Addr, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.peers[from]; p != nil {
		p.conns += n
	}
}

// run sends what the stack wants sent, until ctx ends.
func (w *wire) run(ctx context.Context) {
	defer w.stack.close()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { w.leadOver(ctx) })
	work.Go(func() { w.keepGates(ctx) })
	for {
		ip, to := w.stack.output(ctx, true)
		if ip == nil {
			return
		}
		d := &flow.Decision{}
		for n := 1; ip != nil; n++ {
			w.frame(d, ip, to)
			if n == outMost {
				break
			}
			ip, to = w.stack.output(ctx, false)
		}
		if !d.Empty() {
			w.send(ctx, d)
		}
	}
}

// frame appends the packet-out of an IP packet.
func (w *wire) frame(d *flow.Decision, ip []byte, to netip.Addr) {
	e, at, ok := w.receiver(to, source(ip) == w.own)
	if !ok {
		w.count.lost.Add(1)
		return
	}
	kind := flow.EthTypeIPv4
	if to.Is6() {
		kind = flow.EthTypeIPv6
	}
	frame := packet.AppendEthernet(make([]byte, 0, len(ip)+18), e, kind)
	w.count.out.Add(1)
	w.deliver(d, packet.Pad(append(frame, ip...)), at)
}

// receiver returns the Ethernet header of packets to an address, and its port. Packets
// from own go to the NRF, to a producer or to a peer that has called own; others go back
// the way the peer's came.
func (w *wire) receiver(to netip.Addr, own bool) (e packet.Ether, at flow.Location, ok bool) {
	e = packet.Ether{Src: w.mac, VLAN: w.vlan}
	if own {
		if s := w.station(to); s != nil {
			e.Dst = s.MAC
			return e, s.At, true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.peers[to]
	if p == nil {
		return e, at, false
	}
	if e.Dst = p.mac; !own {
		e.Src = p.via
	}
	return e, p.at, true
}

// deliver appends the packet-out of a frame at a port.
func (w *wire) deliver(d *flow.Decision, frame []byte, at flow.Location) {
	tag, ok := w.tagging.Egress(at, w.vlan)
	if !ok {
		w.count.lost.Add(1)
		return
	}
	actions := append(append(make([]flow.Action, 0, 4), tag...), flow.Output(at.Port))
	d.PacketOut(at.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
}

// arp answers for the own address.
func (w *wire) arp(in *flow.PacketIn, d *flow.Decision) (flow.Verdict, bool) {
	a, ok := packet.ParseARP(in.Data)
	switch {
	case !ok || !w.own.Is4():
		return flow.Next, false
	case a.SenderIP() == w.own:
		w.count.feigned.Add(1)
		return flow.Drop, true
	case a.TargetIP() != w.own:
		return flow.Next, false
	}
	if a.Op() == 1 {
		w.deliver(d, packet.AppendARPReply(nil, w.vlan, packet.ARPFields{SenderMAC: w.mac, SenderIP: w.own, TargetMAC: a.SenderMAC(), TargetIP: a.SenderIP()}),
			flow.Location{Switch: in.Switch, Port: in.Key.InPort})
	}
	return flow.Done, true
}

// solicited is arp for IPv6 (RFC 4861).
func (w *wire) solicited(in *flow.PacketIn, d *flow.Decision) (flow.Verdict, bool) {
	nd, ok := packet.ParseND(in.Data)
	if !ok || nd.Target() != w.own {
		return flow.Next, false
	}
	src := netip.AddrFrom16(in.Key.IPv6Src)
	out := packet.NDFields{SrcMAC: w.mac, SrcIP: w.own, Target: w.own, TargetMAC: w.mac, Override: true}
	if !src.IsUnspecified() { // else it tries to use the address itself (RFC 4862 §5.4)
		out.DstMAC, out.DstIP, out.Solicited = in.Key.EthSrc, src, true
	}
	w.deliver(d, packet.AppendNDAdvert(nil, w.vlan, out), flow.Location{Switch: in.Switch, Port: in.Key.InPort})
	return flow.Done, true
}

// listen has the front take what is for the NRF, as soon as it is known where that
// is (sockets).
func (w *wire) listen(context.Context) (net.Listener, error) {
	s := w.there.Load()
	if s == nil {
		return nil, fmt.Errorf("the NRF %v has not been seen in the network", w.nrf.Addr())
	}
	w.mu.Lock()
	known := w.net.Connected(s.At.Switch)
	w.mu.Unlock()
	if known == nil {
		return nil, fmt.Errorf("the NRF %v is at switch %v, which is not connected to this controller; give scp.listen, in a host", w.nrf.Addr(), s.At.Switch)
	}
	l := w.stack.listen(w.most)
	w.mu.Lock()
	clear(w.switches)
	w.mu.Unlock()
	w.older.begin(time.Now().UnixNano())
	w.open.Store(true)
	w.changed()
	return l, nil
}

// dial connects to the NRF (sockets).
func (w *wire) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if to.Addr() != w.nrf.Addr() {
		return w.reach(ctx, to)
	}
	if w.there.Load() == nil {
		return nil, fmt.Errorf("the NRF %v has not been seen in the network", w.nrf.Addr())
	}
	return w.stack.dial(ctx, to)
}

// lost returns nil: the network cannot take the stack away (sockets).
func (w *wire) lost() error { return nil }
