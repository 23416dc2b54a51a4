package oftest

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// TestOpenVSwitchForwardsTheSame10 is TestOpenVSwitchForwardsTheSame for
// OpenFlow 1.0: its matches and actions, which tag untagged frames and set the
// ports of TCP and UDP alike, and its packet-ins for what no entry matches.
//
// One difference more is steered around: a transport port that is set changes
// the type of ICMP in Open vSwitch, where OpenFlow 1.0.1 §5.2.4 knows TCP and
// UDP only. No ICMP is sent.
func TestOpenVSwitchForwardsTheSame10(t *testing.T) {
	const rounds, rules, packets = 40, 12, 40
	o := startOVS(t, openflow.V10)
	outputs, packetIns := 0, 0
	for round := range rounds {
		c := newChance(uint64(4*round + 1)) // frames of one tag at most
		d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now()})}
		d.c = connect(t, d.s, openflow.V10)
		o.exchange(openflow.V10, mustMod(openflow.V10, 1, c.everything()))
		o.command("revalidator/purge")
		for n := range rules {
			m := flow.Mod{BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
			m.Entry = flow.Entry{Priority: uint16(10 + n), Match: c.match10(), Apply: c.actions10()}
			d.both(mustMod(openflow.V10, d.c.next(), m))
		}
		for i := range packets {
			d.packet(c.port(), c.frameBut(uint32(round*packets+i), flow.IPProtoICMP, flow.IPProtoICMPv6))
		}
		outputs += d.frames
		packetIns += d.packetIns
		d.flows()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d packets through %d rule sets: %d frames out, %d packet-ins", rounds*packets, rounds, outputs, packetIns)
	if outputs < 500 || packetIns < 100 {
		t.Error("too little came of it to say anything")
	}
}

// frameBut is frame, of any protocol but some.
func (c chance) frameBut(id uint32, protocols ...uint8) []byte {
	for {
		f := c.frame(id)
		var k flow.Key
		if packet.Parse(f, &k); !slices.Contains(protocols, k.IPProto) {
			return f
		}
	}
}

// match10 returns a match that OpenFlow 1.0 has a form for.
func (c chance) match10() flow.Match {
	for {
		m := c.match(0)
		if _, err := openflow.V10.AppendFlowMod(nil, 1, &flow.Mod{Entry: flow.Entry{Match: m}, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}); err == nil {
			return m
		}
	}
}

// actions10 returns actions of OpenFlow 1.0.
func (c chance) actions10() (list []flow.Action) {
	for range c.IntN(5) {
		f := pick(c, flow.FieldVLAN, flow.FieldVLANPCP, flow.FieldEthSrc, flow.FieldEthDst, flow.FieldIPv4Src, flow.FieldIPv4Dst,
			flow.FieldIPDSCP, flow.FieldTCPSrc, flow.FieldTCPDst)
		list = append(list, pick(c, set(f, c.value(f)), set(f, c.value(f)), flow.PopVLAN(),
			flow.Output(pick(c, c.port(), flow.PortIn, flow.PortFlood, flow.PortAll, flow.PortController))))
	}
	return append(list, flow.Output(c.port()))
}
