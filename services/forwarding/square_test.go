package forwarding

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// messageMost is the octets of an OpenFlow message, less what an entry has beside
// its actions; an action takes 16 at most, and so does the head of a bucket.
const messageMost = 0xffff - 256

// manyPorts is an engine that knows one switch with edge ports 1 to n.
func manyPorts(t testing.TB, n int) *engine {
	t.Helper()
	cfg := *defaults()
	e, err := newEngine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ev := &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(9).String(), Connected: true, Openflow: "1.3", Tables: 254}}
	for i := range n {
		ev.Ports = append(ev.Ports, &api.Port{Dpid: ev.Switch.Dpid, Port: uint32(i + 1), Up: true})
	}
	e.switchChanged(ev)
	for i := range n {
		roleOf(e, flow.Port(i+1), flow.RoleEdge, false)
	}
	return e
}

func roleOf(e *engine, port flow.Port, role flow.PortRole, gone bool) {
	e.roleChanged(&api.PortRoleChanged{Gone: gone, Port: &api.PortRole{At: api.NewLocation(flow.Location{Switch: 9, Port: port}), Role: role.String()}})
}

// TestRolesCostTheSame: a role that changes costs as much on a switch with many
// ports as on one with few.
func TestRolesCostTheSame(t *testing.T) {
	cost := func(n int) float64 {
		e := manyPorts(t, n)
		role := flow.RoleEdge
		return testing.AllocsPerRun(100, func() {
			if role = flow.RoleBlocked; e.edge(9).role[7] == role.String() {
				role = flow.RoleEdge
			}
			roleOf(e, 7, role, false)
		})
	}
	if few, many := cost(100), cost(20_000); many > few {
		t.Errorf("%v allocations on 20,000 ports, %v on 100", many, few)
	}
	e := manyPorts(t, 2000)
	p := e.edge(9)
	if p.edges.Load() != nil {
		t.Error("the list of edge ports was made while nobody asked for it")
	}
	if n := len(p.list().ports); n != 2000 {
		t.Errorf("%d edge ports, want 2000", n)
	}
	before := p.list()
	roleOf(e, 7, flow.RoleEdge, false) // no news
	if after := p.list(); after != before {
		t.Error("the list of edge ports was made again, though nothing has changed")
	}
}

// TestManyPortsFitMessages: whatever the number of ports, every entry, group and
// packet-out fits an OpenFlow message, and all ports are reached once.
func TestManyPortsFitMessages(t *testing.T) {
	for _, n := range []int{outputsMost, outputsMost + 1, 5000, 60_000} {
		for _, v := range []string{"1.3", "1.0"} {
			t.Run(fmt.Sprintf("%d ports, OpenFlow %v", n, v), func(t *testing.T) {
				e := manyPorts(t, n)
				table := flow.TableForward
				if v == "1.0" {
					table = 0
				}
				entries, groups := e.standingEntries(9, nil, v == "1.0", table)
				reached := map[flow.Port]int{}
				byGroup := map[uint32][]flow.Port{}
				for _, g := range groups {
					size := 0
					for _, bucket := range g.Buckets {
						size += 16 + 16*len(bucket.Actions)
					}
					if size > messageMost || flow.GroupOwner(g.ID) != flow.OwnerForwarding {
						t.Fatalf("group %x of %d octets", g.ID, size)
					}
					for _, bucket := range g.Buckets {
						byGroup[g.ID] = append(byGroup[g.ID], flow.Port(bucket.Actions[0].Arg))
					}
				}
				for _, en := range entries {
					if n := 16 * len(en.Apply); n > messageMost {
						t.Fatalf("entry %v of %d octets", &en.Match, n)
					}
					if en.Priority != flow.PriorityFlood {
						continue
					}
					for _, a := range en.Apply {
						if a.Kind == flow.ActionGroup {
							for _, p := range byGroup[a.Arg] {
								reached[p]++
							}
						} else {
							reached[flow.Port(a.Arg)]++
						}
					}
				}
				if v == "1.0" && n > outputsMost {
					if len(reached) != 1 || reached[flow.PortController] != 1 || len(groups) > 0 {
						t.Errorf("multicasts go to %v, want to the controller", reached)
					}
				} else if len(reached) != n {
					t.Errorf("%d of %d ports reached", len(reached), n)
				}
				d := &flow.Decision{}
				e.toAll(d, make([]byte, 1500), 0, flow.Location{Switch: 9, Port: 1})
				outputs := 0
				for i := range d.Outs {
					if n := 16*len(d.Outs[i].Actions) + len(d.Outs[i].Data); n > messageMost {
						t.Fatalf("packet-out of %d octets", n)
					}
					outputs += len(d.Outs[i].Actions)
				}
				if outputs != n-1 {
					t.Errorf("%d of %d ports by packet-out", outputs, n-1)
				}
			})
		}
	}
}

