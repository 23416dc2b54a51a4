package oftest

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// TestOpenVSwitchLabelsTheSame gives random rules that push, swap and pop labels,
// cover frames and uncover them, and lead packets through other tables, to the
// fake and to Open vSwitch, and sends random packets through both: see
// TestOpenVSwitchForwardsTheSame. It steers around what Open vSwitch 3.1 does wrong:
//   - It aborts, or makes labels of no use, where encap(mpls) covers a frame with a label:
//     the first table sends those to other rules.
//   - It loses sight of what is under a label that is removed as the last one and is not, or the
//     other way round: rules that remove labels match mpls_bos.
//   - It mixes up the headers of a frame that it has covered and uncovers again, and of the copy of
//     one that a group uncovers: covered frames are led to the third table only, where labels stay.
//   - It caches, with a swap, the traffic class of the first packet: its cache is emptied before
//     each packet.
func TestOpenVSwitchLabelsTheSame(t *testing.T) {
	const rounds, packets = 100, 30
	o := startOVS(t, openflow.V13)
	refused, compared, frames, labelled := 0, 0, 0, 0
	for round := range rounds {
		c := newChance(uint64(round))
		d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now(), Nicira: true})}
		d.c = connect(t, d.s, openflow.V13)
		d.clean()
		var groups []uint32
		for id := range uint32(3) {
			g := c.labelGroup(id + 1)
			if !d.both(must(openflow.V13.AppendGroupMod(nil, d.c.next(), &flow.GroupMod{Group: g}))) {
				groups = append(groups, g.ID)
			}
		}
		for n := range 24 {
			m := flow.Mod{Entry: c.labelEntry(n, groups), BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
			if d.both(mustMod(openflow.V13, d.c.next(), m)) {
				refused++
			}
		}
		for i := range packets {
			o.command("revalidator/purge")
			before := d.frames
			f := c.labelFrame(uint32(round*packets + i))
			d.packet(c.port(), f)
			if d.frames > before {
				labelled++
			}
		}
		frames += d.frames
		compared += packets
		d.flows()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d packets through %d rule sets: %d sent on, as %d frames; %d rules refused by both", compared, rounds, labelled, frames, refused)
	if labelled < compared/4 || refused == 0 {
		t.Error("too little came of it to say anything")
	}
}

// labelFrame returns a frame with up to three labels over IP, ARP, a tagged or other
// frame, or with none.
func (c chance) labelFrame(id uint32) []byte {
	e := packet.Ether{Dst: c.mac(), Src: c.mac()}
	inner := c.frame(id)
	depth := c.IntN(4)
	if depth == 0 {
		return inner
	}
	f := packet.AppendEthernet(nil, e, pick(c, flow.EthTypeMPLS, flow.EthTypeMPLS, flow.EthTypeMPLSMC))
	for i := range depth {
		bos := uint32(0)
		if i == depth-1 {
			bos = 1
		}
		f = binary.BigEndian.AppendUint32(f, uint32(16+c.IntN(3))<<12|uint32(c.IntN(8))<<9|bos<<8|uint32(pick(c, 1, 2, 64)))
	}
	if c.in(3) {
		ip := packet.AppendUDP(nil, e, packet.IP{Src: c.ip4(), Dst: c.ip4(), TTL: pick(c, uint8(1), 64)}, 1000, 2000, []byte("payload"))
		return binary.BigEndian.AppendUint32(packet.Pad(append(f, ip[14:]...)), id)
	}
	return append(f, inner...) // a whole frame: an Ethernet pseudowire's
}

