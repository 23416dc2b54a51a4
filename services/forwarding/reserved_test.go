package forwarding

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
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
			setRole(e, at, flow.RoleEdge)
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
	e.reservedChanged(owner, api.NewLocation(at), false)
	floods("reserved", false)
	if e.inputs(at.Switch) == before {
		t.Error("entries are not made anew")
	}
	e.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: at.Switch.String()}})
	connect()
	floods("after the switch was away", false)
	e.reservedChanged(owner, api.NewLocation(at), true)
	floods("reserved no more", true)
}

// TestReservedByAnEarlierRun: while chain or l2vpn does not run, nothing is flooded to the
// ports that the switch's entries of theirs name; what the service says counts more, whatever
// comes first.
func TestReservedByAnEarlierRun(t *testing.T) {
	net, a, b := line(t, 2)
	e := testEngine(t, net, nil, a.at, b.at)
	at := flow.Location{Switch: a.at.Switch, Port: 77}
	setRole(e, at, flow.RoleEdge)
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
		if list := e.edge(at.Switch).list(); slices.Contains(list, at.Port) == want || !slices.Contains(list, a.at.Port) {
			t.Errorf("%s: floods to %v", when, list)
		}
	}
	if !e.reservedFound(report(dropped, back)) || e.reservedFound(report(dropped)) {
		t.Error("what is news")
	}
	is("found", true)
	e.reservedChanged(flow.OwnerChains, api.NewLocation(at), true)
	is("chain says no", false)
	e.reservedFound(report())
	e.reservedFound(report(dropped))
	is("found again", false)
	e.reservedChanged(flow.OwnerChains, api.NewLocation(at), false)
	e.reservedFound(report())
	is("chain says so, and the switch has none", true)
	e.reservedChanged(flow.OwnerChains, api.NewLocation(at), true)
	e.reservedFound(ofCircuits(tagged))
	is("an end of a VLAN", false)
	e.reservedFound(ofCircuits(circuit))
	is("a whole end", true)
}
