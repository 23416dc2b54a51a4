package oftest

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// TestOpenVSwitchForwardsTheSame gives random rules, as the same octets, to the
// fake and to Open vSwitch, and sends random packets through both. They refuse
// the same rules with the same errors, and of every packet the same frames
// leave by the same ports, octet for octet, and the same packet-ins go to the
// controller, and in the end the entries have counted the same packets.
//
// Where the two are known to differ, and both may, the test steers around it:
//   - Open vSwitch gives a pushed VLAN tag or MPLS label values of its own
//     where §5.12.1 has them copied: the rules set them after every push.
//   - A second entry of the same priority that matches the same packet may win
//     in either (§5.3): priorities are unique.
//   - Where a table after the first has no entry for a packet, Open vSwitch
//     carries out the action set, where §5.4 has the packet dropped: tables
//     after the first have an entry for every packet.
//   - It gives no transport fields to first fragments: of them, see TestOpenVSwitchEncodings.
//   - It has room for two VLAN tags, both in matches only if told so
//     (vlan-limit): it is, and no rule makes three.
func TestOpenVSwitchForwardsTheSame(t *testing.T) {
	const rounds, rules, packets = 120, 30, 40
	o := startOVS(t, openflow.V13)
	refused, compared, outputs, packetIns := 0, 0, 0, 0
	for round := range rounds {
		c := newChance(uint64(round))
		d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now()})}
		d.c = connect(t, d.s, openflow.V13)
		d.clean()
		var groups []uint32
		for id := range uint32(3) {
			g := c.group(id + 1)
			if !d.both(must(openflow.V13.AppendGroupMod(nil, d.c.next(), &flow.GroupMod{Group: g}))) {
				groups = append(groups, g.ID)
			} else {
				refused++
			}
		}
		for n := range rules {
			e := c.entry(n, groups)
			if n < 3 {
				e.Table, e.Goto, e.Priority, e.Match = uint8(n+1), 0, 1, flow.Match{}
				e.Apply, e.Write, e.HasWrite = nil, nil, false
			}
			m := flow.Mod{Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
			if d.both(mustMod(openflow.V13, d.c.next(), m)) {
				refused++
			}
		}
		for i := range packets {
			d.packet(c.port(), c.frame(uint32(round*packets+i)))
		}
		outputs += d.frames
		packetIns += d.packetIns
		compared += packets
		d.flows()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d packets through %d rule sets: %d frames out, %d packet-ins, %d rules refused by both", compared, rounds, outputs, packetIns, refused)
	if outputs < compared/4 || packetIns == 0 || refused == 0 {
		t.Error("too little came of it to say anything")
	}
}

// duel is the fake and Open vSwitch side by side.
type duel struct {
	t                 *testing.T
	o                 *openVSwitch
	s                 *Switch
	c                 *controller
	frames, packetIns int
	rules             []string
	gone, theirs      []string // what the fake and Open vSwitch have said of entries that are gone
}

// clean empties Open vSwitch's tables. The flow entries go first: version 3.1
// aborts when a group-mod deletes all groups while an entry leads to two.
func (d *duel) clean() {
	d.o.exchange(openflow.V13, mustMod(openflow.V13, 1, flow.Mod{
		Command: flow.Delete, Entry: flow.Entry{Table: flow.TableAll}, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
	}))
	d.o.exchange(openflow.V13, must(openflow.V13.AppendGroupMod(nil, 1, &flow.GroupMod{Command: flow.Delete, Group: flow.Group{ID: flow.GroupAll}})))
	d.o.command("revalidator/purge")
}

// errorOf returns what an answer refuses with, "" if it does not.
func errorOf(v openflow.Version, msgs [][]byte) string {
	for _, m := range msgs {
		if h, _ := openflow.ParseHeader(m); h.Type == openflow.TypeError {
			e, err := v.DecodeError(m)
			if err != nil {
				return err.Error()
			}
			return e.Error()
		}
	}
	return ""
}

// both gives both a message, and reports whether they refuse it.
func (d *duel) both(msg []byte) bool {
	d.t.Helper()
	var ours [][]byte
	for _, m := range d.s.Message(d.c.id, msg).Messages {
		ours = append(ours, m.Data)
	}
	us, them := errorOf(d.c.v, ours), errorOf(d.c.v, d.o.exchange(d.c.v, msg))
	if us != them {
		d.t.Errorf("the fake says %q, Open vSwitch %q, to\n%s", us, them, describe(d.c.v, msg))
	}
	if us == "" {
		d.rules = append(d.rules, describe(d.c.v, msg))
	}
	return us != ""
}

