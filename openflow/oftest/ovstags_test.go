package oftest

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// TestOpenVSwitchKnowsTwoTags: Open vSwitch and the fake do the same to frames with up to
// four tags: what becomes of tags when one more is pushed than are known, which are seen after
// some are popped, and by which conditions entries know how many there are. Open vSwitch 3.1
// caches what becomes of a frame whose only tag is popped without regard to a second one: its
// cache is emptied before each frame.
func TestOpenVSwitchKnowsTwoTags(t *testing.T) {
	o := startOVS(t, openflow.V13)
	out, again := flow.Output(2), flow.Resubmit{In: flow.PortIn, Table: 3}.Action()
	push := func(vid uint16) []flow.Action {
		return []flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(vid), {Kind: flow.ActionSetField, Field: flow.FieldVLANPCP}}
	}
	tagged := flow.Match{}.WithAnyVLAN()
	drop := []flow.Entry{}
	for _, kind := range []uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
		drop = append(drop, flow.Entry{Table: 3, Priority: 3, Match: flow.Match{}.WithEthType(kind)})
	}
	for name, rules := range map[string][]flow.Entry{
		"push":       {{Priority: 1, Apply: append(push(500), out)}},
		"push two":   {{Priority: 1, Apply: append(append(push(500), push(501)...), out)}},
		"pop":        {{Priority: 1, Match: tagged, Apply: []flow.Action{flow.PopVLAN(), out}}},
		"pop two":    {{Priority: 1, Match: tagged, Apply: []flow.Action{flow.PopVLAN(), again}}, {Table: 3, Priority: 1, Match: tagged, Apply: []flow.Action{flow.PopVLAN(), out}}},
		"pop, push":  {{Priority: 1, Match: tagged, Apply: append(append([]flow.Action{flow.PopVLAN()}, push(500)...), out)}},
		"pop, look":  append(drop, flow.Entry{Priority: 1, Match: tagged, Apply: []flow.Action{flow.PopVLAN(), again}}, flow.Entry{Table: 3, Priority: 1, Match: tagged, Apply: []flow.Action{out}}),
		"not tagged": append(drop, flow.Entry{Priority: 1, Apply: []flow.Action{again}}, flow.Entry{Table: 3, Priority: 1, Match: flow.Match{}.WithoutVLAN(), Apply: append(append(push(5), push(6)...), out)}),
		"at most one": append(drop, flow.Entry{Priority: 1, Match: tagged, Apply: []flow.Action{flow.SaveTag(), flow.PopVLAN(), again}},
			flow.Entry{Table: 3, Priority: 1, Match: flow.Match{}.WithoutVLAN(), Apply: append(append([]flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.RestoreTag()}, push(500)...), out)}),
	} {
		t.Run(name, func(t *testing.T) {
			d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now(), Nicira: true})}
			d.c = connect(t, d.s, openflow.V13)
			d.clean()
			for _, e := range rules {
				m := flow.Mod{Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
				if d.both(mustMod(openflow.V13, d.c.next(), m)) {
					t.Fatalf("refused: %v", e)
				}
			}
			for tags := range 5 {
				for n := range 1 << tags {
					o.command("revalidator/purge")
					d.packet(1, frameWithTags(tags, n))
				}
			}
			d.flows()
		})
	}
}

// frameWithTags returns a frame with tags, of which those of the bits in n are 0x88a8.
func frameWithTags(tags, n int) []byte {
	f := packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, 0x9999)
	f = append(f, fmt.Sprintf("%048d", tags<<8|n)...)
	for i := range tags {
		tpid := flow.EthTypeVLAN
		if n>>i&1 == 1 {
			tpid = flow.EthTypeQinQ
		}
		f, _ = packet.Apply(f, flow.PushVLAN(tpid))
		binary.BigEndian.PutUint16(f[14:], uint16(i+1)<<13|uint16(100+i))
	}
	return f
}
