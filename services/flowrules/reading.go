package flowrules

import (
	"strconv"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// reading is the entries read from a switch.
type reading struct {
	ours    map[flow.Owner][]*api.FlowEntry
	entries map[entryID]*seen   // standing ones and the operator's
	objects map[objectKey]*body // nil if they were not read
	foreign int
}

// newReading sorts a switch's entries by owner. An entry that cannot be
// understood is not ours.
func newReading(flows []*api.FlowEntry) *reading {
	rd := &reading{ours: map[flow.Owner][]*api.FlowEntry{}, entries: map[entryID]*seen{}}
	for _, f := range flows {
		owner := ownerOf(f)
		if owner == flow.OwnerForeign {
			rd.foreign++
			continue
		}
		if owner == flow.OwnerOperator || !followsTraffic(owner, f) {
			_, e, err := f.Entry()
			if err != nil {
				rd.foreign++
				continue
			}
			e.Match.Normalize()
			rd.entries[idOf(&e)] = &seen{e, time.Duration(f.GetDuration() * float64(time.Second))}
		}
		rd.ours[owner] = append(rd.ours[owner], f)
	}
	return rd
}

// followsTraffic reports whether an entry comes and goes with the traffic, as routes
// and a service's other entries with a timeout do. Its owner writes it itself.
func followsTraffic(o flow.Owner, f *api.FlowEntry) bool {
	return o == flow.OwnerRoutes || f.GetIdleTimeout() != 0 || f.GetHardTimeout() != 0
}

// ownerOf returns an entry's owner without reading the rest of the entry.
func ownerOf(f *api.FlowEntry) flow.Owner {
	c, err := strconv.ParseUint(f.GetCookie(), 16, 64)
	if err != nil {
		return flow.OwnerForeign
	}
	return flow.Cookie(c).Owner()
}
