package l2vpn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// A mirror has frames of an end copied to a port of its switch, for an analyser.
type mirror struct {
	of     end
	to     flow.Port
	rx, tx bool // what comes from the customer, and what goes there
}

// at returns the port of the copies.
func (m mirror) at() flow.Location { return flow.Location{Switch: m.of.at.Switch, Port: m.to} }

// String returns the mirror as parseMirror reads it.
func (m mirror) String() string {
	s := fmt.Sprintf("%v=%d", m.of, uint32(m.to))
	switch {
	case !m.tx:
		s += ",rx"
	case !m.rx:
		s += ",tx"
	}
	return s
}

// mostMirrors is how many mirrors a circuit may have.
const mostMirrors = 16

// parseMirror reads END=PORT, with ,rx or ,tx behind.
func parseMirror(text string) (m mirror, err error) {
	wrong := func(format string, args ...any) (mirror, error) {
		return mirror{}, fmt.Errorf("mirror %.80q: "+format, append([]any{text}, args...)...)
	}
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return wrong("want END=PORT, with ,rx or ,tx behind for one direction")
	}
	if m.of, err = parseEnd(text[:i]); err != nil {
		return wrong("%w", err)
	}
	number, way, _ := strings.Cut(text[i+1:], ",")
	port, err := strconv.ParseUint(number, 10, 32)
	m.to = flow.Port(port)
	switch {
	case err != nil || !m.to.Physical():
		return wrong("port %.20q: want the number of a port of the end's switch, 1 to %d", number, uint32(flow.PortMax))
	case way != "" && way != "rx" && way != "tx":
		return wrong("%.20q: want rx (what comes from the customer) or tx (what goes there), or neither for both", way)
	}
	m.rx, m.tx = way != "tx", way != "rx"
	return m, nil
}

// readMirrors reads where frames are copied to.
func readMirrors(c *circuit) error {
	if len(c.Mirrors) > mostMirrors {
		return fmt.Errorf("%d mirrors: want at most %d", len(c.Mirrors), mostMirrors)
	}
	for i, text := range c.Mirrors {
		m, err := parseMirror(text)
		switch {
		case err != nil:
			return err
		case c.ip():
			return fmt.Errorf("mirror: frames of a circuit of payload ip have no Ethernet header of the customer's: want payload ethernet")
		case !slices.Contains(c.ends, m.of):
			return fmt.Errorf("mirror: %v is no end of it", m.of)
		case slices.ContainsFunc(c.ends, func(e end) bool { return e.at == m.at() }):
			return fmt.Errorf("mirror: port %v is a customer's: want a port where no end is", m.at())
		case slices.ContainsFunc(c.mirrors, func(o mirror) bool { return o.of == m.of && o.to == m.to }):
			return fmt.Errorf("mirror: %v is copied to port %v twice", m.of, m.at())
		}
		c.mirrors, c.Mirrors[i] = append(c.mirrors, m), m.String()
	}
	return nil
}

// sinks returns the ports that copies of a circuit's frames go to, each once.
func (c *circuit) sinks() (list []flow.Location) {
	for _, m := range c.mirrors {
		if !slices.Contains(list, m.at()) {
			list = append(list, m.at())
		}
	}
	return list
}

// copies returns the actions that send copies of a frame of an end, in one direction.
func (c *circuit) copiesOf(e end, rx bool) (acts []flow.Action) {
	for _, m := range c.mirrors {
		if m.of == e && (rx && m.rx || !rx && m.tx) {
			acts = append(acts, flow.Output(m.to))
		}
	}
	return acts
}

// unfitSink returns why copies cannot go to a port; empty if they can.
func (n *network) unfitSink(at flow.Location) string {
	twin := flow.Location{Switch: at.Switch, Port: flow.InternalPorts + at.Port}
	switch role := n.roleOf(at); {
	case slices.Contains([]string{"link", "blocked", "internal", "tunnel"}, role):
		return "the port is " + role
	case n.roleOf(twin) == "internal":
		return "the node routes for who is at the port"
	case n.Info(at.Switch).GetConnected() && n.portOf(at) == nil:
		return "the switch has no such port"
	}
	return ""
}
