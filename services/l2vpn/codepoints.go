package l2vpn

import (
	"fmt"
	"slices"
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

// readMaps reads which code points change.
func readMaps(c *circuit) error {
	if len(c.Maps) > mostMaps {
		return fmt.Errorf("%d maps: want at most %d", len(c.Maps), mostMaps)
	}
	for i, text := range c.Maps {
		points, at, placed := strings.Cut(text, "@")
		from, to, is := strings.Cut(points, "=")
		if !is {
			return fmt.Errorf("map %.80q: want FROM=TO, such as dscp:46=pcp:5, with @END behind for one end", text)
		}
		var m codeMap
		var err error
		if m.from, err = parseCodePoint(from); err == nil {
			m.to, err = parseCodePoint(to)
		}
		if err != nil {
			return fmt.Errorf("map %.80q: %w", text, err)
		}
		text = m.from.String() + "=" + m.to.String()
		if placed {
			e, err := parseEnd(at)
			if err != nil {
				return fmt.Errorf("map: %w", err)
			}
			if !slices.Contains(c.ends, e) {
				return fmt.Errorf("map: %v is no end of it", e)
			}
			m.at, text = &e, text+"@"+e.String()
		}
		if c.ip() {
			return fmt.Errorf("map: frames of a circuit of payload ip leave as they came: want payload ethernet")
		}
		for _, e := range c.ends {
			if m.of(e) && c.Type == vpls && m.from.pcp != m.to.pcp && (m.from.pcp || e.tags() == 0) {
				return fmt.Errorf("map %s at end %v: of a vpls copies for other ends follow, which are to be as they were: want code points of one kind, or dscp to pcp at an end with a tag", text, e)
			}
			if m.of(e) && slices.ContainsFunc(c.maps, func(o codeMap) bool { return o.of(e) && o.from == m.from }) {
				return fmt.Errorf("map: %v is named twice at end %v", m.from, e)
			}
		}
		c.maps, c.Maps[i] = append(c.maps, m), text
	}
	return nil
}

// of reports whether a map is of an end.
func (m codeMap) of(e end) bool { return m.at == nil || *m.at == e }

// mapsAt returns the maps of an end.
func (c *circuit) mapsAt(e end) (list []codeMap) {
	for _, m := range c.maps {
		if m.of(e) {
			list = append(list, m)
		}
	}
	return list
}

// leaving adds an entry by which frames leave at an end, and those for frames whose code points change: the
// priority of a tag counts before DSCP. Behind its output a frame is as it was.
func (s *set) leaving(id uint32, c *circuit, e end, out flow.Entry) {
	s.enter(id, out)
	at := slices.IndexFunc(out.Apply, func(a flow.Action) bool { return a.Kind == flow.ActionOutput })
	tagged := slices.ContainsFunc(out.Apply[:max(at, 0)], func(a flow.Action) bool { return a.Kind == flow.ActionPushVLAN })
	for _, m := range c.mapsAt(e) {
		matches := m.from.of(out.Match)
		if !m.from.pcp && m.to.pcp && !tagged && !out.Match.Set.Has(flow.FieldVLAN) {
			matches = m.from.of(out.Match.WithAnyVLAN()) // else there is no tag
		}
		if m.from.pcp && !m.to.pcp {
			tags := matches[0]
			matches = []flow.Match{tags.WithEthType(flow.EthTypeIPv4), tags.WithEthType(flow.EthTypeIPv6)}
		}
		mapped := out
		mapped.Priority++
		if m.from.pcp {
			mapped.Priority++
		}
		mapped.Apply = slices.Insert(slices.Clone(out.Apply), at, m.to.set())
		if c.Type == vpls && !(m.to.pcp && tagged) { // copies to other ends follow
			mapped.Apply = append(mapped.Apply, m.from.set())
		}
		for _, mapped.Match = range matches {
			s.enter(id, mapped)
		}
	}
}
