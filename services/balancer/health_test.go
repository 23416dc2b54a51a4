package balancer

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	kit "github.com/weft-sdn/weft/policy"
)

// answer has the member of host n answer the checks that were sent, and returns
// what the balancer sends then.
func (g *rig) answer(n int, sent *flow.Decision, open bool) (after *flow.Decision) {
	after = &flow.Decision{}
	for _, op := range sent.Ops {
		if op.Kind != flow.OpPacketOut {
			continue
		}
		frame := sent.Outs[op.Index].Data
		var k flow.Key
		packet.Parse(frame, &k)
		if k.EthDst != macOfHost(n) {
			continue
		}
		e, ip := packet.Ether{Dst: k.EthSrc, Src: k.EthDst}, packet.IP{Src: v4(n), Dst: v4(100)}
		var reply []byte
		switch {
		case k.EthType == flow.EthTypeARP:
			reply = packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: macOfHost(n), SenderIP: v4(n), TargetMAC: k.EthSrc, TargetIP: v4(100)})
		case k.IPProto == flow.IPProtoICMP:
			m, _ := packet.ParseICMP(frame)
			reply = packet.AppendICMPEcho(nil, e, ip, packet.Echo{Reply: true, ID: m.EchoID(), Seq: m.EchoSeq()})
		default:
			s, _ := packet.ParseTCP(frame)
			flags := packet.TCPSyn | packet.TCPAck
			if !open {
				flags = packet.TCPRst | packet.TCPAck
			}
			reply = packet.AppendTCP(nil, e, ip, packet.TCPFields{SrcPort: s.DstPort(), DstPort: s.SrcPort(), Seq: 9, Ack: s.Seq() + 1, Flags: flags}, nil)
		}
		if v, _, d := g.send(n, reply); v != flow.Done {
			g.t.Errorf("the answer of host %d: %v", n, v)
		} else {
			for _, o := range d.Outs {
				after.PacketOut(d.Ops[0].Switch, o)
			}
		}
	}
	return after
}

func (g *rig) tick(d time.Duration) *flow.Decision {
	g.now += int64(d)
	sent := &flow.Decision{}
	g.b.advance(g.now, sent)
	return sent
}

func TestHealthChecks(t *testing.T) {
	for _, kind := range []string{"tcp", "icmp", "arp"} {
		t.Run(kind, func(t *testing.T) {
			g := newRig(t)
			v := web("", 5, 6)
			v.Health = &api.HealthCheck{Kind: kind, IntervalMs: 1000, TimeoutMs: 500, Rise: 2, Fall: 2}
			g.set(v)
			health := func() string {
				m := g.show("web")
				return m.Pool[0].Health + " " + m.Pool[1].Health
			}
			if health() != "unknown unknown" || g.open(1, 1000) == 0 {
				t.Errorf("at first: %s; members that nobody knows anything of are to serve", health())
			}
			sent := g.tick(0)
			if len(sent.Outs) != 2 {
				t.Fatalf("%d checks", len(sent.Outs))
			}
			after := g.answer(5, sent, true)
			if kind == "tcp" {
				if s, ok := packet.ParseTCP(after.Outs[0].Data); !ok || s.Flags() != packet.TCPRst {
					t.Errorf("the connection of a check is not reset: %+v", after.Outs)
				}
			}
			if health() != "up unknown" {
				t.Errorf("5 has answered: %s", health())
			}
			if got := g.shares(10); got[5] != 5 || got[6] != 5 {
				t.Errorf("%v, want half of them with the one that has been asked just now", got)
			}
			g.now += int64(answerTime) + 1
			if got := g.shares(10); got[6] != 0 {
				t.Errorf("%v, want all with the one that is up", got)
			}
			g.now -= int64(answerTime) + 1
			var now *flow.Decision
			for range 3 {
				now = g.tick(500 * time.Millisecond) // 6 is given up
				g.answer(5, now, true)
				now = g.tick(500 * time.Millisecond)
				g.answer(5, now, true)
			}
			if health() != "up down" || !strings.Contains(g.show("web").Pool[1].Reason, "no answer within 500ms") {
				t.Errorf("6 does not answer: %s, %s", health(), g.show("web").Pool[1].Reason)
			}
			for range 6 {
				g.answer(6, g.tick(500*time.Millisecond), true)
			}
			if h := g.show("web").Pool[1].Health; h != "up" {
				t.Errorf("6 answers again: %s", h)
			}
		})
	}
}

