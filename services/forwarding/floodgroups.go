package forwarding

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// An OpenFlow message, and so an entry, is shorter than 64 KiB. A switch with more
// edge ports than fit has its multicasts handed to groups of type all (OpenFlow
// 1.3.5 §5.6.1), each with the ports of one range of numbers: a port that comes or
// goes changes one group.
const (
	// outputsMost is how many ports the actions of one entry or packet-out lead to:
	// with what each may want changed, an action takes 32 octets.
	outputsMost = 1000
	// rangeBits is how many ports share a group: 1,024 buckets of up to 48 octets.
	rangeBits = 10
)

// floodGroups are the groups of one switch, by number.
type floodGroups map[uint32]*flow.Group

// hand returns actions that do what a list of outputs does, which may be too long
// for one entry: by groups, or, on a switch that has none, by the controller.
func (g floodGroups) hand(vlan uint16, list []flow.Action, v10 bool) []flow.Action {
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
	var change []flow.Action // what the ports that follow want changed
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
		if len(one.Buckets) == 1<<rangeBits { // numbers that far apart have the same group
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