// describe returns what a flow-mod or group-mod says.
func describe(v openflow.Version, msg []byte) string {
	h, _ := openflow.ParseHeader(msg)
	if h.Type == openflow.TypeFlowMod {
		var m flow.Mod
		if v.DecodeFlowMod(msg, &m) == nil {
			e := &m.Entry
			return fmt.Sprintf("command %d table %d priority %d cookie %#x/%#x match [%v] apply [%s] clear %v write [%s] metadata %#x/%#x goto %d flags %#x out %v/%#x", m.Command, e.Table,
				e.Priority, e.Cookie, m.CookieMask, e.Match, flow.FormatActions(e.Apply), e.Clear, flow.FormatActions(e.Write), e.Metadata, e.MetaMask, e.Goto, e.Flags, m.OutPort, m.OutGroup)
		}
	}
	if h.Type == openflow.TypeGroupMod {
		var m flow.GroupMod
		if v.DecodeGroupMod(msg, &m) == nil {
			text := fmt.Sprintf("group %d of kind %d", m.Group.ID, m.Group.Kind)
			for _, b := range m.Group.Buckets {
				text += " [" + flow.FormatActions(b.Actions) + "]"
			}
			return text
		}
	}
	return fmt.Sprintf("%v %x", h.Type, msg)
}

// packet sends a frame through both and compares what comes of it.
func (d *duel) packet(in flow.Port, frame []byte) {
	d.t.Helper()
	e := d.s.Receive(in, frame)
	var ours, theirs []string
	for _, f := range e.Frames {
		if f.Port.Physical() {
			ours = append(ours, fmt.Sprintf("port %v: %x", f.Port, f.Data))
		}
	}
	for _, m := range e.Messages {
		ours = append(ours, packetInText(d.t, d.c.v, m.Data))
	}
	slices.Sort(ours)
	d.o.command("netdev-dummy/receive", fmt.Sprintf("p%d", in), hex.EncodeToString(frame))
	for try := 0; ; try++ {
		// The command has queued the packet; its main loop takes it through
		// before it answers these, but for packet-ins, which may come later.
		d.o.command("version")
		d.o.exchange(d.c.v, nil)
		for _, m := range d.o.async {
			theirs = append(theirs, packetInText(d.t, d.c.v, m))
		}
		d.o.async = nil
		for p := flow.Port(1); p <= ovsPorts; p++ {
			for _, f := range d.o.sent(p) {
				theirs = append(theirs, fmt.Sprintf("port %v: %x", p, f))
			}
		}
		slices.Sort(theirs)
		if try >= 2 && slices.Equal(ours, theirs) || try == 200 {
			break
		}
	}
	if !slices.Equal(ours, theirs) {
		d.t.Errorf("frame %x in by port %v\nfake:\n  %s\nOpen vSwitch:\n  %s\nrules:\n  %s\ntrace:\n%s", frame, in, strings.Join(ours, "\n  "), strings.Join(theirs, "\n  "),
			strings.Join(d.rules, "\n  "), d.o.command("ofproto/trace", "br0", fmt.Sprintf("in_port=%d", in), hex.EncodeToString(frame)))
	}
	d.frames += len(e.Frames)
	d.packetIns += len(e.Messages)
}

// packetInText returns what a packet-in says.
func packetInText(t *testing.T, v openflow.Version, msg []byte) string {
	var in flow.PacketIn
	if err := v.DecodePacketIn(msg, &in); err != nil {
		t.Errorf("%v: %x", err, msg)
	}
	return fmt.Sprintf("packet-in reason %d table %d cookie %#x port %v metadata %#x length %d: %x",
		in.Reason, in.Table, uint64(in.Cookie), in.Key.InPort, in.Key.Metadata, in.TotalLen, in.Data)
}

// flows compares the entries and the packets that they have counted.
func (d *duel) flows() {
	d.t.Helper()
	d.o.command("revalidator/purge") // it counts when it throws away what it has cached
	request := must(d.c.v.AppendMultipartRequest(nil, d.c.next(), &openflow.MultipartRequest{
		Type: openflow.MultipartFlow, Table: flow.TableAll, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
	}))
	var ours [][]byte
	for _, m := range d.s.Message(d.c.id, request).Messages {
		ours = append(ours, m.Data)
	}
	us, them := flowTexts(d.t, d.c.v, ours), flowTexts(d.t, d.c.v, d.o.exchange(d.c.v, request))
	for len(us) > 0 && len(them) > 0 && us[0] == them[0] {
		us, them = us[1:], them[1:]
	}
	if len(us)+len(them) > 0 {
		d.t.Errorf("entries differ\nfake:\n  %s\nOpen vSwitch:\n  %s", strings.Join(us, "\n  "), strings.Join(them, "\n  "))
	}
}

// flowTexts returns what flow statistics replies say, but for durations and octets.
func flowTexts(t *testing.T, v openflow.Version, replies [][]byte) (list []string) {
	t.Helper()
	for _, m := range replies {
		r, err := v.DecodeMultipartReply(m)
		if err != nil {
			t.Fatal(err)
		}
		err = v.DecodeFlowStats(r.Body, func(f *openflow.FlowStats) error {
			e := &f.Entry
			list = append(list, fmt.Sprintf("table %d priority %05d match [%v] cookie %#x timeouts %d %d flags %#x packets %d apply [%s] clear %v write [%s] metadata %#x/%#x goto %d",
				e.Table, e.Priority, e.Match, uint64(e.Cookie), e.IdleTimeout, e.HardTimeout, e.Flags, f.Packets, flow.FormatActions(e.Apply), e.Clear, flow.FormatActions(e.Write), e.Metadata, e.MetaMask, e.Goto))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	return list
}
