package tunnels

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// status is what is done about a tunnel.
type status struct {
	tunnel  *tunnel // as it is stored
	entered *tunnel // as its head has it: the one before, until the switches after the head have confirmed
	active  int     // on which path of entered
	retired []lsp   // no longer wanted, still installed
	state   string
	reason  string
	since   time.Time
	again   time.Time // when to seek a path again

	books     []flow.Location // the links on which it books, at its bandwidth and holding priority
	kbps      uint64
	hold      uint32
	displaced string // why it has lost its bandwidth
	lack      string // why it has not got what it lacks
	yields    bool   // what its head still has books nothing: others have the bandwidth
	reroute   bool   // other paths are wanted
	pieces    map[flow.DPID]*piece
}

// path returns the primary or the standby path that the head has.
func (s *status) path(which int) lsp { return s.entered.both()[which] }

// installed returns the paths that switches have entries of.
func (s *status) installed() []lsp {
	list := s.tunnel.paths(onPrimary)
	for _, p := range append(s.entered.paths(onPrimary), s.retired...) {
		if !slices.ContainsFunc(list, func(o lsp) bool { return slices.Equal(o, p) }) {
			list = append(list, p)
		}
	}
	return list
}

// note enters a value under a key, or takes it out.
func note[K, V comparable](m map[K]map[V]bool, key K, v V, enter bool) {
	switch {
	case !enter:
		if delete(m[key], v); len(m[key]) == 0 {
			delete(m, key)
		}
	case m[key] == nil:
		m[key] = map[V]bool{v: true}
	default:
		m[key][v] = true
	}
}

func sorted[K cmp.Ordered](m map[K]bool) []K { return slices.Sorted(maps.Keys(m)) }
