package l2vpn

import (
	"fmt"
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