// labelActions are lists that belong together, for packets with or without a
// label.
func (c chance) labelActions(table uint8, bottom bool, groups []uint32) []flow.Action {
	label := func() flow.Action { return flow.SetMPLSLabel(uint32(16 + c.IntN(3))) }
	tc := func() flow.Action { return set(flow.FieldMPLSTC, c.value(flow.FieldMPLSTC)) }
	ttl := func() flow.Action {
		return pick(c, flow.Action{Kind: flow.ActionSetMPLSTTL, Arg: uint32(1 + c.IntN(64))}, flow.DecMPLSTTL())
	}
	next := table | 2 // 0 and 2 lead to 2, 1 and 3 to 3
	pop := flow.PopMPLS(flow.EthTypeMPLS)
	if bottom {
		pop = flow.PopMPLS(flow.EthTypeIPv4)
	}
	var list []flow.Action
	some := func(n int, a flow.Action) {
		if !c.in(n) {
			list = append(list, a)
		}
	}
	end := func() []flow.Action {
		some(3, flow.SetEthDst(c.mac()))
		switch c.IntN(6) {
		case 0:
			list = append(list, flow.Resubmit{In: flow.PortIn, Table: next}.Action())
		case 1:
			if len(groups) > 0 {
				list = append(list, flow.ToGroup(pick(c, groups...)))
			}
		case 2:
			list = append(list, flow.Resubmit{In: c.port(), Table: next}.Action(), flow.Output(flow.PortIn))
		}
		return append(list, flow.Output(c.port()))
	}
	switch {
	case table != 2 && !bottom && c.in(8): // anything
		for range 1 + c.IntN(4) {
			list = append(list, pick(c, flow.Encap(flow.PacketEthernet), label(), ttl(), flow.PopMPLS(flow.EthTypeMPLS), flow.Output(c.port()), flow.SetEthDst(c.mac())))
		}
		return list
	case table == 0:
		for range 1 + c.IntN(2) {
			list = append(list, flow.Encap(pick(c, flow.PacketMPLS, flow.PacketMPLS, flow.PacketMPLSMC)), label())
			some(2, tc())
			some(2, ttl())
		}
		if !c.in(20) {
			list = append(list, flow.Encap(flow.PacketEthernet))
		}
		return end()
	}
	kind := c.IntN(5)
	if table == 2 {
		kind = 2 + c.IntN(3)
	}
	switch kind {
	case 0: // the pseudowire's end
		under := []flow.PacketType{flow.PacketMPLS}
		if bottom {
			under = []flow.PacketType{flow.PacketEthernet, flow.PacketEthernet, 1<<16 | flow.PacketType(flow.EthTypeIPv4)}
		}
		list = append(list, flow.Decap(flow.PacketNext), flow.Decap(pick(c, under...)))
		switch to, _ := flow.ParseDecap(list[1]); to {
		case flow.PacketEthernet:
			switch c.IntN(3) {
			case 0:
				list = append(list, flow.Resubmit{In: flow.PortIn, Table: 3}.Action())
			case 1:
				if len(groups) > 0 {
					list = append(list, flow.ToGroup(pick(c, groups...)))
				}
			}
		default:
			list = append(list, flow.Encap(flow.PacketEthernet))
		}
		return append(list, flow.Output(c.port()))
	case 1: // penultimate hop
		list = append(list, pop)
	case 2:
		list = append(list, flow.DecMPLSTTL(), label())
	case 3:
		list = append(list, flow.PushMPLS(), label(), tc(), ttl())
	default:
		list = append(list, label())
		some(2, tc())
		some(2, ttl())
	}
	return end()
}

// labelEntry returns an entry of one of four tables; the first leads packets with a label to
// the second, so that no other ever covers them.
func (c chance) labelEntry(n int, groups []uint32) flow.Entry {
	e := flow.Entry{Table: uint8(c.IntN(4)), Priority: uint16(10 + n), Cookie: flow.Cookie(n)}
	switch n {
	case 0, 1:
		e.Table, e.Priority, e.Goto = 0, 1000+uint16(n), 1
		e.Match = flow.Match{}.WithEthType(flow.EthTypeMPLS + uint16(n))
		return e
	case 2, 3, 4: // tables after the first have an entry for every packet
		e.Table, e.Priority = uint8(n-1), 1
		return e
	}
	if c.in(3) {
		e.Match = e.Match.WithInPort(c.port())
	}
	if e.Table == 0 {
		e.Apply = c.labelActions(0, false, groups)
		return e
	}
	labelled := !c.in(4)
	if labelled {
		e.Match = e.Match.WithEthType(flow.EthTypeMPLS)
		if c.in(2) {
			e.Match = e.Match.WithMPLSLabel(uint32(16 + c.IntN(3)))
		}
		bottom := c.in(2)
		if e.Match = e.Match.WithMPLSBOS(0); bottom {
			e.Match = e.Match.WithMPLSBOS(1)
		}
		if c.in(4) {
			e.Match = e.Match.WithMPLSTC(uint8(c.IntN(8)))
		}
		if c.in(3) {
			e.Match = e.Match.WithMPLSTTL(pick(c, uint8(1), 33, 63, 64))
		}
		e.Apply = c.labelActions(e.Table, bottom, groups)
		return e
	}
	e.Match = e.Match.WithEthType(pick(c, flow.EthTypeIPv4, flow.EthTypeARP, 0x88b5))
	e.Apply = []flow.Action{flow.SetEthSrc(c.mac()), flow.Output(c.port())}
	if e.Table == 1 {
		e.Apply = append(e.Apply, flow.Resubmit{In: flow.PortIn, Table: 3}.Action())
	}
	return e
}

// labelGroup returns a group whose buckets push, swap or pop a label, as tunnels
// do.
func (c chance) labelGroup(id uint32) flow.Group {
	g := flow.Group{ID: id, Kind: pick(c, flow.GroupKindAll, flow.GroupKindIndirect, flow.GroupKindFastFailover)}
	n := 1
	if g.Kind != flow.GroupKindIndirect {
		n = 1 + c.IntN(2)
	}
	for range n {
		b := flow.Bucket{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny}
		if g.Kind == flow.GroupKindFastFailover {
			b.WatchPort = c.port()
		}
		switch kind := c.IntN(4); {
		case kind == 0 && c.tags == 0: // it mixes up the tags of the frame and of the frame that covers it
			b.Actions = []flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(200), set(flow.FieldVLANPCP, c.value(flow.FieldVLANPCP))}
		case kind == 1:
			b.Actions = []flow.Action{flow.SetEthDst(c.mac())}
		case kind == 2:
			b.Actions = []flow.Action{flow.Resubmit{In: flow.PortIn, Table: 2}.Action()}
			g.Buckets = append(g.Buckets, b)
			continue
		}
		b.Actions = append(b.Actions, flow.Output(c.port()))
		g.Buckets = append(g.Buckets, b)
	}
	return g
}
