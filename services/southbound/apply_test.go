package southbound

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// TestErrorsReachTheirCause: of a decision over two switches the operations
// that a switch refuses are named, each with the switch's own error.
func TestErrorsReachTheirCause(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		unlucky := func(m *flow.Mod) *openflow.Error {
			if m.Entry.Priority%10 == 3 {
				return &openflow.Error{Type: openflow.ErrFlowModFailed, Code: openflow.FlowModFailedEPerm}
			}
			return nil
		}
		one := w.device(oftest.Config{DPID: 1, Refuse: unlucky})
		w.device(oftest.Config{DPID: 2, MaxEntries: 1})
		d := &flow.Decision{}
		addFlow(d, 1, 10)
		addFlow(d, 1, 13)
		addFlow(d, 2, 10)
		addFlow(d, 2, 11)                                                                                  // its table is full
		addFlow(d, 3, 10)                                                                                  // there is no such switch
		d.Group(1, flow.GroupMod{Command: flow.Modify, Group: flow.Group{Kind: flow.GroupKindAll, ID: 5}}) // nor such a group
		addFlow(d, 1, 23)
		addFlow(d, 1, 20)
		r := w.apply(d)
		want := map[uint32][3]uint32{
			1: {1, uint32(openflow.ErrFlowModFailed), uint32(openflow.FlowModFailedEPerm)},
			3: {2, uint32(openflow.ErrFlowModFailed), uint32(openflow.FlowModFailedTableFull)},
			4: {3, 0, 0},
			5: {1, uint32(openflow.ErrGroupModFailed), uint32(openflow.GroupModFailedUnknownGroup)},
			6: {1, uint32(openflow.ErrFlowModFailed), uint32(openflow.FlowModFailedEPerm)},
		}
		if len(r.Failures) != len(want) {
			t.Errorf("%d failures, want %d: %v", len(r.Failures), len(want), r.Failures)
		}
		for _, f := range r.Failures {
			x := want[f.Op]
			if f.Dpid != flow.DPID(x[0]).String() || f.Type != x[1] || f.Code != x[2] || f.Transient != (f.Op == 4) || f.Text == "" {
				t.Errorf("%v, want %v", f, x)
			}
		}
		if n := len(one.Flows()); n != 2 {
			t.Errorf("%d entries at the first, want 2", n)
		}
		wefttest.None(w.h, api.SwitchErrorEvent, 20*time.Millisecond)
	})
}

// TestErrorsOfSend: nobody waits for a message that was only sent; its error
// is published, with the cookie of the entry that was refused.
func TestErrorsOfSend(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		d := &flow.Decision{}
		addFlow(d, 1, 10)
		d.Flows[0].Entry.Cookie = 0xc0ffee
		d.Flows[0].Entry.Apply[0].Arg = 0
		if r, err := wefttest.Call(w.h, api.Send, d); err != nil || len(r.Failures) != 0 {
			t.Fatal(r, err)
		}
		e := wefttest.Next(w.h, api.SwitchErrorEvent)
		if e.Dpid != flow.DPID(1).String() || e.Type != uint32(openflow.ErrBadAction) || e.Code != uint32(openflow.BadActionBadOutPort) || e.Cookie != "0000000000c0ffee" || !strings.Contains(e.Text, "OFPBAC_BAD_OUT_PORT") {
			t.Errorf("%v", e)
		}
		if s := w.info(1); s.Errors == 0 {
			t.Error("errors are not counted")
		}
	})
}

// TestApplyOnEveryVersion: what OpenFlow 1.0 cannot express fails by operation,
// the rest of the decision is carried out.
func TestApplyOnEveryVersion(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		old := w.device(oftest.Config{DPID: 1, Versions: []openflow.Version{openflow.V10}})
		d := &flow.Decision{}
		addFlow(d, 1, 1)
		d.Group(1, flow.GroupMod{Group: flow.Group{ID: 1}})
		addFlow(d, 1, 2)
		r := w.apply(d)
		if len(r.Failures) != 1 || r.Failures[0].Op != 1 || r.Failures[0].Transient {
			t.Errorf("%v", r.Failures)
		}
		if n := len(old.Flows()); n != 2 {
			t.Errorf("%d entries, want 2", n)
		}
	})
}