func TestMemberDownLosesItsConnections(t *testing.T) {
	g := newRig(t)
	v := web("", 5)
	v.Health = &api.HealthCheck{Kind: "tcp", IntervalMs: 1000, TimeoutMs: 500, Rise: 1, Fall: 1}
	g.set(v)
	g.answer(5, g.tick(0), true)
	g.shares(700)
	g.posted()
	g.answer(5, g.tick(time.Second), false)
	if m := g.show("web").Pool[0]; m.Health != "down" || m.Reason != "port 8080 is closed" || m.Connections != 0 {
		t.Errorf("%v", m)
	}
	d := g.posted()
	if len(mods(d, 1, flow.DeleteStrict)) != 700 || len(mods(d, 2, flow.DeleteStrict)) != 700 {
		t.Errorf("%d operations", len(d.Ops))
	}
	g.consistent()
}

// TestRefusedChecksAreRepeated soon, so that a process that has gone is down at once, and
// one that does not answer is not.
func TestRefusedChecksAreRepeated(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6)
	v.Health = &api.HealthCheck{Kind: "tcp", IntervalMs: 1000, TimeoutMs: 900, Rise: 1, Fall: 3}
	g.set(v)
	both := g.tick(0)
	g.answer(5, both, true)
	g.answer(6, both, true)
	began := g.tick(time.Second)
	g.answer(5, began, false)
	checks, from := 1, g.now
	for g.show("web").Pool[0].Health == "up" {
		sent := g.tick(checkTick)
		if g.answer(5, sent, false); len(sent.Outs) == 1 {
			checks++
		}
	}
	if after := time.Duration(g.now - from); checks != 3 || after > 4*checkTick {
		t.Errorf("down after %d refused checks, %v", checks, after)
	}
	if m := g.show("web").Pool[1]; m.Health != "up" {
		t.Errorf("who does not answer: %v", m)
	}
	if sent := g.tick(checkTick); len(sent.Outs) != 0 {
		t.Errorf("who is down is checked again at once")
	}
	for range int(time.Second / checkTick) {
		g.answer(5, g.tick(checkTick), true)
	}
	if m := g.show("web").Pool[0]; m.Health != "up" {
		t.Errorf("it is back: %v", m)
	}
	g.answer(5, g.tick(time.Second), false)
	g.answer(5, g.tick(checkTick), true)
	if sent := g.tick(checkTick); len(g.answer(5, sent, true).Outs) != 0 || g.show("web").Pool[0].Health != "up" {
		t.Errorf("refused once, then answered: checked again at once, or %v", g.show("web").Pool[0])
	}
}

// exchange has the member of host n take the connection of a check that was sent, and
// answer what comes by it; nil: it answers nothing. It returns what the balancer sends
// last.
func (g *rig) exchange(n int, sent *flow.Decision, settings []byte) *flow.Decision {
	g.t.Helper()
	ack := g.answer(n, sent, true)
	if len(ack.Outs) != 1 {
		g.t.Fatalf("%d packets", len(ack.Outs))
	}
	var k flow.Key
	packet.Parse(ack.Outs[0].Data, &k)
	s, ok := packet.ParseTCP(ack.Outs[0].Data)
	if !ok || s.Flags() != packet.TCPAck|packet.TCPPsh || s.Ack() != 10 || !bytes.Equal(s.Payload(), preface) {
		g.t.Errorf("the connection is taken: %x", ack.Outs[0].Data)
	}
	from := func(flags uint8, ack uint32, data []byte) *flow.Decision {
		v, _, d := g.send(n, packet.AppendTCP(nil, packet.Ether{Dst: k.EthSrc, Src: k.EthDst}, packet.IP{Src: v4(n), Dst: v4(100)},
			packet.TCPFields{SrcPort: s.DstPort(), DstPort: s.SrcPort(), Seq: 10, Ack: ack, Flags: flags}, data))
		if v != flow.Done {
			g.t.Errorf("what host %d sends: %v", n, v)
		}
		return d
	}
	end := s.Seq() + uint32(len(preface))
	last := from(packet.TCPAck, end, nil)
	if len(last.Outs) != 0 {
		g.t.Errorf("the preface has arrived: %v", last.Outs)
	}
	if settings != nil {
		last = from(packet.TCPAck|packet.TCPPsh, s.Seq(), settings) // before it has read the preface
		if r, ok := packet.ParseTCP(last.Outs[0].Data); !ok || r.Flags() != packet.TCPRst || r.Seq() != end {
			g.t.Errorf("the connection is not reset: %x", last.Outs[0].Data)
		}
	}
	return last
}

