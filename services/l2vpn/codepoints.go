package l2vpn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// A codePoint is a value of the priority of a tag (PCP, IEEE 802.1Q) or of DSCP (RFC 2474).
type codePoint struct {
	pcp   bool
	value uint8
}

// String returns the code point as parseCodePoint reads it.
func (p codePoint) String() string {
	if p.pcp {
		return fmt.Sprintf("pcp:%d", p.value)
	}
	return fmt.Sprintf("dscp:%d", p.value)
}

// parseCodePoint reads pcp:0 to pcp:7 or dscp:0 to dscp:63.
func parseCodePoint(text string) (p codePoint, err error) {
	field, number, _ := strings.Cut(strings.ToLower(text), ":")
	n, err := strconv.ParseUint(number, 10, 8)
	p = codePoint{field == "pcp", uint8(n)}
	if err != nil || field != "pcp" && field != "dscp" || p.pcp && n > 7 || n > 63 {
		return p, fmt.Errorf("code point %.40q: want pcp:0 to pcp:7 or dscp:0 to dscp:63", text)
	}
	return p, nil
}

// of returns what matches those frames that have the code point.
func (p codePoint) of(m flow.Match) []flow.Match {
	if !p.pcp {
		return []flow.Match{m.WithEthType(flow.EthTypeIPv4).WithIPDSCP(p.value), m.WithEthType(flow.EthTypeIPv6).WithIPDSCP(p.value)}
	}
	if !m.Set.Has(flow.FieldVLAN) {
		m = m.WithAnyVLAN()
	}
	return []flow.Match{m.WithVLANPCP(p.value)}
}

// set returns the action that gives a frame the code point.
func (p codePoint) set() flow.Action {
	a := flow.Action{Kind: flow.ActionSetField, Field: flow.FieldIPDSCP}
	if p.pcp {
		a.Field = flow.FieldVLANPCP
	}
	a.Value[0] = p.value
	return a
}

// A codeMap gives frames that leave another code point.
type codeMap struct {
	from, to codePoint
	at       *end // nil: at all ends
}

// mostMaps is how many a circuit may have.
const mostMaps = 64

// of reports whether a map is of an end.
func (m codeMap) of(e end) bool { return m.at == nil || *m.at == e }