// TestRefusalBehindWhatCannotBeSent: the switch's error is about the
// operation that it refused, also where one before it could not be sent.
func TestRefusalBehindWhatCannotBeSent(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1, Versions: []openflow.Version{openflow.V10}, Refuse: func(m *flow.Mod) *openflow.Error {
			if m.Entry.Priority == 2 {
				return &openflow.Error{Type: openflow.ErrFlowModFailed, Code: openflow.FlowModFailedTableFull}
			}
			return nil
		}})
		d := &flow.Decision{}
		d.Group(1, flow.GroupMod{Group: flow.Group{ID: 1}})
		addFlow(d, 1, 1)
		addFlow(d, 1, 2)
		r := w.apply(d)
		if len(r.Failures) != 2 || r.Failures[0].Op != 0 || r.Failures[1].Op != 2 || r.Failures[1].Type != uint32(openflow.ErrFlowModFailed) {
			t.Errorf("%v", r.Failures)
		}
	})
}

// TestFences: what is behind a fence is sent when all before it is confirmed,
// and not at all if something before it has failed.
func TestFences(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		first := w.device(oftest.Config{DPID: 1, Refuse: func(m *flow.Mod) *openflow.Error {
			if m.Entry.Priority == 99 {
				return &openflow.Error{Type: openflow.ErrFlowModFailed, Code: openflow.FlowModFailedEPerm}
			}
			return nil
		}})
		var mu sync.Mutex // guards behind
		var behind time.Time
		second := w.device(oftest.Config{DPID: 2, Refuse: func(*flow.Mod) *openflow.Error {
			mu.Lock()
			defer mu.Unlock()
			if behind.IsZero() {
				behind = time.Now()
			}
			return nil
		}})
		const delay = 60 * time.Millisecond
		first.SetFaults(oftest.Faults{BarrierDelay: delay})
		d := &flow.Decision{}
		addFlow(d, 1, 1)
		d.Fence()
		addFlow(d, 2, 2)
		start := time.Now()
		if r := w.apply(d); len(r.Failures) != 0 {
			t.Fatal(r.Failures)
		}
		mu.Lock()
		if took := behind.Sub(start); took < delay {
			t.Errorf("what is behind the fence came after %v, before what precedes it was confirmed", took)
		}
		mu.Unlock()
		first.SetFaults(oftest.Faults{})
		d = &flow.Decision{}
		addFlow(d, 1, 99)
		d.Fence()
		addFlow(d, 2, 3)
		d.Fence()
		addFlow(d, 2, 4)
		r := w.apply(d)
		if len(r.Failures) != 3 || r.Failures[0].Op != 0 || r.Failures[1].Op != 2 || r.Failures[2].Op != 4 || r.Failures[0].Transient || !r.Failures[1].Transient {
			t.Errorf("%v", r.Failures)
		}
		if n := len(second.Flows()); n != 1 {
			t.Errorf("%d entries behind the fence, want 1", n)
		}
	})
}

// TestConfirmTimeout: a switch that does not confirm fails its own share.
func TestConfirmTimeout(t *testing.T) {
	t.Parallel()
	inAllModes(t, "confirm_timeout: 1s", func(t *testing.T, w *world) {
		slow := w.device(oftest.Config{DPID: 1})
		w.device(oftest.Config{DPID: 2})
		slow.SetFaults(oftest.Faults{BarrierDelay: time.Hour})
		d := &flow.Decision{}
		addFlow(d, 1, 1)
		addFlow(d, 2, 1)
		r := w.apply(d)
		if len(r.Failures) != 1 || r.Failures[0].Op != 0 || !r.Failures[0].Transient {
			t.Error(r.Failures)
		}
	})
}

