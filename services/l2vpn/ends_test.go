package l2vpn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// portsField is switches with what a store wants of them.
type portsField struct {
	*field
	b *store
}

func newPortsField(t *testing.T, circuits ...*api.Circuit) *portsField {
	f := &portsField{newField(t, 2), newTestStore(t, wefttest.NewStore(), defaults())}
	for _, l := range [][2]*api.Location{{{Dpid: "0000000000000001", Port: 9}, {Dpid: "0000000000000002", Port: 9}}, {{Dpid: "0000000000000002", Port: 9}, {Dpid: "0000000000000001", Port: 9}}} {
		f.b.feed(&api.LinkChanged{Link: &api.Link{Src: l[0], Dst: l[1], State: "up", Weight: 1}})
	}
	f.set(&api.SetCircuitsRequest{Circuits: circuits})
	return f
}

// set sets circuits, whose tunnels are there at once, and has the switches follow.
func (f *portsField) set(q *api.SetCircuitsRequest) {
	f.t.Helper()
	if err := f.b.try(q); err != nil {
		f.t.Fatal(err)
	}
	for name, w := range f.b.tunnels.wants {
		a, _ := flow.ParseDPID(w.From)
		z, _ := flow.ParseDPID(w.To)
		f.b.learn([]*api.Tunnel{{Name: name, From: w.From, To: w.To, User: user, State: "up", Group: f.tunnel(a, z),
			Primary: &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: uint32(tunnel)}, {Dpid: w.To, InPort: uint32(tunnel)}}}}}, false)
	}
	f.follow()
	f.b.spread(true)
	f.follow()
}

func (f *portsField) follow() {
	for sw := flow.DPID(1); sw <= 2; sw++ {
		all := &set{}
		for _, s := range f.b.status {
			s.entries(all, sw, f.b.cfg, &f.b.tunnels)
			s.asked[sw] = s.version
		}
		f.declare(sw, all)
		f.b.answered(sw, nil, nil)
	}
}

// sent sends a frame with tags, outer one first, at a port, and returns where it comes, as
// SWITCH/PORT and its tags.
func (f *portsField) sent(sw flow.DPID, port flow.Port, tags ...uint16) string {
	frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{2, 0, 0, 0, 0, 2}, Src: flow.MAC{2, 0, 0, 0, byte(sw), byte(port)}}, 0x9999))
	for _, v := range slices.Backward(tags) {
		frame = slices.Concat(frame[:12], []byte{0x81, 0, byte(v >> 8), byte(v)}, frame[12:])
	}
	at := []flow.Location{{Switch: 1, Port: 1}, {Switch: 1, Port: 2}, {Switch: 1, Port: 3}, {Switch: 2, Port: 1}, {Switch: 2, Port: 2}, {Switch: 2, Port: 3}}
	for _, l := range at {
		f.host(l).Received()
	}
	f.host(flow.Location{Switch: sw, Port: port}).Send(frame)
	var came []string
	for _, l := range at {
		for _, got := range f.host(l).Received() {
			text := fmt.Sprintf("%d/%d", uint64(l.Switch), uint32(l.Port))
			for at := 12; got[at] == 0x81 && got[at+1] == 0 || got[at] == 0x88 && got[at+1] == 0xa8; at += 4 {
				text += fmt.Sprintf(".%d", uint16(got[at+2])<<8&0xf00|uint16(got[at+3]))
			}
			came = append(came, text)
		}
	}
	return strings.Join(came, " ")
}

