package forwarding

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// TestReservedAreNotFlooded: what is for groups goes to no port of a chain's function and to no
// whole end of a circuit, whether the switch or the controller decides, also after the switch
// was away: a bridge of a function would learn where the sender is from the wrong side and drop
// what is for it, and a customer would get what is not the circuit's.
func TestReservedAreNotFlooded(t *testing.T) {
	for owner := range reserving {
		t.Run(owner.String(), func(t *testing.T) { testReservedAreNotFlooded(t, owner) })
	}
}

func testReservedAreNotFlooded(t *testing.T, owner flow.Owner) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	at := flow.Location{Switch: a.at.Switch, Port: 77}
	connect := func() {
		for _, at := range []flow.Location{a.at, at} {
			setRole(e.portTable, at, flow.RoleEdge)
		}
	}
	connect()
	frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: b.mac, Dst: flow.MAC{1, 0, 0x5e, 0, 0, 9}}, 0x88b5))
	floods := func(when string, want bool) {
		t.Helper()
		to := func(list []flow.Action) bool {
			return slices.ContainsFunc(list, func(a flow.Action) bool { return a.Kind == flow.ActionOutput && flow.Port(a.Arg) == at.Port })
		}
		entries, _ := e.standingEntries(at.Switch, nil, false, flow.TableForward)
		is := slices.ContainsFunc(entries, func(x flow.Entry) bool { return to(x.Apply) })
		_, d, _ := punt(e, b, nil, frame)
		sent := slices.ContainsFunc(d.Outs, func(o flow.PacketOut) bool { return to(o.Actions) })
		if is != want || sent != want {
			t.Errorf("%s: the switch floods to it: %v, the controller: %v, want %v", when, is, sent, want)
		}
	}
	floods("of nobody", true)
	before := e.inputs(at.Switch)
	e.setReserved(owner, api.NewLocation(at), 0, true)
	floods("reserved", false)
	if e.inputs(at.Switch) == before {
		t.Error("entries are not made anew")
	}
	e.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: at.Switch.String()}})
	connect()
	floods("after the switch was away", false)
	e.setReserved(owner, api.NewLocation(at), 0, false)
	floods("reserved no more", true)
}

// TestReservedByAnEarlierRun: while chain or l2vpn does not run, nothing is flooded to the
// ports that the switch's entries of theirs name; what the service says counts more, whatever
// comes first.
func TestReservedByAnEarlierRun(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	at := flow.Location{Switch: a.at.Switch, Port: 77}
	setRole(e.portTable, at, flow.RoleEdge)
	report := func(list ...flow.Entry) *api.FlowsObserved {
		return &api.FlowsObserved{Dpid: at.Switch.String(), Owner: flow.OwnerChains.String(), Flows: entryMessages(at.Switch, list)}
	}
	ofCircuits := func(x flow.Entry) *api.FlowsObserved {
		return &api.FlowsObserved{Dpid: at.Switch.String(), Owner: flow.OwnerCircuits.String(), Flows: entryMessages(at.Switch, []flow.Entry{x})}
	}
	dropped := flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityChainPort, Match: flow.Match{}.WithInPort(at.Port), Cookie: flow.NewCookie(flow.OwnerChains, 0, 0)}
	circuit := flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityCircuit, Match: flow.Match{}.WithInPort(at.Port), Cookie: flow.NewCookie(flow.OwnerCircuits, 0, 1)}
	tagged := circuit
	tagged.Match = tagged.Match.WithVLAN(5)
	back := flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityChainBack, Match: flow.Match{}.WithInPort(a.at.Port), Cookie: flow.NewCookie(flow.OwnerChains, 0, 0)}
	is := func(when string, want bool) {
		t.Helper()
		if list := e.edge(at.Switch).list().ports; slices.Contains(list, at.Port) == want || !slices.Contains(list, a.at.Port) {
			t.Errorf("%s: floods to %v", when, list)
		}
	}
	if !e.findReserved(report(dropped, back)) || e.findReserved(report(dropped)) {
		t.Error("what is news")
	}
	is("found", true)
	e.setReserved(flow.OwnerChains, api.NewLocation(at), 0, false)
	is("chain says no", false)
	e.findReserved(report())
	e.findReserved(report(dropped))
	is("found again", false)
	e.setReserved(flow.OwnerChains, api.NewLocation(at), 0, true)
	e.findReserved(report())
	is("chain says so, and the switch has none", true)
	e.setReserved(flow.OwnerChains, api.NewLocation(at), 0, false)
	e.findReserved(ofCircuits(tagged))
	is("an end of a VLAN", false)
	e.findReserved(ofCircuits(circuit))
	is("a whole end", true)
	e.findReserved(ofCircuits(tagged))
	is("an end of a VLAN again", false)
	circuit.Priority = flow.PriorityCircuitRest
	e.findReserved(ofCircuits(circuit))
	is("a whole end beside VLANs", true)
	tagged.Match = flow.VLANBlock{ID: 4, Mask: 0xffe}.In(flow.Match{}.WithInPort(at.Port))
	e.findReserved(ofCircuits(tagged))
	p := e.edge(at.Switch)
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.reservedVLANs(); len(of) != 2 || len(of[4]) != 1 || len(of[5]) != 1 {
		t.Errorf("a block of VLANs: found %v, want 4 and 5", of)
	}
}