// TestHangingMember: one whose host takes connections and whose process hangs is down by
// checks of kind http2, if it has answered such a check before.
func TestHangingMember(t *testing.T) {
	settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}
	for what, c := range map[string]struct {
		first []byte
		want  string
	}{"of HTTP/2": {settings, "down"}, "of HTTP/1": {[]byte("HTTP/1.1 400 Bad Request\r\n"), "up"}, "that has never answered": {nil, "up"}} {
		g := newRig(t)
		v := web("", 5)
		v.Health = &api.HealthCheck{Kind: "http2", IntervalMs: 1000, TimeoutMs: 500, Rise: 1, Fall: 2}
		g.set(v)
		g.exchange(5, g.tick(0), c.first)
		if c.first == nil {
			g.tick(500 * time.Millisecond)
		}
		if m := g.show("web").Pool[0]; m.Health != "up" {
			t.Errorf("a member %s: %v", what, m)
		}
		if c.want == "down" {
			if unused := g.answer(5, g.tick(time.Second), true); len(unused.Outs) != 1 || len(g.b.prober.probes) != 0 {
				t.Errorf("a member that nobody uses: %d packets", len(unused.Outs))
			}
		}
		g.open(1, 1000)
		for range 2 {
			g.exchange(5, g.tick(time.Second), nil)
			gone := g.tick(500 * time.Millisecond)
			if r, ok := packet.ParseTCP(gone.Outs[0].Data); !ok || r.Flags() != packet.TCPRst {
				t.Errorf("the connection is not reset: %x", gone.Outs[0].Data)
			}
		}
		if m := g.show("web").Pool[0]; m.Health != c.want {
			t.Errorf("a member %s hangs: %v", what, m)
		}
		g.answer(5, g.tick(time.Second), false)
		g.answer(5, g.tick(checkTick), false)
		if m := g.show("web").Pool[0]; m.Health != "down" {
			t.Errorf("a member %s has gone: %v", what, m)
		}
		g.exchange(5, g.tick(time.Second), settings)
		if m := g.show("web").Pool[0]; m.Health != "up" || len(g.b.prober.probes) != 0 {
			t.Errorf("a member %s is back: %v, %d checks", what, m, len(g.b.prober.probes))
		}
	}
}

// TestForgedAnswers: only the answer to the check under way counts.
func TestForgedAnswers(t *testing.T) {
	g := newRig(t)
	v := web("", 5)
	v.Health = &api.HealthCheck{Kind: "tcp", IntervalMs: 1000, TimeoutMs: 500, Rise: 1, Fall: 1}
	g.set(v)
	sent := g.tick(0)
	s, _ := packet.ParseTCP(sent.Outs[0].Data)
	var k flow.Key
	packet.Parse(sent.Outs[0].Data, &k)
	f := packet.TCPFields{SrcPort: s.DstPort(), DstPort: s.SrcPort(), Ack: s.Seq() + 2, Flags: packet.TCPSyn | packet.TCPAck}
	frame := packet.AppendTCP(nil, packet.Ether{Dst: k.EthSrc, Src: macOfHost(5)}, packet.IP{Src: v4(5), Dst: v4(100)}, f, nil)
	if v, _, _ := g.send(5, frame); v == flow.Done || g.show("web").Pool[0].Health != "unknown" {
		t.Error("an answer with another number was taken")
	}
}

// TestUnknownMembersAreAskedFor at all edge ports, and no oftener than said.
func TestUnknownMembersAreAskedFor(t *testing.T) {
	g := newRig(t)
	for _, at := range []flow.Location{{Switch: 1, Port: 1}, {Switch: 1, Port: 2}, {Switch: 2, Port: 5}} {
		g.feed(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: "edge"}})
	}
	v := web("", 5)
	v.Pool[0].Address = "10.0.0.77"
	g.set(v)
	sent := g.tick(0)
	if len(sent.Outs) != 2 || len(g.tick(time.Second).Outs) != 0 || len(g.tick(5*time.Second).Outs) != 2 {
		t.Errorf("%d questions", len(sent.Outs))
	}
	if a, ok := packet.ParseARP(sent.Outs[0].Data); !ok || a.TargetIP().String() != "10.0.0.77" {
		t.Errorf("%x", sent.Outs[0].Data)
	}
}

// translated returns the entries of a set that choose members.
func translated(r kit.Rules) []flow.Entry {
	return slices.DeleteFunc(slices.Clone(r.Flows), func(e flow.Entry) bool { return e.Table != flow.TableTranslate })
}