// TestDefaultPort: a port is an end beside VLANs of it: it has all other frames, in both
// directions, of a vpws and a vpls, between switches and on one; when the VLANs' circuit goes it
// has all again.
func TestDefaultPort(t *testing.T) {
	for _, c := range []struct {
		name, typ, far string
	}{{"vpws", vpws, "2:2"}, {"local vpws", vpws, "1:2"}, {"vpls", vpls, "2:2"}, {"local vpls", vpls, "1:2"}} {
		t.Run(c.name, func(t *testing.T) {
			rest := &api.Circuit{Name: "rest", Type: c.typ, Ends: []string{"1:1", c.far}}
			v100 := &api.Circuit{Name: "v100", Ends: []string{"1:1.100", "2:3"}}
			f := newPortsField(t, rest)
			far, err := parseEnd(c.far)
			if err != nil {
				t.Fatal(err)
			}
			other := fmt.Sprintf("%d/2", uint64(far.at.Switch))
			check := func(when, want string, sw flow.DPID, port flow.Port, tags ...uint16) {
				t.Helper()
				if got := f.sent(sw, port, tags...); got != want {
					t.Errorf("%s: a frame with tags %v at %v/%v comes to %q, want %q", when, tags, sw, port, got, want)
				}
			}
			alone := func(when string) {
				t.Helper()
				check(when, other, 1, 1)
				check(when, other+".100", 1, 1, 100)
				check(when, "1/1.100", far.at.Switch, 2, 100)
			}
			alone("alone")
			counted := func() uint64 {
				c := &f.b.counters
				c.count(f.flows())
				return f.b.get("rest").Members[1].TxPackets
			}
			before := counted()
			f.set(&api.SetCircuitsRequest{Circuits: []*api.Circuit{v100}})
			if s := f.b.status["rest"]; s.state != "up" {
				t.Errorf("rest is %s: %s", s.state, s.reason)
			}
			check("beside", other, 1, 1)
			check("beside", other+".101", 1, 1, 101)
			check("beside", other+".101.100", 1, 1, 101, 100)
			check("beside", "2/3", 1, 1, 100)
			check("beside", "2/3.7", 1, 1, 100, 7)
			check("beside", "1/1.100", 2, 3)
			check("beside", "1/1", far.at.Switch, 2)
			check("beside", "1/1.101", far.at.Switch, 2, 101)
			check("of another circuit's VLAN", "", far.at.Switch, 2, 100)
			if n := counted() - before; n < 3 {
				t.Errorf("%d frames to %s are counted", n, c.far)
			}
			f.set(&api.SetCircuitsRequest{Delete: []string{"v100"}})
			alone("alone again")
			// The other way about: the port comes last.
			f.set(&api.SetCircuitsRequest{Delete: []string{"rest"}, Circuits: []*api.Circuit{v100}})
			check("without a default", "", 1, 1, 101)
			f.set(&api.SetCircuitsRequest{Circuits: []*api.Circuit{rest}})
			check("port last", other+".101", 1, 1, 101)
			check("port last", "2/3", 1, 1, 100)
			check("port last", "", far.at.Switch, 2, 100)
		})
	}
}

// TestVLANListEnds: an end with a list of VLANs carries these with their tags, and nothing else,
// in both directions, to a port, to another list, and into a VLAN of the carrier's.
func TestVLANListEnds(t *testing.T) {
	for _, typ := range []string{vpws, vpls} {
		for _, far := range []string{"2:2", "1:2", "2:2/15-40", "2:2.500", "1:2.500", "1:1.500"} {
			t.Run(typ+" "+far, func(t *testing.T) {
				f := newPortsField(t, &api.Circuit{Name: "list", Type: typ, Ends: []string{"1:1/10-20,30", far}})
				e, err := parseEnd(far)
				if err != nil {
					t.Fatal(err)
				}
				place := fmt.Sprintf("%d/%d", uint64(e.at.Switch), uint32(e.at.Port))
				var outer []uint16
				if e.vlan != 0 {
					place += fmt.Sprintf(".%d", e.vlan)
					outer = []uint16{e.vlan}
				}
				for vlan, want := range map[uint16]bool{0: false, 9: false, 10: true, 15: true, 20: true, 21: false, 29: false, 30: true, 31: false, 500: false} {
					var tags []uint16
					text, back := place, "1/1"
					if vlan != 0 {
						tags = []uint16{vlan}
						text += fmt.Sprintf(".%d", vlan)
						back += fmt.Sprintf(".%d", vlan)
					}
					if want = want && (e.list == "" || e.list.has(vlan)); !want {
						back = ""
					}
					there := map[bool]string{true: text}[want]
					if vlan == 500 && far == "1:1.500" { // that end's
						continue
					}
					if got := f.sent(1, 1, tags...); got != there {
						t.Errorf("VLAN %d comes to %q, want %q", vlan, got, there)
					}
					if got := f.sent(e.at.Switch, e.at.Port, slices.Concat(outer, tags)...); got != back {
						t.Errorf("VLAN %d at the far end comes to %q, want %q", vlan, got, back)
					}
				}
			})
		}
	}
}