// TestSwitchGoesDuringApply: who waits for a switch that goes learns so at once.
func TestSwitchGoesDuringApply(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		d := w.device(oftest.Config{DPID: 1})
		d.SetFaults(oftest.Faults{BarrierDelay: time.Hour})
		time.AfterFunc(50*time.Millisecond, d.Disconnect)
		ops := &flow.Decision{}
		addFlow(ops, 1, 1)
		r := w.apply(ops)
		if len(r.Failures) != 1 || !r.Failures[0].Transient {
			t.Error(r.Failures)
		}
	})
}

// TestDecisionOverSwitches: what one packet decides is done on all switches,
// and the packet goes out.
func TestDecisionOverSwitches(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		frames := make(chan oftest.Frame, 10)
		w.h.Stage(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			addFlow(d, 3, 30)
			addFlow(d, 2, 20)
			addFlow(d, 1, 10)
			if in.Key.InPort == 4 {
				d.Fence()
			}
			d.PacketOut(1, flow.PacketOut{BufferID: flow.BufferNone, InPort: in.Key.InPort, Actions: d.Actions(flow.Output(2)), Data: in.Data})
			addFlow(d, 77, 1) // there is no such switch: no harm
			return flow.Done
		})
		one := oftest.NewDevice(oftest.Config{DPID: 1}, func(f oftest.Frame) { frames <- f })
		w.dial(one)
		w.up(1)
		two, three := w.device(oftest.Config{DPID: 2}), w.device(oftest.Config{DPID: 3})
		d := &flow.Decision{}
		m := d.AddFlow(1)
		m.Entry.Apply = []flow.Action{flow.Output(flow.PortController)}
		if r := w.apply(d); len(r.Failures) != 0 {
			t.Fatal(r.Failures)
		}
		for i, in := range []flow.Port{3, 4} {
			one.Do(func(s *oftest.Switch) oftest.Effects { // only the table miss is left
				return s.Receive(in, make([]byte, 60+i))
			})
			select {
			case f := <-frames:
				if f.Port != 2 && f.Port != 1 || len(f.Data) != 60+i {
					t.Errorf("%d octets left by %v", len(f.Data), f.Port)
				}
			case <-time.After(testwait.Limit):
				t.Fatal("the packet did not go out")
			}
			for _, dev := range []*oftest.Device{two, three} {
				w.eventually("all switches are programmed", func() bool { return len(dev.Flows()) == 1 })
			}
			w.eventually("the first switch is programmed", func() bool { return len(one.Flows()) == 2 })
			del := &flow.Decision{}
			for sw := flow.DPID(1); sw <= 3; sw++ {
				m := del.AddFlow(sw)
				m.Command, m.Entry.Priority = flow.DeleteStrict, uint16(sw)*10
			}
			if r := w.apply(del); len(r.Failures) != 0 {
				t.Fatal(r.Failures)
			}
		}
		if n := w.h.Metric("packet_ins_total"); n != 2 {
			t.Errorf("%v packet-ins counted", n)
		}
	})
}

// TestReads: what the service reads of a switch is what it has.
func TestReads(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		d := w.device(oftest.Config{DPID: 1})
		ops := &flow.Decision{}
		b := flow.Bucket{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(2)}}
		ops.Group(1, flow.GroupMod{Group: flow.Group{Kind: flow.GroupKindIndirect, ID: 4, Buckets: []flow.Bucket{b}}})
		for i := range 2000 {
			m := ops.AddFlow(1)
			m.Entry.Priority = uint16(i)
			m.Entry.Match = flow.Match{}.WithEthDst(flow.MACFrom(uint64(i)))
			m.Entry.Apply = []flow.Action{flow.ToGroup(4)}
		}
		if r := w.apply(ops); len(r.Failures) != 0 {
			t.Fatal(r.Failures)
		}
		d.Receive(1, make([]byte, 60)) // to 00:00:00:00:00:00
		sw := flow.DPID(1).String()
		flows, err1 := wefttest.Call(w.h, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw})
		groups, err2 := wefttest.Call(w.h, api.ReadGroups, &api.ReadGroupsRequest{Dpid: sw})
		ports, err3 := wefttest.Call(w.h, api.ReadPortStats, &api.ReadPortStatsRequest{Dpid: sw})
		tables, err4 := wefttest.Call(w.h, api.ReadTableStats, &api.ReadTableStatsRequest{Dpid: sw})
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(flows.Flows) != 2000 || len(groups.Groups) != 1 || groups.Groups[0].Packets != 1 || len(ports.Ports) != 4 || ports.Ports[0].RxPackets != 1 || len(tables.Tables) != 254 || tables.Tables[0].Active != 2000 {
			t.Errorf("%d flows, groups %v, ports %v, %d tables", len(flows.Flows), groups.Groups, ports.Ports, len(tables.Tables))
		}
	})
}

