package scp

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// gateMods collects the flow-mods of gates.
type gateMods struct {
	mu   sync.Mutex // guards the following
	mods []flow.Mod
	fail bool
}

func (g *gateMods) apply(_ context.Context, d *flow.Decision) ([]*api.ApplyFailure, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, op := range d.Ops {
		g.mods = append(g.mods, d.Flows[op.Index])
	}
	if g.fail {
		return []*api.ApplyFailure{{Op: 0}}, nil
	}
	return nil, nil
}

func (g *gateMods) take() []flow.Mod {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.mods
	g.mods = nil
	return list
}

// TestGates: a switch that has confirmed the entries behind it has a gate for four
// seconds, which is renewed; the front serves there when the gate is confirmed. Where it was
// missing, connections that the NRF has go on.
func TestGates(t *testing.T) {
	n := newNetwork(t, false)
	n.stop()
	n.stop = func() {}
	w, sent, info := n.wire, &gateMods{fail: true}, &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}
	w.apply = sent.apply
	at := time.Now().UnixNano()
	renew := func(after time.Duration) []flow.Mod {
		at += int64(after)
		w.renewGates(t.Context(), at)
		return sent.take()
	}
	w.open.Store(true)
	n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: info.Dpid, Port: 1}, Role: "edge"}})
	if list := renew(0); len(list) != 0 {
		t.Errorf("nothing is behind it: %v", list)
	}
	w.want(info)
	w.answered(1, nil, nil)
	list := renew(0)
	if len(list) != 1 || list[0].Command != flow.Add || list[0].Entry.HardTimeout != gateTime || list[0].Entry.Goto != flow.TableProxy || list[0].Entry.Match.Set.Has(flow.FieldInPort) {
		t.Fatalf("%v", list)
	}
	if w.inForce() {
		t.Error("in force, though the switch has refused the gate")
	}
	sent.fail = false
	if list := renew(gateRenew); len(list) != 1 || !w.inForce() {
		t.Errorf("%v", list)
	}
	began := w.older.began
	if renew(gateRenew); w.older.began != began {
		t.Error("older connections are said to be there, though the gate was")
	}
	sent.fail = true
	for range gateTime + 1 {
		renew(gateRenew)
	}
	if w.older.began != at {
		t.Error("the switch has not taken the gate until it had ended, and connections of that time are not let go on")
	}
	sent.fail = false
	renew(gateRenew)
	if renew(2 * gateTime * time.Second); w.older.began != at {
		t.Error("the gate had ended, and connections of that time are not let go on")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	settled := false
	w.settle = func(context.Context) { settled = len(sent.mods) == 1 && w.want(info) == nil }
	w.left(ended)
	if !settled {
		t.Error("it was not waited for the entries of a front that has ended to go")
	}
	if list := sent.take(); len(list) != 1 || list[0].Command != flow.DeleteStrict || list[0].Entry.Key() != keyOf(w.gate()) {
		t.Errorf("%v", list)
	}
}

func keyOf(e flow.Entry) flow.EntryKey { return e.Key() }
