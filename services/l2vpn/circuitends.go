package l2vpn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// readControls reads what becomes of control protocols.
func readControls(c *circuit) error {
	for i, text := range c.L2Cp {
		k, err := parseControl(text)
		switch {
		case err != nil:
			return err
		case c.ip():
			return fmt.Errorf("l2cp: payload ip carries no control protocol: leave it out, or want payload ethernet")
		case slices.ContainsFunc(c.controls, func(o control) bool { return o.protocol == k.protocol }):
			return fmt.Errorf("l2cp: %s is named twice", k.protocol)
		}
		c.controls, c.L2Cp[i] = append(c.controls, k), k.protocol+"="+k.action
	}
	slices.Sort(c.L2Cp)
	return nil
}

// peers reports whether the controller reads LLDP of the circuit's customers.
func peers(c *circuit) bool {
	return slices.ContainsFunc(c.controls, func(k control) bool { return k.action == peered })
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

// mapsAt returns the maps of an end.
func (c *circuit) mapsAt(e end) (list []codeMap) {
	for _, m := range c.maps {
		if m.of(e) {
			list = append(list, m)
		}
	}
	return list
}

// readColours reads what an end may send beyond its rate, and which frames are discardable (yellow).
func readColours(c *circuit) error {
	switch {
	case c.ExcessKbps > mostKbps:
		return fmt.Errorf("excess_kbps is %d: want at most %d", c.ExcessKbps, uint64(mostKbps))
	case c.ExcessKbps > 0 && c.RateKbps == 0:
		return fmt.Errorf("excess_kbps without rate_kbps, beyond which it is: want both")
	case len(c.Yellow) > 0 && c.ExcessKbps == 0:
		return fmt.Errorf("yellow without excess_kbps, which discardable frames have: want both")
	}
	for i, text := range c.Yellow {
		p, err := parseCodePoint(text)
		if err != nil {
			return fmt.Errorf("yellow: %w", err)
		}
		if slices.Contains(c.yellow, p) {
			return fmt.Errorf("yellow: %v is named twice", p)
		}
		c.yellow, c.Yellow[i] = append(c.yellow, p), p.String()
	}
	slices.Sort(c.Yellow)
	return nil
}

// readMEPs reads the maintenance end points of a circuit.
func readMEPs(c *circuit) error {
	for i, text := range c.Meps {
		m, err := parseMEP(text)
		switch {
		case err != nil:
			return err
		case !slices.Contains(c.ends, m.at):
			return fmt.Errorf("mep: %v is no end of it", m.at)
		case c.mepAt(m.at) != nil:
			return fmt.Errorf("mep: end %v has two: want one", m.at)
		}
		c.meps, c.Meps[i] = append(c.meps, m), m.text
	}
	return nil
}

// mepAt returns the maintenance end point of an end, nil if it has none.
func (c *circuit) mepAt(e end) *mep {
	for i := range c.meps {
		if c.meps[i].at == e {
			m := c.meps[i]
			m.MAC = flow.MAC{0x0a, 'C', byte(c.Id >> 16), byte(c.Id >> 8), byte(c.Id), byte(slices.Index(c.ends, e))}
			return &m
		}
	}
	return nil
}

// mepFrames returns how many frames the maintenance end points of a circuit send in a minute, at most: to one
// other each.
func mepFrames(c *circuit) (n int) {
	for _, m := range c.meps {
		n += 2 * int(time.Minute/m.Interval)
	}
	return n
}