// TestOnePortChangesOneGroup: where multicasts go to groups, a port that comes or
// goes leaves the other groups, and all entries, as they are.
func TestOnePortChangesOneGroup(t *testing.T) {
	e := manyPorts(t, 10_000)
	entries, groups := e.standingEntries(9, nil, false, flow.TableForward)
	roleOf(e, 5000, flow.RoleUnsettled, true)
	now, nowGroups := e.standingEntries(9, nil, false, flow.TableForward)
	if digestOf(entries, nil) != digestOf(now, nil) || len(groups) != len(nowGroups) {
		t.Error("other entries, want the same")
	}
	changed := 0
	for i := range groups {
		if digestOf(nil, groups[i:i+1]) != digestOf(nil, nowGroups[i:i+1]) {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d of %d groups changed, want 1", changed, len(groups))
	}
}

// TestGoneSwitchIsForgotten: nothing is kept of a switch that has gone, whatever
// is said of its ports afterwards.
func TestGoneSwitchIsForgotten(t *testing.T) {
	e := manyPorts(t, 1000)
	e.switchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(9).String()}})
	roleOf(e, 1, flow.RoleEdge, false) // was on its way
	for i := range 1000 {
		roleOf(e, flow.Port(i+1), flow.RoleUnsettled, true)
	}
	if len(e.edges) != 0 {
		t.Errorf("%d switches are known, want none", len(e.edges))
	}
}

// TestChangesWakeOnce: changes that come while others wait do not have all
// switches looked through.
func TestChangesWakeOnce(t *testing.T) {
	e := manyPorts(t, 1)
	f := newFlooding(e, time.Second)
	f.tree = func(context.Context) (*api.Tree, error) { return &api.Tree{}, nil }
	woken := 0
	for range 1000 {
		f.noteChange()
		select {
		case <-f.kick:
			woken++
		default:
		}
	}
	if woken != 1 {
		t.Errorf("woken %d times by 1000 changes, want once", woken)
	}
	f.note(true)
	if len(f.kick) != 1 {
		t.Error("not woken by a change that is urgent")
	}
	<-f.kick
	if !f.commit(t.Context()) {
		t.Fatal("not committed")
	}
	if f.noteChange(); len(f.kick) != 1 {
		t.Error("not woken by the first change after a commit")
	}
}

// TestManyPortsAreTaken: what is declared for a switch with many ports is read by
// who gets it as it was written.
func TestManyPortsAreTaken(t *testing.T) {
	for _, n := range []int{outputsMost, 5000} {
		entries, groups := manyPorts(t, n).standingEntries(9, nil, false, flow.TableForward)
		for _, m := range entryMessages(9, entries) {
			if _, _, err := m.Entry(); err != nil {
				t.Errorf("%d ports: %v", n, err)
			}
		}
		for i := range groups {
			if _, _, err := api.NewGroup(9, &groups[i]).Group(); err != nil {
				t.Errorf("%d ports: %v", n, err)
			}
		}
	}
}
