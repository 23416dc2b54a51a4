package firewall

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// sites is the known switches.
type sites struct {
	mu sync.Mutex // guards m
	m  map[flow.DPID]*site
}

// of returns the state of a switch.
func (l *sites) of(sw flow.DPID) *site {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.m[sw]
	if s == nil {
		s = &site{dpid: sw, sending: make(chan struct{}, 1), verdicts: map[flow.Match]*verdict{}, unknown: true}
		l.m[sw] = s
	}
	return s
}

// all returns the switches, by number.
func (l *sites) all() []*site {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*site, 0, len(l.m))
	for _, sw := range slices.Sorted(maps.Keys(l.m)) {
		list = append(list, l.m[sw])
	}
	return list
}

// each calls f for switches, several at once, and returns those for which it failed.
func each(sites []*site, f func(*site) error) (failed []*api.FirewallFailure) {
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, 32)
	for _, s := range sites {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			if err := f(s); err != nil {
				mu.Lock()
				failed = append(failed, &api.FirewallFailure{Dpid: s.dpid.String(), Text: err.Error()})
				mu.Unlock()
			}
		})
	}
	work.Wait()
	slices.SortFunc(failed, func(a, b *api.FirewallFailure) int { return strings.Compare(a.Dpid, b.Dpid) })
	return failed
}
