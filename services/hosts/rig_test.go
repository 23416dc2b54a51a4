package hosts

import (
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

const ms = int64(time.Millisecond)

// A rig is a table with stages and its own time.
type rig struct {
	*table
	*index // the table's
	t      testing.TB
	now    int64
	stages map[flow.DPID]func(*flow.PacketIn, *flow.Decision) flow.Verdict
	roles  map[flow.Location]flow.PortRole // edge if not listed
	asked  flow.Decision                   // questions to hosts
	events []*api.HostChanged
	heldUp flow.DPID // a switch that answers no echo
}

func newRig(t testing.TB, change func(*Config)) *rig {
	cfg := DefaultConfig()
	if change != nil {
		change(cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	table := newTable(cfg)
	return &rig{table: table, index: table.index, t: t, now: int64(1e18), roles: map[flow.Location]flow.PortRole{},
		stages: map[flow.DPID]func(*flow.PacketIn, *flow.Decision) flow.Verdict{}}
}

func at(sw flow.DPID, p flow.Port) flow.Location { return flow.Location{Switch: sw, Port: p} }

func mac(n byte) flow.MAC { return flow.MAC{2, 0, 0, 0, 0, n} }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// packetIn returns a parsed packet-in.
func (r *rig) packetIn(l flow.Location, frame []byte) *flow.PacketIn {
	role, ok := r.roles[l]
	if !ok {
		role = flow.RoleEdge
	}
	in := &flow.PacketIn{Switch: l.Switch, Time: r.now, Data: frame, Role: role}
	in.Key.InPort = l.Port
	packet.Parse(frame, &in.Key)
	return in
}

// packet gives a frame to the stage of a switch.
func (r *rig) packet(l flow.Location, frame []byte) (*flow.PacketIn, flow.Verdict) {
	s := r.stages[l.Switch]
	if s == nil {
		s = r.open(l.Switch, slog.New(slog.NewTextHandler(io.Discard, nil)))
		r.stages[l.Switch] = s
	}
	in := r.packetIn(l, frame)
	r.asked.Reset()
	v := s(in, &r.asked)
	r.echoes()
	return in, v
}

// echoes has the switches answer the echoes that are wanted.
func (r *rig) echoes() {
	for _, dpid := range r.silences.toEcho() {
		if sw, _ := flow.ParseDPID(dpid); sw != r.heldUp {
			r.silences.recordEcho(r.now, r.now, sw)
		}
	}
}

// run lets time pass in steps of 25 ms; questions are answered by answer, if
// there is one.
func (r *rig) run(d time.Duration, answer func(to flow.Location, frame []byte)) {
	for end := r.now + int64(d); r.now < end; r.now += 25 * ms {
		r.step(answer)
	}
	r.step(answer)
}

func (r *rig) step(answer func(to flow.Location, frame []byte)) {
	d := &flow.Decision{}
	r.advance(r.now, d)
	r.echoes()
	for i, o := range d.Outs {
		if answer != nil {
			answer(flow.Location{Switch: d.Ops[i].Switch, Port: flow.Port(o.Actions[0].Arg)}, o.Data)
		}
	}
}

// changes returns and forgets the events so far, as "change mac at".
func (r *rig) changes() (list []string) {
	r.publishMarked(r.now, nil, func(e *api.HostChanged) {
		r.events = append(r.events, e)
		list = append(list, e.Change+" "+e.Host.Mac+" "+e.Host.At.Flow().String())
	})
	return list
}

func (r *rig) wantChanges(want ...string) {
	r.t.Helper()
	got := r.changes()
	if len(got) != len(want) {
		r.t.Fatalf("events %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			r.t.Fatalf("events %q, want %q", got, want)
		}
	}
}

func (r *rig) where(m flow.MAC) flow.Location {
	h := r.host(newID(m, 0))
	if h == nil {
		return flow.Location{}
	}
	return h.at.Load().Location
}

func (r *rig) wantAt(m flow.MAC, l flow.Location) {
	r.t.Helper()
	if got := r.where(m); got != l {
		r.t.Fatalf("host %v is at %v, want %v", m, got, l)
	}
}

// refusedAs gives a frame to the stage and wants it dropped for a reason.
func (r *rig) refusedAs(why refusal, l flow.Location, frame []byte) {
	r.t.Helper()
	before := r.tally.n[why].Load()
	if _, v := r.packet(l, frame); v != flow.Drop {
		r.t.Fatalf("verdict %v, want drop", v)
	}
	if r.tally.n[why].Load() != before+1 {
		r.t.Fatalf("not refused as %v: %v", why, r.tally.list())
	}
}

func (r *rig) accept(l flow.Location, frame []byte) *flow.PacketIn {
	r.t.Helper()
	in, v := r.packet(l, frame)
	if v != flow.Next {
		r.t.Fatalf("verdict %v, refused %v", v, r.tally.list())
	}
	return in
}

func udp(src, dst flow.MAC, from, to string) []byte {
	return packet.AppendUDP(nil, packet.Ether{Src: src, Dst: dst}, packet.IP{Src: ip(from), Dst: ip(to), TTL: 64}, 1000, 2000, []byte("x"))
}

func arpRequest(src flow.MAC, from, to string) []byte {
	return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: ip(from), TargetIP: ip(to)})
}

func arpReply(src flow.MAC, from string, dst flow.MAC, to string) []byte {
	return packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: ip(from), TargetMAC: dst, TargetIP: ip(to)})
}

