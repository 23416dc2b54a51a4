package tunnels

import (
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// An lsp is a label-switched path: its hops, from head to tail.
type lsp []lspHop

// An lspHop is one switch of it. In is 0 at the head, out at the tail; label is
// that with which frames come in, 0 at the head and at the tail, before which it
// is taken off.
type lspHop struct {
	sw      flow.DPID
	in, out flow.Port
	label   uint32
}

// via returns the ports that the path's links leave by.
func (p lsp) via() []flow.Location {
	var list []flow.Location
	for _, h := range p[:max(len(p)-1, 0)] {
		list = append(list, flow.Location{Switch: h.sw, Port: h.out})
	}
	return list
}

// sameWay reports whether two paths lead over the same ports.
func (p lsp) sameWay(o lsp) bool {
	return slices.EqualFunc(p, o, func(a, b lspHop) bool { return a.sw == b.sw && a.in == b.in && a.out == b.out })
}

// message returns the path as the API has it; nil if there is none.
func (p lsp) message() *api.LabelSwitchedPath {
	if len(p) == 0 {
		return nil
	}
	m := &api.LabelSwitchedPath{}
	for _, h := range p {
		m.Hops = append(m.Hops, &api.LabelHop{Dpid: h.sw.String(), InPort: uint32(h.in), OutPort: uint32(h.out), Label: h.label})
	}
	return m
}

// parseLSP returns a stored path of a tunnel.
func parseLSP(m *api.LabelSwitchedPath, from, to flow.DPID) (lsp, error) {
	if m == nil {
		return nil, nil
	}
	var p lsp
	last := len(m.Hops) - 1
	seen := map[flow.DPID]bool{}
	for i, h := range m.Hops {
		sw, err := flow.ParseDPID(h.Dpid)
		x := lspHop{sw, flow.Port(h.InPort), flow.Port(h.OutPort), h.Label}
		transit := i > 0 && i < last
		switch {
		case err != nil:
			return nil, err
		case seen[sw]:
			return nil, fmt.Errorf("path passes switch %v twice", sw)
		case (x.in != 0) != (i > 0) || (x.out != 0) != (i < last) || i > 0 && !x.in.Physical() || i < last && !x.out.Physical():
			return nil, fmt.Errorf("path has ports %v and %v at switch %v", h.InPort, h.OutPort, sw)
		case transit != (x.label != 0) || x.label > flow.TunnelLabelsLast || transit && x.label < flow.TunnelLabels:
			return nil, fmt.Errorf("path has label %d at switch %v", x.label, sw)
		}
		seen[sw] = true
		p = append(p, x)
	}
	if len(p) < 2 || p[0].sw != from || p[last].sw != to {
		return nil, fmt.Errorf("path does not lead from %v to %v", from, to)
	}
	return p, nil
}

// parsePath returns a path that paths has found, without labels.
func parsePath(m *api.Path) (lsp, error) {
	var p lsp
	for _, h := range m.GetHops() {
		sw, err := flow.ParseDPID(h.Dpid)
		if err != nil {
			return nil, err
		}
		p = append(p, lspHop{sw: sw, in: flow.Port(h.InPort), out: flow.Port(h.OutPort)})
	}
	return p, nil
}
