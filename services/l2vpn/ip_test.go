package l2vpn

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// ipFrame returns a frame of one of ipTypes as it is on the wire at an end.
func ipFrame(e end, kind int, src, dst flow.MAC) []byte {
	a, z := packet.Ether{Src: src, Dst: dst}, netip.MustParseAddr
	var b []byte
	switch kind {
	case 0:
		b = packet.AppendUDP(nil, a, packet.IP{Src: z("10.0.0.1"), Dst: z("10.0.0.2"), TTL: 255}, 5, 6, []byte("customer"))
	case 1:
		b = packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: z("10.0.0.1"), TargetMAC: dst, TargetIP: z("10.0.0.2")})
	case 2:
		b = packet.AppendUDP(nil, a, packet.IP{Src: z("fd00::1"), Dst: z("fd00::2"), TTL: 1}, 5, 6, []byte("customer"))
	}
	for _, v := range []struct{ id, kind uint16 }{{e.inner, flow.EthTypeVLAN}, {e.vlan, map[bool]uint16{true: flow.EthTypeQinQ, false: flow.EthTypeVLAN}[e.inner != 0]}} {
		if v.id != 0 {
			b, _ = packet.Apply(b, flow.PushVLAN(v.kind))
			b, _ = packet.Apply(b, flow.SetVLAN(v.id))
		}
	}
	return b
}

// addressed returns a frame with other addresses.
func addressed(frame []byte, src, dst flow.MAC) []byte {
	return slices.Concat(dst[:], src[:], frame[12:])
}

// TestIPForwards has two circuits of payload ip, of two customers, carry what they
// do and nothing else, whatever tags their ends have: to all behind an end before its device
// is known, to it afterwards, from the other's; and each sender that is not known comes
// to the controller, once.
func TestIPForwards(t *testing.T) {
	tags := []string{"", ".7", ".7.8"}
	for i := range 9 {
		for _, local := range []bool{false, true} {
			far := 2
			if local {
				far = 1
			}
			t.Run(fmt.Sprint(tags[i%3], "-", tags[i/3], local), func(t *testing.T) {
				testIPForwards(t, []string{"1:1" + tags[i%3], fmt.Sprintf("%d:2%s", far, tags[i/3])}, local)
			})
		}
	}
}

func testIPForwards(t *testing.T, ends []string, local bool) {
	f := newField(t, 2)
	var all []*circuit
	for i, ends := range [][]string{ends, {"1:3", "2:3"}} {
		c := &circuit{Circuit: &api.Circuit{Id: uint32(i + 1), Name: fmt.Sprint("c", i), Type: vpws, Payload: ip}}
		for k, text := range ends {
			e, err := parseEnd(text)
			if err != nil {
				t.Fatal(err)
			}
			c.ends = append(c.ends, e)
			l := flow.CircuitLabels + uint32(10*i+3*k)
			c.Members = append(c.Members, &api.CircuitMember{Label: l, ArpLabel: l + 1, Ipv6Label: l + 2})
			f.host(c.ends[k].at)
		}
		all = append(all, c)
	}
	known := []devices{devices(nil).keep(all[0]), devices(nil).keep(all[1])}
	declare := func() {
		for sw := flow.DPID(1); sw <= 2; sw++ {
			var s set
			ports := map[flow.Port]map[end]map[string]bool{}
			for n, c := range all {
				for i, e := range c.ends {
					if e.at.Switch == sw {
						group := uint32(0)
						if !c.local() {
							group = f.tunnel(sw, c.ends[1-i].at.Switch)
						}
						s.pairEntries(c, i, group, known[n], 1000)
						note2(ports, e)
					}
				}
			}
			for port, ends := range ports {
				guards(&s, port, ends)
			}
			f.declare(sw, &s)
		}
	}
	declare()
	quiet := func(but *end) {
		t.Helper()
		for at, h := range f.hosts {
			if got := h.Received(); len(got) > 0 && (but == nil || at != but.at) {
				t.Fatalf("port %v: %x", at, got)
			}
		}
	}
	// send has a frame sent at an end, and checks what comes out at the other.
	send := func(c *circuit, i int, frame, want []byte) {
		t.Helper()
		f.host(c.ends[i].at).Send(frame)
		e := c.ends[1-i]
		got := f.host(e.at).Received()
		if want == nil && len(got) > 0 || want != nil && (len(got) != 1 || !bytes.Equal(got[0], want)) {
			t.Fatalf("circuit %s from end %d: got %x, want %x", c.Name, i, got, want)
		}
		quiet(&e)
	}
	// heard returns what the controller has got since the last call.
	heard := func() (list []flow.PacketIn) {
		for sw := flow.DPID(1); sw <= 2; sw++ {
			list = append(list, f.drive[sw].PacketIns()...)
		}
		return list
	}
	mac := func(n, i int) flow.MAC { return flow.MAC{2, 0, 0, 0, byte(n), byte(i)} }
	for round := range 2 {
		for n, c := range all {
			for i, e := range c.ends {
				src, dst := mac(n, i), mac(n, 1-i)
				for kind := range ipTypes {
					want := ipFrame(c.ends[1-i], kind, src, dst)
					out, in := src, dst
					switch {
					case c.local(): // nothing is changed
					case round == 0:
						out, in = flow.MAC{2, 'W', 0, 0, 0, byte(c.Id)}, everybody
					case kind == 1:
						in = everybody
					}
					send(c, i, ipFrame(e, kind, src, dst), addressed(want, out, in))
					pi := heard()
					if want := round == 0 && !c.local(); len(pi) > 0 != want {
						t.Fatalf("round %d: packet-ins %+v", round, pi)
					} else if want && (pi[0].Key.TunnelID != c.came(i) || flow.MAC(pi[0].Data[6:12]) != src) {
						t.Fatalf("packet-in %+v", pi[0])
					}
				}
				// What is carried of nobody.
				bad := [][]byte{frame(e, src, dst, 0), packet.AppendLLDP(nil, packet.Ether{Src: src, Dst: dst}, packet.LLDPFields{})}
				tagged, _ := packet.Apply(ipFrame(end{}, 0, src, dst), flow.PushVLAN(flow.EthTypeVLAN))
				if e.tags() == 0 {
					bad = append(bad, tagged)
				}
				label, _ := packet.Apply(ipFrame(end{}, 0, src, dst), flow.PushMPLS())
				label, _ = packet.Apply(label, flow.SetMPLSLabel(c.Members[i].Label))
				bad = append(bad, label)
				if !c.local() {
					bad = append(bad, ipFrame(e, 0, flow.MAC{1, 0, 0, 0, 0, 1}, dst))
				}
				for _, b := range bad {
					send(c, i, b, nil)
				}
				heard()
			}
		}
		for n, c := range all {
			for i, e := range c.ends {
				known[n].learn(e, mac(n, i), time.Unix(1e9, 0))
			}
		}
		declare()
	}
	if local {
		return
	}
	// Another device: as all that are not known.
	c := all[0]
	send(c, 0, ipFrame(c.ends[0], 0, mac(0, 9), mac(0, 1)), addressed(ipFrame(c.ends[1], 0, mac(0, 9), mac(0, 1)), mac(0, 0), mac(0, 1)))
	if pi := heard(); len(pi) != 1 {
		t.Fatalf("packet-ins %+v", pi)
	}
}
