package oftest

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// A pipeline carries packets through what a switch has.
type pipeline struct {
	*contents
	flags   uint16 // of set-config, as is missLen for table misses in OpenFlow 1.0
	missLen uint16
	buffers buffers
}

// receive takes a frame off a port.
func (pl *pipeline) receive(p *port, frame []byte) {
	if !p.Up() {
		return
	}
	p.stats.RxPackets++
	p.stats.RxBytes += uint64(len(frame))
	if p.Config&openflow.PortConfigNoRecv != 0 {
		p.stats.RxDropped++
		return
	}
	pl.begin(&transit{frame: frame, in: p.No})
}

// begin runs a packet that has come in through the tables.
func (pl *pipeline) begin(t *transit) {
	t.trip = pl.depart()
	pl.process(t)
	pl.arrive(t.trip)
}

// process runs a packet through the tables from the first on (§5.1).
func (pl *pipeline) process(t *transit) {
	t.key.InPort, t.key.InPhyPort = t.in, t.in
	t.anew(pl.tagsKnown())
	if pl.flags&openflow.FragMask == openflow.FragDrop && t.key.IPFrag != 0 {
		return
	}
	t.set = actionSet{}
	for next := 0; next >= 0; {
		t.table = uint8(next)
		e := pl.lookup(t, t.in)
		if e == nil {
			pl.missed(t)
			return
		}
		if next = pl.meet(t, e); next == dropped {
			return
		}
	}
	pl.finish(t)
}

// lookup returns the entry of the packet's table that it matches if it has come in by a
// port; nil if there is none. A packet without an Ethernet header matches no condition on
// headers.
func (pl *pipeline) lookup(t *transit, in flow.Port) *entry {
	key := t.key
	key.InPort, key.InPhyPort = in, in
	if key.IPFrag != 0 && pl.cfg.Nicira && pl.flags&openflow.FragMask == openflow.FragNormal {
		key.TPSrc, key.TPDst, key.ICMPType, key.ICMPCode = 0, 0, 0, 0
	}
	fields := ^flow.FieldSet(0)
	if t.typ != flow.PacketEthernet {
		fields = 1<<flow.FieldInPort | 1<<flow.FieldInPhyPort | 1<<flow.FieldMetadata | 1<<flow.FieldTunnelID
	}
	return pl.tables[t.table].lookup(&key, fields)
}

// meet carries out the instructions of an entry that the packet matches, and
// returns the next table.
func (pl *pipeline) meet(t *transit, e *entry) int {
	pl.count(e, len(t.frame))
	t.cookie, t.legacy, t.reason = e.Cookie, e.legacy, flow.ReasonAction
	if e.miss() {
		t.reason = flow.ReasonNoMatch
	}
	return pl.execute(t, &e.Entry)
}

// The ends of the pipeline that execute returns.
const (
	finished = -1
	dropped  = -2
)

// execute carries out the instructions of an entry in their order (§5.9) and
// returns the next table.
func (pl *pipeline) execute(t *transit, e *flow.Entry) int {
	if e.Meter != 0 && !pl.passMeter(e.Meter, len(t.frame)) {
		return dropped
	}
	if !pl.apply(t, e.Apply) {
		return dropped
	}
	if e.Clear {
		t.set = actionSet{}
	}
	for i := range e.Write {
		t.set.write(&e.Write[i])
	}
	if e.MetaMask != 0 {
		t.key.Metadata = t.key.Metadata&^e.MetaMask | e.Metadata&e.MetaMask
	}
	if e.Goto != 0 {
		return int(e.Goto)
	}
	return finished
}

// missed deals with a packet that no entry matches: it is dropped, but that
// OpenFlow 1.0 has the controller see it (OpenFlow 1.0.1 §3.4).
func (pl *pipeline) missed(t *transit) {
	t.cookie, t.reason, t.maxLen = noCookie, flow.ReasonNoMatch, pl.missLen
	pl.packetIn(t, func(c *conn) bool { return c.version == openflow.V10 })
}

