package oftest

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

func out(p flow.Port) []flow.Action { return []flow.Action{flow.Output(p)} }

// removed returns the flow-removed messages to c.
func (c *controller) removed(e Effects) (list []openflow.FlowRemoved) {
	c.t.Helper()
	for _, m := range e.Messages {
		if h, _ := openflow.ParseHeader(m.Data); h.Type == openflow.TypeFlowRemoved && m.Conn == c.id {
			var r openflow.FlowRemoved
			if err := c.v.DecodeFlowRemoved(m.Data, &r); err != nil {
				c.t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

func TestTimeouts(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	hard := flow.Entry{Priority: 1, HardTimeout: 10, Flags: flow.FlagSendRem, Cookie: 1, Match: flow.Match{}.WithInPort(1), Apply: out(2)}
	idle := flow.Entry{Priority: 1, IdleTimeout: 4, Flags: flow.FlagSendRem, Cookie: 2, Match: flow.Match{}.WithInPort(2), Apply: out(1)}
	quiet := flow.Entry{Priority: 1, IdleTimeout: 4, Cookie: 3, Match: flow.Match{}.WithInPort(3), Apply: out(1)}
	c.add(hard)
	c.add(idle)
	c.add(quiet)
	step := func(at time.Time, cookies ...flow.Cookie) {
		t.Helper()
		got := c.removed(s.Advance(at))
		if len(got) != len(cookies) {
			t.Fatalf("%d removed, want %d", len(got), len(cookies))
		}
		for i, r := range got {
			reason := openflow.RemovedIdleTimeout
			if r.Cookie == 1 {
				reason = openflow.RemovedHardTimeout
			}
			if r.Cookie != cookies[i] || r.Reason != reason {
				t.Errorf("%+v, want cookie %v for reason %v", r, cookies[i], reason)
			}
		}
	}
	step(at(3 * time.Second))
	wantPorts(t, s.Receive(1, udp(1, 2)), 2)
	wantPorts(t, s.Receive(2, udp(2, 1)), 1)
	step(at(4 * time.Second)) // quiet is gone, without a word
	if n := len(s.Flows()); n != 2 {
		t.Fatalf("%d entries left, want 2", n)
	}
	step(at(7*time.Second-time.Nanosecond), nil...)
	step(at(7*time.Second), 2)
	step(at(9 * time.Second))
	step(at(10*time.Second), 1)
	step(at(5 * time.Second)) // a clock that is set back does nothing
	if s.Now() != at(10*time.Second) {
		t.Errorf("the clock went back to %v", s.Now())
	}
}

func TestFlowRemovedCounts(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Priority: 5, Table: 0, Flags: flow.FlagSendRem, Cookie: 9, Apply: out(2)})
	for range 3 {
		s.Receive(1, udp(1, 2))
	}
	s.Advance(at(1500 * time.Millisecond))
	got := c.removed(c.mod(flow.Mod{Command: flow.Delete, Entry: flow.Entry{Table: flow.TableAll}}))
	want := openflow.FlowRemoved{Reason: openflow.RemovedDelete, Priority: 5, Cookie: 9, DurationSec: 1, DurationNsec: 500_000_000, Packets: 3, Bytes: 3 * 60}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAddReplaces(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	e := flow.Entry{Priority: 5, Flags: flow.FlagSendRem, Cookie: 1, Apply: out(2)}
	c.add(e)
	s.Receive(1, udp(1, 2))
	s.Advance(at(time.Second))
	e.Cookie, e.Apply = 2, out(3)
	if x := c.mod(flow.Mod{Entry: e}); len(x.Messages) != 0 {
		t.Errorf("%d messages, want none: an entry that is replaced is not removed", len(x.Messages))
	}
	wantPorts(t, s.Receive(1, udp(1, 2)), 3)
	if f := s.Flows(); len(f) != 1 || f[0].Packets != 2 || f[0].DurationSec != 0 || f[0].Cookie != 2 {
		t.Errorf("%+v, want the counters kept and the duration not", f)
	}
	e.Flags |= flow.FlagReset
	c.add(e)
	if f := s.Flows(); f[0].Packets != 0 {
		t.Errorf("%d packets after a reset", f[0].Packets)
	}
}

func TestModifyKeepsAllButInstructions(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	narrow := flow.Entry{Priority: 5, IdleTimeout: 7, Flags: flow.FlagSendRem, Cookie: 1, Match: flow.Match{}.WithInPort(1), Apply: out(2)}
	c.add(narrow)
	s.Receive(1, udp(1, 2))
	change := flow.Entry{Priority: 9, HardTimeout: 3, Cookie: 4, Apply: out(3)}
	c.fine(c.mod(flow.Mod{Command: flow.ModifyStrict, Entry: change}))
	wantPorts(t, s.Receive(1, udp(1, 2)), 2) // another match and priority
	c.fine(c.mod(flow.Mod{Command: flow.Modify, Entry: change, CookieMask: 1}))
	wantPorts(t, s.Receive(1, udp(1, 2)), 2) // another cookie
	c.fine(c.mod(flow.Mod{Command: flow.Modify, Entry: change}))
	wantPorts(t, s.Receive(1, udp(1, 2)), 3)
	f := s.Flows()
	if len(f) != 1 || f[0].Cookie != 1 || f[0].IdleTimeout != 7 || f[0].HardTimeout != 0 || f[0].Priority != 5 || f[0].Packets != 4 || f[0].Flags != flow.FlagSendRem {
		t.Errorf("%+v", f)
	}
	c.fine(c.mod(flow.Mod{Command: flow.Modify, Entry: flow.Entry{Table: 1, Apply: out(3)}}))
	if len(s.Flows()) != 1 {
		t.Error("a modify has added an entry")
	}
}

func TestTableFull(t *testing.T) {
	s := New(Config{MaxEntries: 2})
	c := connect(t, s, v13)
	for p := range flow.Port(2) {
		c.add(flow.Entry{Match: flow.Match{}.WithInPort(p + 1), Apply: out(3)})
	}
	third := flow.Entry{Match: flow.Match{}.WithInPort(3), Apply: out(3)}
	c.wantError(c.mod(flow.Mod{Entry: third}), openflow.ErrFlowModFailed, openflow.FlowModFailedTableFull)
	c.add(flow.Entry{Match: flow.Match{}.WithInPort(2), Apply: out(1)}) // it replaces one
	third.Table = 1
	c.add(third) // there is room in another table
}

func TestRefuseOnOrder(t *testing.T) {
	s := New(Config{Refuse: func(m *flow.Mod) *openflow.Error {
		if m.Entry.Priority == 13 {
			return &openflow.Error{Type: openflow.ErrFlowModFailed, Code: openflow.FlowModFailedEPerm}
		}
		return nil
	}})
	c := connect(t, s, v13)
	c.add(flow.Entry{Priority: 12, Apply: out(1)})
	e := c.wantError(c.mod(flow.Mod{Entry: flow.Entry{Priority: 13}}), openflow.ErrFlowModFailed, openflow.FlowModFailedEPerm)
	if e.Xid != c.xid || len(e.Data) == 0 {
		t.Errorf("xid %d, want %d; data %x", e.Xid, c.xid, e.Data)
	}
	if len(s.Flows()) != 1 {
		t.Error("a refused entry was added")
	}
}

func TestNoCounts(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Flags: flow.FlagNoPackets | flow.FlagNoBytes, Apply: out(1)})
	s.Receive(2, udp(1, 2))
	if f := s.Flows(); f[0].Packets != 0 || f[0].Bytes != 0 {
		t.Errorf("counted %d packets, %d octets", f[0].Packets, f[0].Bytes)
	}
}

// TestActionSet: an action set is carried out in the order of §5.10, whatever
// the order in which it was written; a group in it displaces the output.
func TestActionSet(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Goto: 1, HasWrite: true, Write: []flow.Action{flow.Output(1), flow.SetVLAN(7), flow.PushVLAN(flow.EthTypeVLAN)}, Match: flow.Match{}.WithEthType(flow.EthTypeIPv4).WithAnyVLAN()})
	c.add(flow.Entry{Table: 1, HasWrite: true, Write: out(2)})
	tagged := append([]byte{}, udp(1, 2)...)
	tagged = append(tagged[:12], append([]byte{0x81, 0, 0, 5}, tagged[12:]...)...)
	e := s.Receive(3, tagged)
	wantPorts(t, e, 2)
	if f := e.Frames[0].Data; f[15] != 7 || f[19] != 5 {
		t.Errorf("tags %x, want 7 pushed before 5", f[12:20])
	}
	c.fine(c.group(flow.Add, flow.Group{Kind: flow.GroupKindIndirect, ID: 1, Buckets: []flow.Bucket{bucketOf(flow.Output(4))}}))
	c.add(flow.Entry{Table: 1, HasWrite: true, Write: []flow.Action{flow.Output(2), flow.ToGroup(1)}})
	wantPorts(t, s.Receive(3, tagged), 4)
	c.add(flow.Entry{Table: 1, Clear: true})
	wantPorts(t, s.Receive(3, tagged))
}

func TestMissIsDropped(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Goto: 1, HasWrite: true, Write: out(2)})
	if e := s.Receive(1, udp(1, 2)); len(e.Frames)+len(e.Messages) != 0 {
		t.Errorf("a packet that misses table 1 comes to %+v", e)
	}
}

func TestMetadata(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.add(flow.Entry{Goto: 1, Metadata: 0x30, MetaMask: 0xf0})
	c.add(flow.Entry{Table: 1, Goto: 2, Metadata: 0x05, MetaMask: 0x0f})
	c.add(flow.Entry{Table: 2, Match: flow.Match{}.WithMetadata(0x35, ^uint64(0)), Apply: []flow.Action{flow.Output(2), flow.Output(flow.PortController)}})
	e := s.Receive(1, udp(1, 2))
	wantPorts(t, e, 2)
	if in := c.packetIns(e); len(in) != 1 || in[0].Key.Metadata != 0x35 || in[0].Table != 2 {
		t.Errorf("%+v", in)
	}
}
