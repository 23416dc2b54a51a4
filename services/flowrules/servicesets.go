package flowrules

import "github.com/weft-sdn/weft/flow"

// serviceSets is what services have declared of a switch in its session, and what
// the switch has of those that have not.
type serviceSets struct {
	claimed   map[flow.Owner]bool              // services that have declared their set
	unclaimed map[flow.Owner]map[entryID]*seen // entries of those that have not
	revisions map[flow.Owner]uint64            // of the sets that they have declared
	keeping   map[flow.Owner]bool              // services that keep entries outside their set
	spared    map[flow.Owner]int               // entries that stay because the store is not whole
}

func newServiceSets() serviceSets {
	return serviceSets{
		claimed: map[flow.Owner]bool{}, unclaimed: map[flow.Owner]map[entryID]*seen{},
		revisions: map[flow.Owner]uint64{}, keeping: map[flow.Owner]bool{}, spared: map[flow.Owner]int{},
	}
}

// setAside keeps the entries, as last read, of the services that have not
// declared their sets. They are left alone until then.
func (s *serviceSets) setAside(rd *reading) {
	clear(s.unclaimed)
	for k, h := range rd.entries {
		o := h.entry.Cookie.Owner()
		if o == flow.OwnerOperator || s.claimed[o] && !s.keeping[o] {
			continue
		}
		if s.unclaimed[o] == nil {
			s.unclaimed[o] = map[entryID]*seen{}
		}
		s.unclaimed[o][k] = h
	}
}
