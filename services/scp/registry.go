package scp

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
)

// registry is the instances that are known. The proxy's mu guards it.
type registry struct {
	book   map[string]*producer // by instance
	byType map[sbi.NFType][]*producer
	byAddr map[netip.Addr][]*producer // as consumers
	ended  map[string]*producer       // that have gone without deregistering, while the NRF lists them
	turn   int                        // how often the NRF has been asked for its instances
}

func newRegistry() registry {
	return registry{map[string]*producer{}, map[sbi.NFType][]*producer{}, map[netip.Addr][]*producer{}, map[string]*producer{}, 0}
}

// put puts an instance into the book.
func (r *registry) put(x *producer) {
	r.drop(x.id())
	delete(r.ended, x.id())
	r.book[x.id()], x.turn = x, r.turn
	list := append(slices.Clone(r.byType[x.profile.NFType]), x)
	slices.SortFunc(list, compare)
	r.byType[x.profile.NFType] = list
	for _, a := range x.addresses() {
		r.byAddr[a] = append(r.byAddr[a], x)
	}
}

// drop takes an instance out of the book. It reports whether it was there.
func (r *registry) drop(id string) bool {
	x := r.book[id]
	if x == nil {
		return false
	}
	is := func(o *producer) bool { return o == x }
	delete(r.book, id)
	if r.byType[x.profile.NFType] = slices.DeleteFunc(slices.Clone(r.byType[x.profile.NFType]), is); len(r.byType[x.profile.NFType]) == 0 {
		delete(r.byType, x.profile.NFType)
	}
	for _, a := range x.addresses() {
		if r.byAddr[a] = slices.DeleteFunc(r.byAddr[a], is); len(r.byAddr[a]) == 0 {
			delete(r.byAddr, a)
		}
	}
	return true
}

// consumersOf returns the registered instances at an address.
func (r *registry) consumersOf(a netip.Addr) []*producer { return r.byAddr[a] }

// sorted returns the instances of a type, or of all, in order.
func (r *registry) sorted(of string) (list []*producer) {
	for _, x := range r.book {
		if of == "" || strings.EqualFold(of, string(x.profile.NFType)) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, compare)
	return list
}

// prove follows the network: an address that had not been seen is its registrant's once
// both are at one port, and foreign once it is seen elsewhere. It returns the instances
// that have changed.
func (r *registry) prove(together func(a, b netip.Addr) bool, seen func(netip.Addr) (object.Station, bool)) (changed []*producer) {
	for _, x := range r.book {
		if len(x.unproven) == 0 {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(x.unproven), func(a netip.Addr) bool { return together(a, x.by) })
		foreign := netip.Addr{}
		for _, a := range left {
			if _, is := seen(a); is {
				foreign = a
			}
		}
		if len(left) != len(x.unproven) || foreign != x.foreign {
			changed = append(changed, x)
			r.drop(x.id()) // at the addresses that it had
			x.unproven, x.foreign = left, foreign
			r.put(x)
		}
	}
	return changed
}

// instance returns an instance: one in the book, or one that has ended and may still
// speak.
func (r *registry) instance(id string) *producer {
	if x := r.book[id]; x != nil {
		return x
	}
	return r.ended[id]
}

// replaced returns those of the type of an instance that were where it is: a place has
// one process, which has a new id each time it starts. Several instances of one process
// are back with their next heartbeats.
func (r *registry) replaced(x *producer) (old []*producer) {
	places := map[netip.AddrPort]bool{}
	for _, e := range x.points {
		places[e.Addr] = true
	}
	for _, y := range r.byType[x.profile.NFType] {
		if y != x && len(y.points) > 0 && !slices.ContainsFunc(y.points, func(e sbi.EndPoint) bool { return !places[e.Addr] }) {
			old = append(old, y)
		}
	}
	return old
}

// list notes which instances the NRF has listed in a turn, and returns those to ask it
// about, so that there are most in the end. Of what has come or gone since that turn
// began, the list says nothing.
func (r *registry) list(ids []string, turn, most int) (wanted []string) {
	listed := map[string]bool{}
	for _, id := range ids {
		listed[id] = true
		if r.instance(id) == nil && len(r.book)+len(wanted) < most {
			wanted = append(wanted, id)
		}
	}
	maps.DeleteFunc(r.ended, func(id string, x *producer) bool { return !listed[id] && x.turn < turn })
	for id, x := range r.book {
		if x.turn >= turn && !listed[id] {
			continue
		}
		if x.unlisted, x.relisted = !listed[id], listed[id]; x.heard == 0 && x.unlisted || x.doubted {
			wanted = append(wanted, id)
		}
	}
	return wanted
}

// pass notes that heartbeats may go past the front for a time, by connections to the NRF
// that have begun while packets did not come to it.
func (r *registry) pass(now int64) {
	for _, x := range r.book {
		if x.heard != 0 {
			x.passed = now
		}
	}
}

// sweep notes which instances have fallen silent, and returns those that the NRF lists
// no more and that have been silent for longer than their timers and the margin.
func (r *registry) sweep(now int64, margin time.Duration) (gone []string, changed bool) {
	for id, x := range r.book {
		if state, _ := x.serves(now, margin); (state == "late") != x.late {
			x.late, changed = !x.late, true
		}
		if x.relisted {
			x.relisted, x.listed = false, now
		}
		if x.unlisted && x.heard != 0 && now-x.heard > int64(x.timer()+margin) {
			gone = append(gone, id)
		}
	}
	return gone, changed
}