// TestFlowRemoved: entries that a switch has removed are told of, with why.
func TestFlowRemoved(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		t.Parallel()
		w.device(oftest.Config{DPID: 1})
		d := &flow.Decision{}
		for cookie := range flow.Cookie(2) {
			m := d.AddFlow(1)
			m.Entry.Priority, m.Entry.Flags = uint16(cookie), flow.FlagSendRem
			m.Entry.Cookie = flow.NewCookie(flow.OwnerOperator, 0, uint32(cookie))
		}
		d.Flows[1].Entry.HardTimeout = 1
		d.AddFlow(1).Command = flow.DeleteStrict
		if r := w.apply(d); len(r.Failures) != 0 {
			t.Fatal(r.Failures)
		}
		for _, reason := range []string{"delete", "hard_timeout"} {
			e := wefttest.Await(w.h, api.FlowRemovedEvent, func(e *api.FlowRemoved) bool { return e.Reason == reason })
			if e.Flow.Owner != "operator" || e.Flow.Dpid != flow.DPID(1).String() {
				t.Errorf("%v", e)
			}
		}
	})
}

// claimed returns a flow-mod at a priority, with a cookie.
func claimed(command flow.Command, priority uint16, c flow.Cookie) flow.Mod {
	return flow.Mod{Command: command, Entry: flow.Entry{Priority: priority, Cookie: c}, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny, CookieMask: ^flow.Cookie(0)}
}

var (
	appA, appB = flow.AppCookie(flow.MarkOf("a"), 1), flow.AppCookie(flow.MarkOf("b"), 1)
	operators  = flow.NewCookie(flow.OwnerOperator, 3, 7)
)

// TestAppsReplaceTheirOwn: an app's entry does not get to a switch that has the
// operator's or another app's in its place, which it may have had before it
// connected.
func TestAppsReplaceTheirOwn(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		device := w.device(oftest.Config{DPID: 1})
		add := func(m flow.Mod) *api.ApplyResult {
			d := &flow.Decision{}
			d.Flow(1, m)
			return w.apply(d)
		}
		owners := func() (list []flow.Cookie) {
			for _, f := range device.Flows() {
				list = append(list, f.Cookie)
			}
			return list
		}
		if r := add(claimed(flow.Add, 10, operators)); len(r.Failures) > 0 {
			t.Fatal(r)
		}
		if r := add(claimed(flow.Add, 10, appA)); len(r.Failures) != 1 || r.Failures[0].Transient {
			t.Errorf("in the operator's place: %v", r)
		}
		if r := add(claimed(flow.DeleteStrict, 10, appA)); len(r.Failures) > 0 {
			t.Error(r)
		}
		if list := owners(); len(list) != 1 || list[0] != operators {
			t.Errorf("entries of %x, want the operator's", list)
		}
		if r := add(claimed(flow.Add, 11, appA)); len(r.Failures) > 0 {
			t.Error(r)
		}
		if r := add(claimed(flow.Add, 11, appB)); len(r.Failures) != 1 {
			t.Errorf("in another app's place: %v", r)
		}
	})
}
