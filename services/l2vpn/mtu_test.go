package l2vpn

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// node tells the service of the MTUs of some ports of a switch.
func (b *store) node(sw flow.DPID, mtus map[uint32]uint32) {
	r := &api.NodeReport{Dpid: sw.String()}
	for p, m := range mtus {
		r.Ports = append(r.Ports, &api.NodePort{Port: p, Mtu: m, Role: "link"})
	}
	b.feed(&api.NodeChanged{Node: &api.Node{State: "live", Report: r}})
}

// over has the tunnels of a circuit be there: each from port 9 of an edge by switch 4, with a label on the
// first link, or by port 8 without a switch between.
func (b *store) over(c string) {
	var list []*api.Tunnel
	for _, w := range b.tunnels.wishesOf(b.status[c].circuit) {
		m := proto.CloneOf(w.Tunnel)
		m.User, m.State, m.Group = user, "up", flow.TunnelGroups
		m.Path = []string{w.From, flow.DPID(4).String(), w.To}
		m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: 9},
			{Dpid: flow.DPID(4).String(), InPort: 9, OutPort: 8, Label: 16}, {Dpid: w.To, InPort: 9}}}
		m.Standby = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: 8}, {Dpid: w.To, InPort: 8}}}
		list = append(list, m)
	}
	b.learn(list, true)
	for _, s := range b.status {
		for _, sw := range s.circuit.switches() {
			s.has[sw] = s.version
		}
	}
	b.assessAll()
}

// TestMTU: the largest packet is that of the narrowest port on any way, less what is
// around it there; it is not known where a port's is not.
func TestMTU(t *testing.T) {
	for _, c := range []struct {
		name, ends           string
		access, labelled, by uint32 // MTUs: customers', links between that carry two labels and one, the standby path's
		tunnel               bool
		want                 uint32
	}{
		{"the customers' ports are narrowest", "1:1 2:1", 1500, 2000, 2000, true, 1500},
		{"two labels", "1:1 2:1", 9000, 1500, 2000, true, 1500 - 14 - 8},
		{"the other path, one label", "1:1 2:1", 9000, 2000, 1500, true, 1500 - 14 - 4},
		{"a tag that stays on", "1:1.5 2:1.6", 9000, 1500, 2000, true, 1500 - 14 - 8 - 4},
		{"a tag that is taken off", "1:1.5 2:1", 9000, 1500, 2000, true, 1500 - 14 - 8},
		{"two tags at a port", "1:1.5.6 2:1", 1500, 2000, 2000, true, 1496},
		{"payload ip", "1:1.5 2:1.6 ip", 9000, 1500, 2000, true, 1500 - 8},
		{"on one switch", "1:1 1:2", 1500, 0, 0, false, 1500},
		{"on one switch, not known", "1:1 1:2", 0, 2000, 2000, false, 0},
		{"customers' not known", "1:1 2:1", 0, 2000, 2000, true, 0},
		{"links' not known", "1:1 2:1", 1500, 0, 2000, true, 0},
		{"the other path's not known", "1:1 2:1", 1500, 2000, 0, true, 0},
		{"no tunnel", "1:1 2:1", 1500, 2000, 2000, false, 0},
	} {
		b := newTestStore(t, wefttest.NewStore(), defaults())
		m := &api.Circuit{Name: "c", Ends: strings.Fields(c.ends)}
		if len(m.Ends) > 2 {
			m.Ends, m.Payload = m.Ends[:2], m.Ends[2]
		}
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(err)
		}
		if c.tunnel {
			b.over("c")
		}
		for sw := flow.DPID(1); sw <= 2; sw++ {
			b.node(sw, map[uint32]uint32{1: c.access, 2: c.access, 8: c.by, 9: c.labelled})
		}
		b.node(4, map[uint32]uint32{8: 5000, 9: 5000})
		if m := b.get("c"); m.Mtu != c.want {
			t.Errorf("%s: %d; want %d", c.name, m.Mtu, c.want)
		}
	}
}

// TestMinMTU: a circuit into which less is known to fit than it must carry is down with
// the reason, until more fits or nobody knows.
func TestMinMTU(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	set := func(least uint32) error {
		return b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, MinMtu: least}}})
	}
	if err := set(65536); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(fmt.Sprint(err), "min_mtu is 65536") {
		t.Errorf("%v; want InvalidArgument", err)
	}
	if err := set(1500); err != nil {
		t.Fatal(err)
	}
	b.over("c")
	is := func(state, reason string) {
		t.Helper()
		if m := b.get("c"); m.State != state || !strings.Contains(m.Reason, reason) {
			t.Errorf("%s, %q; want %s, %q", m.State, m.Reason, state, reason)
		}
	}
	links := func(mtu uint32) {
		for _, sw := range []flow.DPID{1, 2, 4} {
			b.node(sw, map[uint32]uint32{1: 1500, 8: mtu, 9: mtu})
		}
	}
	is("up", "")
	links(1500)
	is("down", "min_mtu is 1500, and packets of at most 1478 octets fit")
	links(1522)
	is("up", "")
	links(1521)
	is("down", "1499")
	p := &api.CircuitPreview{Feasible: true}
	request := &batch{circuits: []*circuit{b.status["c"].circuit}}
	if request.fit(b, []*api.Tunnel{b.tunnels.known[b.tunnels.holds["c"][0]]}, p); p.Feasible || p.Mtu != 1499 || !strings.Contains(p.Reason, "1499") {
		t.Errorf("%v", p)
	}
	b.feed(&api.NodeChanged{Gone: true, Node: &api.Node{Report: &api.NodeReport{Dpid: "4"}}})
	is("up", "")
	b.feed(&api.NodeChanged{}) // says nothing
}