// finish carries out the action set (§5.10).
func (pl *pipeline) finish(t *transit) {
	var room [16]flow.Action
	pl.apply(t, t.set.list(room[:0]))
}

// apply carries out a list of actions in order (§5.11); false is that the
// packet is dropped, for its time to live is used up or it cannot be carried on.
func (pl *pipeline) apply(t *transit, list []flow.Action) bool {
	changed := false
	for i := range list {
		if t.trip.void != inOrder {
			return false
		}
		a := &list[i]
		if changed && (a.Kind == flow.ActionGroup || a.Kind == flow.ActionExperimenter) { // for what it may lead to
			t.parse()
			changed = false
		}
		switch a.Kind {
		case flow.ActionOutput:
			pl.output(t, flow.Port(a.Arg), a.MaxLen)
		case flow.ActionGroup:
			pl.toGroup(t, a.Arg)
		case flow.ActionExperimenter:
			if !pl.nicira(t, a) {
				return false
			}
		case flow.ActionSetQueue: // there are none; the packet goes where it would
		default:
			if a.Kind == flow.ActionPushMPLS && pl.cfg.Nicira && packet.Labels(t.frame) >= labelsMax {
				t.trip.void = unfit
				return false
			}
			ok := false
			if a.Kind == flow.ActionPushVLAN || a.Kind == flow.ActionPopVLAN {
				t.frame, ok = pl.retag(t, a)
			} else {
				t.frame, ok = rewrite(t, a)
			}
			changed = changed || ok
			if !ok && pl.expired(t, a.Kind) {
				return false
			}
		}
	}
	if changed {
		t.parse()
	}
	return true
}

// rewrite applies an action that changes the packet or a pipeline field.
func rewrite(t *transit, a *flow.Action) ([]byte, bool) {
	if a.Kind == flow.ActionSetField && a.Field == flow.FieldTunnelID {
		t.key.Put(a.Field, a.Value)
		return t.frame, true
	}
	frame, ok := packet.Apply(t.frame, *a)
	if ok || !t.legacy || a.Kind != flow.ActionSetField {
		return frame, ok
	}
	// OpenFlow 1.0.1 §5.2.4: setting the VLAN of an untagged frame tags it;
	// setting a port is for TCP and UDP alike.
	switch a.Field {
	case flow.FieldVLAN, flow.FieldVLANPCP:
		if frame, ok = packet.Apply(frame, flow.PushVLAN(flow.EthTypeVLAN)); !ok {
			return frame, false
		}
		t.tags = max(t.tags, 1)
		return packet.Apply(frame, *a)
	case flow.FieldTCPSrc, flow.FieldTCPDst:
		other := *a
		other.Field += flow.FieldUDPSrc - flow.FieldTCPSrc
		return packet.Apply(frame, other)
	}
	return frame, false
}

// expired reports whether an action could not be applied because the time to
// live is used up, and tells the controllers so (§7.4.1, OFPR_INVALID_TTL).
func (pl *pipeline) expired(t *transit, kind flow.ActionKind) bool {
	var probe flow.Action
	switch kind {
	case flow.ActionDecNwTTL:
		probe = flow.Action{Kind: flow.ActionSetNwTTL, Arg: 1}
	case flow.ActionDecMPLSTTL:
		probe = flow.Action{Kind: flow.ActionSetMPLSTTL, Arg: 1}
	default:
		return false
	}
	if _, has := packet.Apply(slices.Clone(t.frame), probe); !has {
		return false // it has no such header: the action means nothing to it
	}
	late := *t
	late.reason, late.maxLen = flow.ReasonInvalidTTL, pl.missLen
	pl.packetIn(&late, nil)
	return true
}

// parse sets the fields of a packet that has not come in by a port.
func (pl *pipeline) parse(t *transit) {
	t.key.InPort, t.key.InPhyPort = t.in, t.in
	t.anew(pl.tagsKnown())
}
