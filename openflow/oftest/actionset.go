package oftest

import "github.com/weft-sdn/weft/flow"

// actionSet is the action set of a packet: at most one action of each kind,
// and one set-field of each field (§5.10).
type actionSet struct {
	kinds  map[flow.ActionKind]flow.Action // by slot
	fields []flow.Action                   // in the order in which they were written
}

// The slots of Open vSwitch's actions in an action set.
const (
	slotDecap flow.ActionKind = 0xff00 + iota
	slotEncap
	slotResubmit
)

// slot returns the place of an action in a set.
func slot(a *flow.Action) flow.ActionKind {
	if a.Kind == flow.ActionExperimenter {
		if _, ok := flow.ParseDecap(*a); ok {
			return slotDecap
		}
		if _, ok := flow.ParseEncap(*a); ok {
			return slotEncap
		}
		if _, ok := flow.ParseResubmit(*a); ok {
			return slotResubmit
		}
	}
	return a.Kind
}

// setOrder is the order in which an action set is carried out (§5.10); where
// there is a group, the output is not, and where there is either, Open vSwitch's
// resubmit is not.
var setOrder = [...]flow.ActionKind{
	flow.ActionCopyTTLIn, flow.ActionPopVLAN, flow.ActionPopPBB, flow.ActionPopMPLS,
	slotDecap, slotEncap, flow.ActionPushMPLS, flow.ActionPushPBB, flow.ActionPushVLAN, flow.ActionCopyTTLOut,
	flow.ActionDecNwTTL, flow.ActionDecMPLSTTL, flow.ActionSetNwTTL, flow.ActionSetMPLSTTL,
	flow.ActionSetField, flow.ActionSetQueue, slotResubmit, flow.ActionGroup, flow.ActionOutput,
}

// write puts an action into the set, in the place of one of its kind.
func (s *actionSet) write(a *flow.Action) {
	if a.Kind == flow.ActionSetField {
		for i := range s.fields {
			if s.fields[i].Field == a.Field {
				s.fields[i] = *a
				return
			}
		}
		s.fields = append(s.fields, *a)
		return
	}
	if s.kinds == nil {
		s.kinds = map[flow.ActionKind]flow.Action{}
	}
	s.kinds[slot(a)] = *a
}

// list appends the actions in the order in which they are carried out: none
// where nothing among them sends the packet on, for then the packet is dropped.
func (s *actionSet) list(dst []flow.Action) []flow.Action {
	_, group := s.kinds[flow.ActionGroup]
	_, output := s.kinds[flow.ActionOutput]
	_, resubmit := s.kinds[slotResubmit]
	if !group && !output && !resubmit {
		return dst
	}
	for _, k := range setOrder {
		if k == flow.ActionSetField {
			dst = append(dst, s.fields...)
		} else if a, ok := s.kinds[k]; ok && !(k == flow.ActionOutput && group) && !(k == slotResubmit && (group || output)) {
			dst = append(dst, a)
		}
	}
	return dst
}
