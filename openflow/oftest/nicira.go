package oftest

import (
	"math"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// depart begins a trip.
func (s *Switch) depart() *trip {
	return &trip{frames: len(s.effects.Frames), messages: len(s.effects.Messages)}
}

// arrive ends a trip. Of one that cannot be carried on, it takes back what has come since
// the last decap of a label, behind which Open vSwitch begins anew.
func (s *Switch) arrive(t *trip) {
	if t.void != inOrder {
		s.effects.Frames = s.effects.Frames[:t.frames]
		s.effects.Messages = s.effects.Messages[:t.messages]
	}
}

// known reports whether an experimenter's action is one of those of Open vSwitch
// that this switch carries out.
func known(a flow.Action) bool {
	_, controller := flow.ParseController(a)
	_, encap := flow.ParseEncap(a)
	_, decap := flow.ParseDecap(a)
	_, resubmit := flow.ParseResubmit(a)
	return a == flow.ForgetInPort() || slices.Contains(flow.SwapMACs(), a) || a == flow.SaveTag() || a == flow.RestoreTag() || controller || encap || decap || resubmit
}

// nicira carries out an action of Open vSwitch; false is that the packet is
// dropped.
func (s *Switch) nicira(t *transit, a *flow.Action) bool {
	if _, ok := flow.ParseController(*a); ok {
		s.toController(t, *a)
		return true
	}
	if *a == flow.ForgetInPort() {
		t.in = 0
		return true
	}
	if _, ok := flow.ParseCT(*a); ok { // nothing is tracked
		return false
	}
	if i := slices.Index(flow.SwapMACs(), *a); i >= 0 {
		return t.move(i)
	}
	if *a == flow.SaveTag() || *a == flow.RestoreTag() {
		t.moveTag(*a == flow.SaveTag())
		return true
	}
	if r, ok := flow.ParseResubmit(*a); ok {
		s.resubmit(t, r)
		return t.trip.void == inOrder
	}
	was, ok := t.typ, false
	if t.frame, t.typ, ok = packet.Encap(t.frame, t.typ, *a); !ok {
		t.trip.void = unfit
		return false
	}
	t.anew(s.tagsKnown())
	if _, decap := flow.ParseDecap(*a); decap && was != flow.PacketEthernet {
		t.trip.frames, t.trip.messages = len(s.effects.Frames), len(s.effects.Messages)
	}
	return true
}

// tagsKnown returns how many tags of a packet the switch knows.
func (s *Switch) tagsKnown() int {
	switch {
	case s.cfg.Tags > 0:
		return s.cfg.Tags
	case s.cfg.Nicira:
		return tagsMax
	}
	return math.MaxInt32
}

// retag pushes a tag, or pops one. Where Open vSwitch knows two, the inner one makes way for
// a third and is lost; a tag that it does not know it does not pop.
func (t *transit) retag(s *Switch, a *flow.Action) (frame []byte, ok bool) {
	push := a.Kind == flow.ActionPushVLAN
	frame = t.frame
	switch {
	case !s.cfg.Nicira:
	case !push && t.tags == 0:
		return frame, false
	case !push:
		t.tags--
	case t.tags == s.tagsKnown():
		frame = slices.Concat(frame[:16], frame[20:])
	default:
		t.tags++
	}
	return packet.Apply(frame, *a)
}

// resubmit carries out what the packet meets in another table, and in those to which
// that leads. The packet is then as it has been made there.
func (s *Switch) resubmit(t *transit, r flow.Resubmit) {
	table, cookie, legacy, reason := t.table, t.cookie, t.legacy, t.reason
	defer func() { t.table, t.cookie, t.legacy, t.reason = table, cookie, legacy, reason }()
	next, in := r.Table, r.In
	if next == flow.NoTable {
		next = table
	}
	if in == flow.PortIn {
		in = t.in
	}
	if t.trip.resubmits++; t.trip.resubmits > resubmitMax || t.trip.depth >= depthMax || int(next) >= len(s.tables) {
		t.trip.void = tooFar
		return
	}
	if next <= table {
		t.trip.depth++
		defer func() { t.trip.depth-- }()
	}
	for n := int(next); n >= 0 && t.trip.void == inOrder; in = t.in {
		t.table = uint8(n)
		e := s.lookup(t, in)
		if e == nil {
			return
		}
		n = s.meet(t, e)
	}
}
