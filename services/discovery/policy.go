package discovery

import (
	"slices"

	"github.com/weft-sdn/weft/api"
)

// A linkPolicy is what the operator says of links.
type linkPolicy struct {
	allowed  map[pair]bool // links that come up whatever their probes show
	settings map[pair]*api.LinkSettings
}

func newLinkPolicy(cfg *Config) *linkPolicy {
	lp := &linkPolicy{allowed: map[pair]bool{}, settings: map[pair]*api.LinkSettings{}}
	for _, p := range cfg.allows() {
		lp.allowed[p] = true
	}
	return lp
}

// listAllowed returns the links that are allowed, in order.
func (lp *linkPolicy) listAllowed() []*api.AllowedLink {
	list := make([]*api.AllowedLink, 0, len(lp.allowed))
	for p := range lp.allowed {
		list = append(list, &api.AllowedLink{A: api.NewLocation(p.a), B: api.NewLocation(p.b)})
	}
	slices.SortFunc(list, func(x, y *api.AllowedLink) int {
		if c := compareLocations(x.A, y.A); c != 0 {
			return c
		}
		return compareLocations(x.B, y.B)
	})
	return list
}

// listSettings returns what the operator says, in order.
func (lp *linkPolicy) listSettings() []*api.LinkSet {
	list := make([]*api.LinkSet, 0, len(lp.settings))
	for p, m := range lp.settings {
		list = append(list, &api.LinkSet{A: api.NewLocation(p.a), B: api.NewLocation(p.b), Settings: m})
	}
	slices.SortFunc(list, func(x, y *api.LinkSet) int {
		if c := compareLocations(x.A, y.A); c != 0 {
			return c
		}
		return compareLocations(x.B, y.B)
	})
	return list
}

// capacity returns the bandwidth of a link that may be reserved, in kbit/s.
func (lp *linkPolicy) capacity(l *link) uint64 {
	if c := lp.settings[newPair(l.src.at, l.dst.at)].GetCapacityKbps(); c > 0 {
		return c
	}
	if l.src.speed == 0 || l.dst.speed == 0 {
		return uint64(max(l.src.speed, l.dst.speed))
	}
	return uint64(min(l.src.speed, l.dst.speed))
}
