package lab

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/topology"
)

// Graph is a topology to draw, with the state its links are in.
type Graph struct {
	Topology *topology.Topology
	Links    []layout.LinkStatus // those of hosts first, as Topology has them
}

// GraphOf is the graph of a topology that is not up: every link is.
func GraphOf(t *topology.Topology) Graph {
	s := layout.Lay(t)
	return Graph{Topology: t, Links: s.Links()}
}

// Graph is the lab's graph as its links are now.
func (l *Lab) Graph() (Graph, error) {
	links, err := l.Links()
	return Graph{Topology: l.state.Topology, Links: links}, err
}

// Text writes a line for each switch with what is behind its ports.
func (g Graph) Text(w io.Writer) error {
	var b strings.Builder
	ports := map[string][]string{}
	for _, k := range g.Links {
		add := func(here, there string) {
			node, port, _ := strings.Cut(here, ":")
			note := ""
			if k.State != layout.LinkIsUp {
				note = " (" + string(k.State) + ")"
			}
			ports[node] = append(ports[node], fmt.Sprintf("%s→%s%s", port, there, note))
		}
		add(k.A, k.B)
		if strings.Contains(k.B, ":") {
			add(k.B, k.A)
		}
	}
	wide := 0
	for _, s := range g.Topology.Switches {
		wide = max(wide, len(s.Name))
	}
	for _, s := range g.Topology.Switches {
		fmt.Fprintf(&b, "%-*s %s  %s\n", wide, s.Name, knownAs(&s), strings.Join(ports[s.Name], "  "))
	}
	for _, h := range g.Topology.Hosts {
		wide = max(wide, len(h.Name))
	}
	for _, h := range g.Topology.Hosts {
		fmt.Fprintf(&b, "%-*s %s", wide, h.Name, h.MAC)
		if h.HasIPv4() {
			fmt.Fprintf(&b, " %s", h.IPv4)
		}
		if h.HasIPv6() {
			fmt.Fprintf(&b, " %s", h.IPv6)
		}
		if h.VLAN != 0 {
			fmt.Fprintf(&b, " vlan %d", h.VLAN)
		}
		fmt.Fprintf(&b, " on %s:%d\n", h.Switch, h.Port)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// knownAs returns by what controllers know a switch, or the kind of one that they do not know.
func knownAs(s *topology.Switch) string {
	if s.DPID == 0 {
		return string(s.Kind)
	}
	return fmt.Sprintf("dpid %x", uint64(s.DPID))
}

// DOT writes the graph in Graphviz's language.
func (g Graph) DOT(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %q {\n  layout=neato; overlap=false; splines=true;\n", g.Topology.Name)
	for _, s := range g.Topology.Switches {
		fmt.Fprintf(&b, "  %q [shape=circle, style=filled, fillcolor=lightblue, tooltip=\"%s\"];\n", s.Name, knownAs(&s))
	}
	for _, h := range g.Topology.Hosts {
		fmt.Fprintf(&b, "  %q [shape=box, tooltip=\"%s\"];\n", h.Name, hostAddress(&h))
	}
	for _, k := range g.Links {
		a, aPort, _ := strings.Cut(k.A, ":")
		z, zPort, _ := strings.Cut(k.B, ":")
		fmt.Fprintf(&b, "  %q -- %q [taillabel=%q, headlabel=%q, label=%q, fontsize=9, style=%s];\n",
			a, z, aPort, zPort, label(k), map[layout.LinkState]string{layout.LinkIsUp: "solid", layout.LinkIsDown: "dashed", layout.LinkIsSilent: "dotted"}[k.State])
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func hostAddress(h *topology.Host) string {
	switch {
	case h.HasIPv4():
		return h.IPv4.Addr().String()
	case h.HasIPv6():
		return h.IPv6.Addr().String()
	}
	return h.MAC.String()
}

// label is what is special about a link, in a few words.
func label(k layout.LinkStatus) string {
	var parts []string
	if k.Rate != 0 {
		parts = append(parts, k.Rate.String())
	}
	if k.Delay != 0 {
		parts = append(parts, k.Delay.String())
	}
	if k.Loss != 0 {
		parts = append(parts, k.Loss.String())
	}
	if k.State != layout.LinkIsUp {
		parts = append(parts, string(k.State))
	}
	return strings.Join(parts, " ")
}

// SVG writes a drawing: switches as circles, hosts as boxes, links that are
// down dashed and red, silent ones dotted and orange.
func (g Graph) SVG(w io.Writer) error {
	at := arrange(g.Topology)
	var b strings.Builder
	var right, bottom float64
	for _, p := range at {
		right, bottom = max(right, p.x), max(bottom, p.y)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11" text-anchor="middle">`+"\n",
		right+margin, bottom+margin)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", html.EscapeString(g.Topology.Name))
	for _, k := range g.Links {
		a, _, _ := strings.Cut(k.A, ":")
		z, _, _ := strings.Cut(k.B, ":")
		style := `stroke="#789" stroke-width="1.5"`
		switch k.State {
		case layout.LinkIsDown:
			style = `stroke="#c22" stroke-width="2" stroke-dasharray="6 4"`
		case layout.LinkIsSilent:
			style = `stroke="#e80" stroke-width="2" stroke-dasharray="2 3"`
		}
		p, q := at[a], at[z]
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s><title>%s to %s: %s</title></line>`+"\n",
			p.x, p.y, q.x, q.y, style, k.A, k.B, k.State)
		if text := label(k); text != "" {
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-size="9" fill="#555">%s</text>`+"\n", (p.x+q.x)/2, (p.y+q.y)/2-3, text)
		}
	}
	for _, s := range g.Topology.Switches {
		p := at[s.Name]
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="15" fill="#cde6f7" stroke="#357"><title>%s, %s</title></circle>`, p.x, p.y, s.Name, knownAs(&s))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", p.x, p.y+4, s.Name)
	}
	for i := range g.Topology.Hosts {
		h := &g.Topology.Hosts[i]
		p := at[h.Name]
		wide := float64(max(24, 8*len(h.Name)))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="18" rx="3" fill="#fdf3d8" stroke="#a83"><title>%s</title></rect>`,
			p.x-wide/2, p.y-9, wide, hostAddress(h))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", p.x, p.y+4, h.Name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
