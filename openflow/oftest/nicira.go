package oftest

import (
	"math"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// depart begins a trip.
func (pl *pipeline) depart() *trip {
	return &trip{frames: len(pl.effects.Frames), messages: len(pl.effects.Messages)}
}

// arrive ends a trip. Of one that cannot be carried on, it takes back what has come since
// the last decap of a label, behind which Open vSwitch begins anew.
func (pl *pipeline) arrive(t *trip) {
	if t.void != inOrder {
		pl.effects.Frames = pl.effects.Frames[:t.frames]
		pl.effects.Messages = pl.effects.Messages[:t.messages]
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
func (pl *pipeline) nicira(t *transit, a *flow.Action) bool {
	if _, ok := flow.ParseController(*a); ok {
		pl.toController(t, *a)
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
		pl.resubmit(t, r)
		return t.trip.void == inOrder
	}
	was, ok := t.typ, false
	if t.frame, t.typ, ok = packet.Encap(t.frame, t.typ, *a); !ok {
		t.trip.void = unfit
		return false
	}
	t.anew(pl.tagsKnown())
	if _, decap := flow.ParseDecap(*a); decap && was != flow.PacketEthernet {
		t.trip.frames, t.trip.messages = len(pl.effects.Frames), len(pl.effects.Messages)
	}
	return true
}

// tagsKnown returns how many tags of a packet the switch knows.
func (pl *pipeline) tagsKnown() int {
	switch {
	case pl.cfg.Tags > 0:
		return pl.cfg.Tags
	case pl.cfg.Nicira:
		return tagsMax
	}
	return math.MaxInt32
}

// retag pushes a tag, or pops one. Where Open vSwitch knows two, the inner one makes way for
// a third and is lost; a tag that it does not know it does not pop.
func (pl *pipeline) retag(t *transit, a *flow.Action) (frame []byte, ok bool) {
	push := a.Kind == flow.ActionPushVLAN
	frame = t.frame
	switch {
	case !pl.cfg.Nicira:
	case !push && t.tags == 0:
		return frame, false
	case !push:
		t.tags--
	case t.tags == pl.tagsKnown():
		frame = slices.Concat(frame[:16], frame[20:])
	default:
		t.tags++
	}
	return packet.Apply(frame, *a)
}

// resubmit carries out what the packet meets in another table, and in those to which
// that leads. The packet is then as it has been made there.
func (pl *pipeline) resubmit(t *transit, r flow.Resubmit) {
	table, cookie, legacy, reason := t.table, t.cookie, t.legacy, t.reason
	defer func() { t.table, t.cookie, t.legacy, t.reason = table, cookie, legacy, reason }()
	next, in := r.Table, r.In
	if next == flow.NoTable {
		next = table
	}
	if in == flow.PortIn {
		in = t.in
	}
	if t.trip.resubmits++; t.trip.resubmits > resubmitMax || t.trip.depth >= depthMax || int(next) >= len(pl.tables) {
		t.trip.void = tooFar
		return
	}
	if next <= table {
		t.trip.depth++
		defer func() { t.trip.depth-- }()
	}
	for n := int(next); n >= 0 && t.trip.void == inOrder; in = t.in {
		t.table = uint8(n)
		e := pl.lookup(t, in)
		if e == nil {
			return
		}
		n = pl.meet(t, e)
	}
}