// TestReservedVLANs: frames of a VLAN are flooded to no port where it is a circuit's, by the
// switch and by the controller; others are. If more VLANs are reserved than entries tell apart,
// the switch floods no tagged frame there.
func TestReservedVLANs(t *testing.T) {
	net, a, b := line(t, 2)
	sw := a.at.Switch
	at := flow.Location{Switch: sw, Port: 77}
	frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: b.mac, Dst: flow.MAC{1, 0, 0x5e, 0, 0, 9}}, 0x88b5))
	tagged := func(vlan uint16) []byte {
		if vlan == 0 {
			return frame
		}
		return slices.Concat(frame[:12], []byte{0x81, 0, byte(vlan >> 8), byte(vlan)}, frame[12:])
	}
	for _, n := range []uint16{1, reservedMost, reservedMost + 1} {
		e := testEngine(t, net, nil, a.at, b.at)
		setRole(e.portTable, a.at, flow.RoleEdge)
		setRole(e.portTable, at, flow.RoleEdge)
		for vlan := range n {
			e.setReserved(flow.OwnerCircuits, api.NewLocation(at), uint32(100+vlan), true)
		}
		to := func(list []flow.Action, port flow.Port) bool {
			return slices.ContainsFunc(list, func(x flow.Action) bool { return x.Kind == flow.ActionOutput && flow.Port(x.Arg) == port })
		}
		entries, _ := e.standingEntries(sw, nil, false, flow.TableForward)
		for vlan, want := range map[uint16]bool{0: true, 100: false, 99 + n: false, 100 + n: n <= reservedMost} {
			in := wefttest.NewPacketIn(sw, a.at.Port, tagged(vlan))
			var first *flow.Entry
			for i := range entries {
				if x := &entries[i]; x.Table == flow.TableForward && x.Match.Matches(&in.Key) && (first == nil || x.Priority > first.Priority) {
					first = x
				}
			}
			if first == nil || to(first.Apply, at.Port) != want || !to(first.Apply, a.at.Port) {
				t.Errorf("%d VLANs: of VLAN %d the switch has %v, want it flooded: %v", n, vlan, first, want)
			}
			d := &flow.Decision{}
			e.toAll(d, in.Data, in.Key.VLAN, flow.Location{})
			sent := slices.ContainsFunc(d.Outs, func(o flow.PacketOut) bool { return to(o.Actions, at.Port) })
			if exact := vlan < 100 || vlan >= 100+n; sent != exact {
				t.Errorf("%d VLANs: of VLAN %d the controller floods: %v, want %v", n, vlan, sent, exact)
			}
		}
	}
}
