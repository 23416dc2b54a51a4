package oftest

import "github.com/weft-sdn/weft/flow"

// actionSet is the action set of a packet: at most one action of each kind,
// and one set-field of each field (§5.10).
type actionSet struct {
	kinds  map[flow.ActionKind]flow.Action
	fields []flow.Action // in the order in which they were written
}

// setOrder is the order in which an action set is carried out (§5.10); where
// there is a group, the output is not.
var setOrder = [...]flow.ActionKind{
	flow.ActionCopyTTLIn, flow.ActionPopVLAN, flow.ActionPopPBB, flow.ActionPopMPLS,
	flow.ActionPushMPLS, flow.ActionPushPBB, flow.ActionPushVLAN, flow.ActionCopyTTLOut,
	flow.ActionDecNwTTL, flow.ActionDecMPLSTTL, flow.ActionSetNwTTL, flow.ActionSetMPLSTTL,
	flow.ActionSetField, flow.ActionSetQueue, flow.ActionGroup, flow.ActionOutput,
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
	s.kinds[a.Kind] = *a
}

// list appends the actions in the order in which they are carried out: none
// where neither group nor output is among them, for then the packet is dropped.
func (s *actionSet) list(dst []flow.Action) []flow.Action {
	_, group := s.kinds[flow.ActionGroup]
	_, output := s.kinds[flow.ActionOutput]
	if !group && !output {
		return dst
	}
	for _, k := range setOrder {
		if k == flow.ActionSetField {
			dst = append(dst, s.fields...)
		} else if a, ok := s.kinds[k]; ok && !(k == flow.ActionOutput && group) {
			dst = append(dst, a)
		}
	}
	return dst
}
