package balancer

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// lapsing is a VIP at the address and port of h8, served by h5, that lapses.
func lapsing() *api.Vip {
	v := shadow(5)
	v.Takeover, v.Lapse = true, true
	return v
}

// report has a switch report entries.
func (g *rig) report(sw flow.DPID, list ...flow.Entry) {
	e := &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerBalancer.String()}
	for i := range list {
		e.Flows = append(e.Flows, api.NewFlowEntry(sw, &list[i]))
	}
	g.b.observed(e, g.now)
}

// gates returns the gates that a moment sends to a switch.
func (g *rig) gates(sw flow.DPID) (list []flow.Entry) {
	d := &flow.Decision{}
	g.b.advance(g.now, d)
	for _, e := range mods(d, sw, flow.Add) {
		if e.HardTimeout != 0 {
			list = append(list, e)
		}
	}
	return list
}

// TestLapse: what takes packets to members stands behind a gate, one entry of a switch,
// which is renewed every second while members serve, at switches that have reported.
func TestLapse(t *testing.T) {
	g := newRig(t)
	g.edge(placeOf(1), "edge")
	g.edge(placeOf(5), "edge")
	g.set(lapsing())
	if list := g.gates(1); len(list) != 0 {
		t.Errorf("the switch has not reported: %v", list)
	}
	g.report(1)
	want := g.b.vips.Get("web").gate()
	if list := g.gates(1); len(list) != 1 || list[0].Key() != want.Key() || list[0].Table != flow.TableTranslate || list[0].Goto != flow.TableProxy || list[0].HardTimeout != gateTime {
		t.Fatalf("gates %v", list)
	}
	g.now += gateRenew - 1
	if list := g.gates(1); len(list) != 0 {
		t.Errorf("renewed too early: %v", list)
	}
	g.now++
	if list := g.gates(1); len(list) != 1 {
		t.Errorf("not renewed: %v", list)
	}
	g.now += gateRenew
	lost := &flow.Decision{}
	lost.AddFlow(1).Entry = want
	g.b.missed(lost, []*api.ApplyFailure{{Transient: true}}, nil)
	if list := g.gates(1); len(list) != 1 {
		t.Errorf("not renewed until the switch, which has missed a flow-mod, reports again: %v", list)
	}
	g.now += int64(gateTime) * int64(time.Second)
	lost = &flow.Decision{}
	lost.AddFlow(1).Entry = g.gates(1)[0]
	g.b.missed(lost, []*api.ApplyFailure{{Transient: true}}, nil)
	if list := g.gates(1); len(list) != 1 {
		t.Errorf("not sent again at once, though the switch has not taken it: %v", list)
	}
	for _, e := range g.rules(1).Flows {
		if e.Priority == flow.PriorityShadow && e.Table != flow.TableProxy && len(e.Apply) > 0 || e.Priority == flow.PriorityShadowRest && e.Goto != flow.TableForward {
			t.Errorf("%v", e)
		}
	}
	if rest := g.standing(1, flow.PriorityShadowRest); len(rest) != 1 {
		t.Errorf("what else is for the host: %v", rest)
	}
	_, _, d := g.send(1, segment(1, 8, 4000, 80, packet.TCPSyn))
	if there := mods(d, 1, flow.Add); len(there) != 1 || there[0].Table != flow.TableProxy || there[0].Goto != flow.TableForward {
		t.Errorf("there: %v", there)
	}
	if back := mods(d, 2, flow.Add); len(back) != 1 || back[0].Table != flow.TableTranslate {
		t.Errorf("back: %v", back)
	}
	g.consistent()
	drained := lapsing()
	drained.Pool[0].State = "draining"
	g.set(drained)
	g.now += 2 * gateRenew
	if list := g.gates(1); len(list) != 1 {
		t.Errorf("a connection of the member that drains would go to the host: %v", list)
	}
	g.set(lapsing())
	g.host(5, flow.Location{}, "gone")
	g.now += 2 * gateRenew
	if list := g.gates(1); len(list) != 0 {
		t.Errorf("nobody serves: %v", list)
	}
	if _, err := g.b.vips.Delete(t.Context(), &api.Vip{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	if list := mods(g.posted(), 1, flow.DeleteStrict); len(list) == 0 || list[0].Key() != want.Key() {
		t.Errorf("the gate stays: %v", list)
	}
}

// TestLapsed: clients of a switch whose gate has ended have connections with the host:
// these go on, and nothing that led to members does, also after a restart.
func TestLapsed(t *testing.T) {
	for name, restart := range map[string]bool{"reconnected": false, "restarted": true} {
		for held, wantConns := range map[bool]int{true: 1, false: 0} {
			g := newRig(t)
			g.edge(placeOf(1), "edge")
			g.set(lapsing())
			g.report(1)
			g.report(2)
			gates := g.gates(1)
			g.send(1, segment(1, 8, 4000, 80, packet.TCPSyn))
			g.now += 2 * young
			entries := g.entries()
			if list := entries[1]; len(list) == 0 {
				t.Fatal("no entries")
			}
			if restart {
				g.start(g.store)
				g.edge(placeOf(1), "edge")
			} else {
				g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254, Since: "later", Address: "x"}})
			}
			g.b.advance(g.now, &flow.Decision{})
			g.posted()
			for sw, flows := range entries {
				if sw == 1 && held {
					f := api.NewFlowEntry(1, &gates[0])
					flows = append(flows, f)
				}
				e := &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerBalancer.String(), Flows: flows}
				if sw == 1 && !restart {
					e.Since, e.Address = "later", "x"
				}
				g.b.observed(e, g.now)
			}
			if n := len(g.b.tracker.by); n != wantConns {
				t.Errorf("%s, gate %v: %d connections", name, held, n)
			}
			gone := mods(g.posted(), 1, flow.DeleteStrict)
			if removed := len(gone) > 0; removed == held {
				t.Errorf("%s, gate %v: removed %v", name, held, gone)
			}
			if verdict, in, _ := g.send(1, segment(1, 8, 4001, 80, packet.TCPAck)); verdict != flow.Next || netip.AddrFrom4(in.Key.IPv4Dst) != v4(8) {
				t.Errorf("%s, gate %v: a connection of the host: %v to %v", name, held, verdict, in.Key.IPv4Dst)
			}
		}
	}
}
