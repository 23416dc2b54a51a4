package virtual

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

const lapsePlan = `name: lapse
partial: true
workers:
  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, balancer, witness]}
`

// TestLapse: while the controller is away for longer than four seconds, a shadow that
// lapses lets packets through to its host, at once and for good; shorter, nothing changes.
// When it is back, members serve again, and the host's connections go on.
func TestLapse(t *testing.T) {
	synctest.Test(t, lapse)
}

func lapse(t *testing.T) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := oftest.Config{Nicira: true, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b := w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	client, host, member := w.addStation(a), w.addStation(b), w.addStation(b)
	if err := w.cluster.apply(ctx, lapsePlan); err != nil {
		t.Fatal(err)
	}
	up := func() (down func()) {
		own, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() { defer close(done); w.cluster.supervise(own) }()
		return func() {
			stop()
			<-done
			for _, p := range w.cluster.all() {
				w.cluster.kill(p)
			}
		}
	}
	down := up()
	defer func() {
		down()
		cancel()
		w.work.Wait()
	}()
	w.powerOn(ctx, a)
	w.powerOn(ctx, b)
	for _, h := range []*station{host, member} {
		if !client.ping(ctx, h, w.number(), 20*time.Second) {
			t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
		}
	}
	if _, err := weft.Call(ctx, w.cluster.present().env, api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "v", Address: host.ip.String(), Protocol: "tcp", Port: 7000,
		Shadow: true, Takeover: true, Lapse: true, Per: "pair", Pool: []*api.PoolMember{{Address: member.ip.String()}}}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(15 * time.Second) // until there are pairs
	// lands has the client send a segment, and returns who gets it.
	lands := func(port uint16, flags uint8) *station {
		host.Received()
		member.Received()
		client.Send(packet.AppendTCP(nil, packet.Ether{Src: client.mac, Dst: host.mac}, packet.IP{Src: client.ip, Dst: host.ip},
			packet.TCPFields{SrcPort: port, DstPort: 7000, Flags: flags}, nil))
		time.Sleep(100 * time.Millisecond)
		for _, h := range []*station{host, member} {
			if slices.ContainsFunc(h.Received(), func(f []byte) bool {
				var k flow.Key
				return packet.Parse(f, &k) && k.TPDst == 7000 && k.TPSrc == port && netip.AddrFrom4(k.IPv4Dst) == h.ip
			}) {
				return h
			}
		}
		return nil
	}
	want := func(when string, port uint16, flags uint8, h *station) {
		t.Helper()
		if got := lands(port, flags); got != h {
			t.Errorf("%s: comes to %v, want %v", when, got, h)
		}
	}
	want("at first", 4000, packet.TCPSyn, member)
	time.Sleep(time.Second)
	down()
	time.Sleep(2 * time.Second)
	want("two seconds after the end", 4001, packet.TCPSyn, member)
	time.Sleep(2500 * time.Millisecond)
	want("five seconds after the end", 4002, packet.TCPSyn, host)
	want("a connection of before", 4000, packet.TCPAck, host) // which resets it
	down = up()
	back := false
	for range 100 {
		if back = lands(4003, packet.TCPSyn) == member; back {
			break
		}
		time.Sleep(200 * time.Millisecond)
		want("a connection that the host has had meanwhile", 4002, packet.TCPAck, host)
	}
	if !back {
		t.Errorf("the member serves no more\n%s", w.logs.b.String())
	}
	want("a connection that the host has had meanwhile, after the return", 4002, packet.TCPAck, host)
}
