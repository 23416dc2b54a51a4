package paths

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Reason is why a known link is not usable.
type Reason string

// The reasons for which a known link carries no traffic.
const (
	OneWay       Reason = "one way"       // the other direction is not known
	Reserved     Reason = "reserved port" // one of its ports is not physical (OpenFlow 1.3.5 §4.5)
	SameSwitch   Reason = "both ends on one switch"
	SharedPort   Reason = "port has several links" // one of its ports has another link known in both directions
	SwitchAbsent Reason = "switch absent"
)

// UnusedLink is a link that is known and carries no traffic.
type UnusedLink struct {
	Link
	Reason Reason
}

// Unused lists the links that are known and not usable, by Src, then Dst.
func (g *Graph) Unused() []UnusedLink {
	var list []UnusedLink
	for c, w := range g.cost {
		r := g.reason(c, w)
		if r == "" {
			continue
		}
		if w.ab != 0 {
			list = append(list, UnusedLink{Link{c.a, c.b, w.ab}, r})
		}
		if w.ba != 0 {
			list = append(list, UnusedLink{Link{c.b, c.a, w.ba}, r})
		}
	}
	slices.SortFunc(list, func(x, y UnusedLink) int { return cmp.Or(compare(x.Src, y.Src), compare(x.Dst, y.Dst)) })
	return list
}

func (g *Graph) reason(c cable, w weights) Reason {
	if !c.a.Port.Physical() || !c.b.Port.Physical() {
		return Reserved
	}
	if c.a.Switch == c.b.Switch {
		return SameSwitch
	}
	if w.ab == 0 || w.ba == 0 {
		return OneWay
	}
	for _, end := range []flow.Location{c.a, c.b} {
		if _, ok := g.only(end); !ok {
			return SharedPort
		}
	}
	for _, end := range []flow.Location{c.a, c.b} {
		if _, ok := g.slots[end.Switch]; !ok {
			return SwitchAbsent
		}
	}
	return ""
}
