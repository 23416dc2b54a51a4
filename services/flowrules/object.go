package flowrules

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// objectKind distinguishes groups and meters, the objects that entries use.
type objectKind uint8

const (
	groupObject objectKind = iota
	meterObject
)

// String returns the kind as people and metrics call it.
func (k objectKind) String() string { return [...]string{"group", "meter"}[k] }

// objectKey names a group or a meter of a switch.
type objectKey struct {
	kind objectKind
	id   uint32
}

func (k objectKey) String() string { return fmt.Sprintf("%v %d", k.kind, k.id) }

// owner returns the service that has this number.
func (k objectKey) owner() flow.Owner {
	if k.kind == meterObject {
		return flow.MeterOwner(k.id)
	}
	return flow.GroupOwner(k.id)
}

// body is a group or a meter, depending on its key's kind.
type body struct {
	group flow.Group
	meter flow.Meter
}

// resource is one group or meter that a switch should have.
type resource struct {
	key objectKey
	body
	progress
	told *body // as the switch reported it when it was last repaired
}

// objectRemoval is a group or meter to be removed from a switch.
type objectRemoval struct {
	due     time.Time
	late    int
	settled chan struct{} // closed when the switch has confirmed, or the removal is void
}

// uses calls f for each group and meter that an entry leads to.
func uses(e *flow.Entry, f func(objectKey)) {
	if e.Meter != 0 {
		f(objectKey{meterObject, e.Meter})
	}
	for _, list := range [...][]flow.Action{e.Apply, e.Write} {
		for i := range list {
			if list[i].Kind == flow.ActionGroup {
				f(objectKey{groupObject, list[i].Arg})
			}
		}
	}
}

// sameBody reports whether a group or meter as the switch reports it is the
// wanted one. It ignores what has no meaning: weights except in select groups,
// ports and groups to watch except in fast failover and select groups, burst
// sizes without OFPMF_BURST (OpenFlow 1.3.5 §7.3.4.2, §7.3.4.4).
func sameBody(k objectKind, want, have *body) bool {
	if k == meterObject {
		return sameMeter(&want.meter, &have.meter)
	}
	return sameGroup(&want.group, &have.group)
}

func sameGroup(w, h *flow.Group) bool {
	if w.Kind != h.Kind || len(w.Buckets) != len(h.Buckets) {
		return false
	}
	for i := range w.Buckets {
		a, b := &w.Buckets[i], &h.Buckets[i]
		switch w.Kind {
		case flow.GroupKindSelect:
			if a.Weight != b.Weight || a.WatchPort != b.WatchPort || a.WatchGroup != b.WatchGroup {
				return false
			}
		case flow.GroupKindFastFailover:
			if a.WatchPort != b.WatchPort || a.WatchGroup != b.WatchGroup {
				return false
			}
		}
		if !slices.Equal(reportedActions(a.Actions), reportedActions(b.Actions)) {
			return false
		}
	}
	return true
}

func sameMeter(w, h *flow.Meter) bool {
	const burst = 1 << 2 // OFPMF_BURST
	if w.Flags != h.Flags || len(w.Bands) != len(h.Bands) {
		return false
	}
	for i := range w.Bands {
		a, b := w.Bands[i], h.Bands[i]
		if w.Flags&burst == 0 {
			b.BurstSize = a.BurstSize
		}
		if a != b {
			return false
		}
	}
	return true
}

// admitObjects returns a service's whole set of groups and meters for a switch;
// of those with the same number the last counts.
func admitObjects(req *api.SetStandingRequest, sw flow.DPID, owner flow.Owner) ([]*resource, error) {
	at := map[objectKey]int{}
	var list []*resource
	add := func(of flow.DPID, k objectKey, b body) error {
		switch {
		case of != sw:
			return fmt.Errorf("%v is for switch %v, the set for switch %v", k, of, sw)
		case k.owner() != owner:
			return fmt.Errorf("%v is among the numbers of %v", k, k.owner())
		}
		o := &resource{key: k, body: b}
		if i, twice := at[k]; twice {
			list[i] = o
			return nil
		}
		at[k] = len(list)
		list = append(list, o)
		return nil
	}
	for _, m := range req.GetGroups() {
		of, g, err := m.Group()
		if err == nil {
			err = checkGroup(&g)
		}
		if err == nil {
			err = add(of, objectKey{groupObject, g.ID}, body{group: g})
		}
		if err != nil {
			return nil, err
		}
	}
	for _, m := range req.GetMeters() {
		of, meter, err := m.Meter()
		if err == nil {
			err = add(of, objectKey{meterObject, meter.ID}, body{meter: meter})
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// checkGroup refuses what a switch would not carry out. A group may lead to groups of
// the same service with higher numbers, and watch them: groups are made from the highest number
// down, and removed from the lowest up, so none leads to one that is not there.
func checkGroup(g *flow.Group) error {
	if err := g.Check(); err != nil {
		return err
	}
	leads := func(to uint32) bool { return to > g.ID && flow.GroupOwner(to) == flow.GroupOwner(g.ID) }
	for i := range g.Buckets {
		for _, a := range g.Buckets[i].Actions {
			if a.Kind == flow.ActionGroup && !leads(a.Arg) {
				return fmt.Errorf("group %d: bucket %d leads to group %d; want one of the same service with a higher number", g.ID, i, a.Arg)
			}
		}
		if w := g.Buckets[i].WatchGroup; w != flow.GroupAny && !leads(w) {
			return fmt.Errorf("group %d: bucket %d watches group %d; want one of the same service with a higher number", g.ID, i, w)
		}
	}
	return nil
}

// readObjects returns the services' groups and meters on a switch. A switch that
// does not know a kind has none of it. One that cannot be understood is returned
// as empty, and so differs from the wanted one.
func readObjects(groups []*api.Group, meters []*api.Meter) map[objectKey]*body {
	have := map[objectKey]*body{}
	add := func(k objectKey, b body, err error) {
		switch k.owner() {
		case flow.OwnerForeign, flow.OwnerRoutes:
			return
		}
		if err != nil {
			b = body{}
		}
		have[k] = &b
	}
	for _, m := range groups {
		_, g, err := m.Group()
		add(objectKey{groupObject, m.GetId()}, body{group: g}, err)
	}
	for _, m := range meters {
		_, meter, err := m.Meter()
		add(objectKey{meterObject, m.GetId()}, body{meter: meter}, err)
	}
	return have
}

// hasNone reports whether an error of the southbound means that the switch does
// not know groups, or meters.
func hasNone(err error) bool { return api.KindOf(err) == codes.Unimplemented }

// The errors of OpenFlow 1.3.5 §7.4.4.8 and §7.4.4.14 that say whether a group
// or meter is there, and whether there is room for it.
const (
	errGroupMod = 6
	errMeterMod = 12
)

// objectFailure is what a switch's error says about its groups and meters.
type objectFailure uint8

const (
	otherFailure objectFailure = iota
	alreadyThere
	notThere
	noRoom
)

func objectFailureOf(errorType, code uint32) objectFailure {
	switch [2]uint32{errorType, code} {
	case [2]uint32{errGroupMod, 0}, [2]uint32{errMeterMod, 1}:
		return alreadyThere
	case [2]uint32{errGroupMod, 8}, [2]uint32{errMeterMod, 3}:
		return notThere
	case [2]uint32{errGroupMod, 3}, [2]uint32{errMeterMod, 10}:
		return noRoom
	}
	return otherFailure
}
