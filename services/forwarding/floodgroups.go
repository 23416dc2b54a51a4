package forwarding

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// An OpenFlow message, and so an entry, is shorter than 64 KiB. If a switch has
// more edge ports than fit, its multicasts go to groups of type all (OpenFlow
// 1.3.5 §5.6.1), one for each range of port numbers: a port that is added or
// removed changes one group.
const (
	// outputsMost bounds the ports that the actions of one entry or packet-out
	// lead to: with the header changes that a port may need, an action takes 32
	// bytes.
	outputsMost = 1000
	// rangeBits sets how many ports share a group: 1,024 buckets of up to 48
	// bytes.
	rangeBits = 10
)

// floodGroups are the groups of one switch, by number.
type floodGroups map[uint32]*flow.Group

// actionsFor returns actions equivalent to a list of outputs, which may be too long
// for one entry: by groups, or, on a switch without groups, by the controller.
func (g floodGroups) actionsFor(vlan uint16, list []flow.Action, v10 bool) []flow.Action {
	outputs := 0
	for _, a := range list {
		if a.Kind == flow.ActionOutput {
			outputs++
		}
	}
	if outputs <= outputsMost {
		return list
	}
	if v10 {
		return []flow.Action{flow.Output(flow.PortController)}
	}
	var to []flow.Action
	var change []flow.Action // header changes for the ports that follow
	for _, a := range list {
		if a.Kind != flow.ActionOutput {
			change = []flow.Action{a}
			continue
		}
		id := floodGroup(vlan, flow.Port(a.Arg))
		one := g[id]
		if one == nil {
			one = &flow.Group{Kind: flow.GroupKindAll, ID: id}
			g[id] = one
			to = append(to, flow.ToGroup(id))
		}
		if len(one.Buckets) == 1<<rangeBits { // numbers so far apart share a group
			return []flow.Action{flow.Output(flow.PortController)}
		}
		one.Buckets = append(one.Buckets, flow.Bucket{
			WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: append(slices.Clone(change), a),
		})
	}
	slices.SortFunc(to, func(a, b flow.Action) int { return int(int64(a.Arg) - int64(b.Arg)) })
	return to
}

// floodGroup returns the number of the group of a port for a VLAN, as in Key.VLAN.
func floodGroup(vlan uint16, port flow.Port) uint32 {
	return flow.FloodGroups | uint32(vlan&0xfff)<<16 | uint32(port>>rangeBits)&0xffff
}

// list returns the groups in the order of their numbers.
func (g floodGroups) list() []flow.Group {
	list := make([]flow.Group, 0, len(g))
	for _, one := range g {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b flow.Group) int { return int(int64(a.ID) - int64(b.ID)) })
	return list
}
