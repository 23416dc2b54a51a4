package virtual

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// TestCircuitEncodings is TestEncodings for circuits of payload ip, with ends that are ports
// and VLANs: IP packets of a customer's device come to the device at the other end once, in
// whatever encoding, or are dropped as the guide says; others hear nothing of them.
func TestCircuitEncodings(t *testing.T) {
	for _, vlan := range []uint16{0, 10} {
		for _, f := range families {
			for _, proto := range []uint8{flow.IPProtoUDP, flow.IPProtoTCP} {
				t.Run(fmt.Sprintf("VLAN %d, %s %s", vlan, f.name, protoName[proto]), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { carry(t, vlan, f, proto) })
				})
			}
		}
	}
}

// carry tries one circuit.
func carry(t *testing.T, vlan uint16, f family, proto uint8) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b := w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	tagged := ""
	if vlan != 0 {
		tagged = fmt.Sprintf(".%d", vlan)
	}
	ends := []string{fmt.Sprintf("%d:%d%s", a.sw, a.next, tagged), fmt.Sprintf("%d:%d%s", b.sw, b.next, tagged)}
	near, far := w.addStation(a), w.addStation(b)
	others := []*station{w.addStation(a), w.addStation(b)}
	if err := w.cluster.apply(ctx, "name: circuits\npartial: true\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, tunnels, l2vpn, witness]}\n"); err != nil {
		t.Fatal(err)
	}
	w.work.Go(func() { w.cluster.supervise(ctx) })
	defer func() {
		cancel()
		w.cluster.stop()
		w.work.Wait()
	}()
	w.powerOn(ctx, a)
	w.powerOn(ctx, b)
	if !others[0].ping(ctx, others[1], w.number(), 20*time.Second) {
		t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
	}
	if err := until(ctx, time.Minute, func(ctx context.Context) error {
		return setCircuits(ctx, w.cluster.present().env, []*api.Circuit{{Name: "c", Ends: ends, Payload: "ip"}})
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	tr := oftest.Traffic{SrcMAC: near.mac, DstMAC: far.mac, Proto: proto, Src: netip.AddrPortFrom(f.host(101), 40000), Dst: netip.AddrPortFrom(f.host(102), 7000)}
	var head []byte // of a frame of the circuit at an end, behind the addresses
	if vlan != 0 {
		head = []byte{0x81, 0, byte(vlan >> 8), byte(vlan)}
	}
	tag := func(frame []byte) []byte { return slices.Concat(frame[:12], head, frame[12:]) }
	in := func(frame []byte) bool { return bytes.HasPrefix(frame[12:], head) }
	about := func(frame []byte) bool { // the traffic
		var k flow.Key
		packet.Parse(frame, &k)
		return k.IPv4Src == f4(tr.Src.Addr()) && k.IPv6Src == f6(tr.Src.Addr())
	}
	far.Send(tag(packet.Pad(packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: far.mac, SenderIP: families[0].host(102), TargetMAC: near.mac, TargetIP: families[0].host(101)}))))
	time.Sleep(3 * time.Second)
	for _, e := range tr.Encodings() {
		socket := &oftest.Socket{MAC: far.mac, At: tr.Dst, Proto: proto}
		for _, s := range w.stations {
			s.Received()
		}
		for _, frame := range e.Frames {
			near.Send(tag(frame))
			time.Sleep(20 * time.Millisecond)
		}
		for _, frame := range far.Received() {
			if in(frame) {
				socket.Take(slices.Concat(frame[:12], frame[12+len(head):]))
			}
		}
		want := 1
		if contains(e.Name, "VLAN 0") || contains(e.Name, "LLC") {
			want = 0
		}
		if socket.Got != want {
			t.Errorf("%s: the other end gets %d, want %d", e.Name, socket.Got, want)
		}
		for _, s := range others {
			for _, frame := range s.Received() {
				if about(frame) {
					t.Errorf("%s: %s gets it", e.Name, s.name)
				}
			}
		}
	}
}

// f4 and f6 return an address as a flow.Key has it: of the other family, zeros.
func f4(a netip.Addr) (v [4]byte) {
	if a.Is4() {
		v = a.As4()
	}
	return v
}

func f6(a netip.Addr) (v [16]byte) {
	if a.Is6() {
		v = a.As16()
	}
	return v
}