// TestVIPIsNobodyElses: unicast ARP that is sent to a VIP, or claims its address, comes to
// the controller on every switch, but for that of a host that a VIP shadows.
func TestVIPIsNobodyElses(t *testing.T) {
	g := newRig(t)
	g.set(web("", 5, 6))
	v := g.b.vips.List()[0]
	thief := macOfHost(9)
	claim := flow.Key{EthDst: macOfHost(1), EthSrc: thief, EthType: flow.EthTypeARP, ARPOp: 2, ARPSHA: thief, ARPSPA: v.at.host.Addr.As4()}
	question := flow.Key{EthDst: v.mac, EthSrc: thief, EthType: flow.EthTypeARP, ARPOp: 1, ARPSHA: thief, ARPSPA: v4(9).As4()}
	own := flow.Key{EthDst: macOfHost(1), EthSrc: thief, EthType: flow.EthTypeARP, ARPOp: 2, ARPSHA: thief, ARPSPA: v4(9).As4()}
	comes := func(k flow.Key) bool {
		for _, e := range g.rules(1).Flows {
			if e.Table == flow.TableNeighbours && e.Match.Matches(&k) && slices.Equal(e.Apply, []flow.Action{flow.Output(flow.PortController)}) {
				return true
			}
		}
		return false
	}
	if !comes(claim) || !comes(question) || comes(own) {
		t.Errorf("comes to the controller: a claim %v, a question %v, a host's own address %v", comes(claim), comes(question), comes(own))
	}
	g.connect(1, 1)
	if comes(claim) {
		t.Error("a switch with one table has entries in another")
	}
}

func TestGroupWhereItFits(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6)
	v.Protocol, v.Stateless = "udp", true
	v.Pool[1].Weight = 3
	if m := g.set(v); len(m.Groups) != 1 || m.Groups[0] != flow.DPID(2).String() {
		t.Errorf("switches %v choose, want the one of both members", m.Groups)
	}
	req := g.rules(2)
	if len(req.Groups) != 1 || len(req.Groups[0].Buckets) != 2 || req.Groups[0].Buckets[1].Weight != 3 || len(translated(req)) != 5 {
		t.Errorf("%v", req)
	}
	for _, e := range req.Flows {
		if err := e.Match.Check(); err != nil {
			t.Error(err)
		}
	}
	if req := g.rules(1); len(req.Groups)+len(translated(req)) != 0 {
		t.Errorf("at another switch: %v", req)
	}
	for name, change := range map[string]func(*api.Vip){
		"not stateless": func(v *api.Vip) { v.Stateless = false }, "by hash": func(v *api.Vip) { v.Policy = "hash" },
		"least": func(v *api.Vip) { v.Policy = "least" }, "sticky": func(v *api.Vip) { v.Stickiness = 5 },
		"a member elsewhere": func(v *api.Vip) { v.Pool[0].Address = v4(1).String() },
	} {
		other := web("", 5, 6)
		other.Protocol, other.Stateless = "udp", true
		change(other)
		if m := g.set(other); len(m.Groups) != 0 {
			t.Errorf("%s: switches %v choose", name, m.Groups)
		}
	}
	if _, err := g.b.vips.Delete(context.Background(), &api.Vip{Name: "web"}); err != nil {
		t.Error(err)
	}
}

// TestCheckedWhenItComes: a member that is not up is checked when it is known where
// it is, and when its VIP is set, whenever its next check would be.
func TestCheckedWhenItComes(t *testing.T) {
	g := newRig(t)
	v := web("", 5)
	v.Health = &api.HealthCheck{Kind: "tcp", IntervalMs: 60_000, TimeoutMs: 500, Fall: 1}
	g.host(5, placeOf(5), "gone")
	g.set(v)
	g.tick(0)
	if m := g.show("web").Pool[0]; m.Health != "away" {
		t.Fatalf("a member that nobody could be asked for: %v", m)
	}
	g.edge(placeOf(1), "edge")
	if sent := g.tick(50 * time.Millisecond); len(sent.Outs) != 1 || g.show("web").Pool[0].Health != "down" {
		t.Fatalf("a member that nobody knows: %d questions, %v", len(sent.Outs), g.show("web").Pool[0])
	}
	g.edge(placeOf(5), "edge") // where it may be
	if now, later := g.tick(50*time.Millisecond), g.tick(time.Duration(askAgain)); len(now.Outs) != 0 || len(later.Outs) != 2 {
		t.Errorf("a port has come: %d questions, then %d", len(now.Outs), len(later.Outs))
	}
	g.host(5, placeOf(5), "learnt")
	if sent := g.tick(50 * time.Millisecond); len(sent.Outs) != 1 {
		t.Errorf("it has come: %d checks", len(sent.Outs))
	} else {
		g.answer(5, sent, false)
	}
	g.set(v)
	if sent := g.tick(50 * time.Millisecond); len(sent.Outs) != 1 {
		t.Errorf("its VIP is set: %d checks", len(sent.Outs))
	}
}
