package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// far is the end of a wire that is in another lab. Its interface is in the namespace of
// the switches, where frames pass between it and the VXLAN device.
func (s *Lab) far(node string, port uint16, t *topology.Tunnel, name func(wanted, short string) string) End {
	return End{Node: node, Port: port, Tunnel: t, Netns: machine.SwitchNetns(s.Name), Iface: name(fmt.Sprintf("tun%d", t.VNI), "tun"), MAC: portMAC()}
}

// FarEnd returns the end of the wire that is in another lab; nil if both are here.
func (w *Wire) FarEnd() *End {
	for _, e := range w.Ends() {
		if e.Tunnel != nil {
			return e
		}
	}
	return nil
}

// VXLAN is the name of the VXLAN device behind a far end.
func (e *End) VXLAN() string { return fmt.Sprintf("vxlan%d", e.Tunnel.VNI) }

// SameTunnel reports whether two wires between the same ends have the same tunnel, or none.
func SameTunnel(a, b *Wire) bool {
	x, y := a.FarEnd(), b.FarEnd()
	if x == nil || y == nil {
		return x == y
	}
	return x.String() == y.String() && *x.Tunnel == *y.Tunnel
}

// Find returns the one wire between a and b.
func (s *Lab) Find(a, b string) (*Wire, error) {
	var found []*Wire
	var near []string
	for i := range s.Wires {
		w := &s.Wires[i]
		switch {
		case w.A.is(a) && w.B.is(b), w.A.is(b) && w.B.is(a):
			found = append(found, w)
		case w.A.is(a):
			near = append(near, w.B.String())
		case w.B.is(a):
			near = append(near, w.A.String())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var names []string
		for _, w := range found {
			names = append(names, w.A.String()+" "+w.B.String())
		}
		return nil, fmt.Errorf("%d links join %s and %s: name one by its ports; allowed: %s", len(found), a, b, strings.Join(names, ", "))
	case near != nil:
		return nil, fmt.Errorf("no link joins %s and %s; %s is linked to %s", a, b, a, strings.Join(near, ", "))
	}
	return nil, fmt.Errorf("lab %s has no switch or host %q", s.Name, a)
}

// is reports whether ref, NODE or SWITCH:PORT, names this end.
func (e *End) is(ref string) bool {
	if e.Node == ref {
		return true
	}
	node, port, ok := strings.Cut(ref, ":")
	return ok && node == e.Node && (port == strconv.Itoa(int(e.Port)) && !e.Host || port == e.Iface && e.Host)
}

// LinkStatus is one link of a running lab.
type LinkStatus struct {
	A     string    `json:"a"` // SWITCH:PORT
	B     string    `json:"b"` // SWITCH:PORT, HOST or HOST:eth1
	State LinkState `json:"state"`
	topology.Shape
	Made string `json:"made"` // "veth" or "cable", and with a tunnel "vxlan"
}

func (s *Lab) Links() []LinkStatus {
	all := make([]LinkStatus, len(s.Wires))
	for i := range s.Wires {
		all[i] = s.Wires[i].Status()
	}
	return all
}

func (w *Wire) Status() LinkStatus {
	k := LinkStatus{A: w.A.String(), B: w.B.String(), State: w.State, Shape: w.Shape, Made: "veth"}
	if w.Cable {
		k.Made = "cable"
	}
	if w.FarEnd() != nil {
		k.Made = "vxlan"
	}
	return k
}

// Key names a wire by its ends, whichever is first.
func (w *Wire) Key() string {
	a, b := w.A.String(), w.B.String()
	if w.B.Host {
		return a + "-" + w.B.Node + ":" + w.B.Iface
	}
	return min(a, b) + "-" + max(a, b)
}

// ItemOf is the part of the lab that a wire belongs to.
func (s *Lab) ItemOf(w *Wire) topology.Item {
	if w.B.Host {
		return topology.Item{Kind: topology.ItemHost, Name: w.B.Node}
	}
	return topology.Item{Kind: topology.ItemLink, Name: topology.OrderEnds([]topology.Link{{A: w.A.Node, B: w.B.Node, APort: w.A.Port, BPort: w.B.Port}})[0].String()}
}

func (s *Lab) WireByID(id int) *Wire {
	i := slices.IndexFunc(s.Wires, func(w Wire) bool { return w.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Wires[i]
}

// Lossy reports whether the wire needs lossRules.
func (w *Wire) Lossy() bool { return w.State == LinkIsSilent || w.Shape.Loss > 0 }