func advert(src flow.MAC, target string) []byte {
	return packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: src, SrcIP: ip(target), Target: ip(target), Override: true})
}

func solicit(src flow.MAC, from, target string) []byte {
	return packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: src, SrcIP: ip(from), Target: ip(target)})
}

// alive answers questions as the real owner of an address does.
func (r *rig) alive(m flow.MAC, l flow.Location, addr string) func(flow.Location, []byte) {
	return func(to flow.Location, frame []byte) {
		if to != l {
			return
		}
		var k flow.Key
		packet.Parse(frame, &k)
		if k.EthDst != m {
			r.t.Errorf("question to %v at %v, want %v", k.EthDst, to, m)
		}
		r.now += ms
		reply := arpReply(m, addr, k.EthSrc, "0.0.0.0")
		if ip(addr).Is6() {
			reply = packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: m, SrcIP: ip(addr), DstMAC: k.EthSrc,
				DstIP: netip.AddrFrom16(k.IPv6Src), Target: ip(addr), Solicited: true, Override: true})
		}
		if _, v := r.packet(l, reply); v != flow.Done {
			r.t.Errorf("the answer to our question goes on: %v", v)
		}
	}
}

// answerNow answers the questions of the last packet.
func (r *rig) answerNow(answer func(flow.Location, []byte)) {
	outs, ops := append([]flow.PacketOut(nil), r.asked.Outs...), append([]flow.Op(nil), r.asked.Ops...)
	for i, o := range outs {
		answer(flow.Location{Switch: ops[i].Switch, Port: flow.Port(o.Actions[0].Arg)}, o.Data)
	}
}

func portMsg(sw flow.DPID, p flow.Port, up bool) *api.Port {
	return &api.Port{Dpid: sw.String(), Port: uint32(p), Up: up}
}

// responds answers questions to an address at a port, whatever becomes of the
// answers.
func (r *rig) responds(m flow.MAC, l flow.Location, addr string) func(flow.Location, []byte) {
	return func(to flow.Location, frame []byte) {
		var k flow.Key
		packet.Parse(frame, &k)
		if to != l || k.EthDst != m {
			return
		}
		r.now += ms
		reply := arpReply(m, addr, k.EthSrc, "0.0.0.0")
		if ip(addr).Is6() {
			reply = packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: m, SrcIP: ip(addr), DstMAC: k.EthSrc,
				DstIP: netip.AddrFrom16(k.IPv6Src), Target: ip(addr), Solicited: true, Override: true})
		}
		r.packet(l, reply)
	}
}

// wantClaims wants, and forgets, the events about claims so far, as "outcome mac ip at".
func (r *rig) wantClaims(want ...string) {
	r.t.Helper()
	var got []string
	for _, e := range r.claims.takeEvents() {
		got = append(got, e.Outcome+" "+e.Mac+" "+e.Ip+" "+e.At.Flow().String())
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("events about claims %q, want %q", got, want)
	}
}
