package forwarding

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// connected returns the event of a session of a switch of floodRig.
func connected(sw flow.DPID, since, address string) *api.SwitchChanged {
	return &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: 254, Since: since, Address: address},
		Ports: []*api.Port{{Dpid: sw.String(), Port: 1, Up: true}, {Dpid: sw.String(), Port: 2, Up: true}, {Dpid: sw.String(), Port: 3, Up: true}}}
}

// has returns what a switch has of forwarding's entries, as told in a session.
func (f *flooding) has(sw flow.DPID, since, address string, tree ...flow.Port) *api.FlowsObserved {
	return &api.FlowsObserved{Dpid: sw.String(), Owner: flow.OwnerForwarding.String(), Since: since, Address: address,
		Flows: entryMessages(sw, standingFlows(f.baseline, sw, tree))}
}

const (
	firstAt, firstFrom = "2026-01-01T00:00:00Z", "192.0.2.1:1000"
	nextAt, nextFrom   = "2026-01-01T00:00:30Z", "192.0.2.1:2000"
)

// whole fails unless the tree is in force on all switches of floodRig.
func (f *flooding) whole(t *testing.T, when string) {
	t.Helper()
	if wait := f.untilDue(time.Now().Add(time.Second)); wait != 0 {
		t.Fatalf("%s: waits %v although all switches have told what they have", when, wait)
	}
	if !f.commit(t.Context()) {
		t.Fatalf("%s: not committed", when)
	}
	if resp, _ := f.get(t.Context(), nil); resp.Committed != 7 || len(resp.Ports) != 4 {
		t.Errorf("%s: tree %d has the ports %v, want 4", when, resp.Committed, resp.Ports)
	}
}

// joined is floodRig whose switches have connected and told what they have.
func joined(t *testing.T) (*flooding, *floodNet) {
	f, net := floodRig(t)
	for sw := flow.DPID(1); sw <= 3; sw++ {
		net.e.handleSwitch(f, connected(sw, firstAt, firstFrom))
		net.e.handleReport(f, f.has(sw, firstAt, firstFrom))
	}
	f.whole(t, "at first")
	return f, net
}

// What a switch has may be told of before its new connection is: flowrules and
// the southbound are heard each in its own time. The tree does without asking.
func TestObservedBeforeConnected(t *testing.T) {
	f, net := joined(t)
	net.e.handleReport(f, f.has(2, nextAt, nextFrom, 2, 3))
	net.e.handleSwitch(f, connected(2, nextAt, nextFrom))
	f.whole(t, "told early")

	net.e.handleSwitch(f, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(3).String(), Since: nextAt, Address: nextFrom}})
	net.e.handleReport(f, f.has(3, nextAt, nextFrom, 2))
	net.e.handleSwitch(f, connected(3, nextAt, nextFrom))
	f.whole(t, "told before a switch has come back")
}

// One that starts asks all switches what they have, and may be answered before it
// has heard of any.
func TestAnsweredBeforeConnected(t *testing.T) {
	f, net := floodRig(t)
	clear(f.switches)
	e, asked := net.e, 0
	e.observe = func(dpids []string) ([]string, error) {
		asked++
		return []string{flow.DPID(1).String(), flow.DPID(2).String(), flow.DPID(3).String()}, nil
	}
	now := time.Now()
	e.askAgain()
	e.ask(now)
	for sw := flow.DPID(1); sw <= 3; sw++ {
		for _, owner := range []flow.Owner{flow.OwnerForwarding, flow.OwnerRoutes} {
			ev := f.has(sw, firstAt, firstFrom)
			if ev.Owner = owner.String(); owner == flow.OwnerRoutes {
				ev.Flows = nil
			}
			e.handleReport(f, ev)
		}
	}
	for sw := flow.DPID(1); sw <= 3; sw++ {
		e.handleSwitch(f, connected(sw, firstAt, firstFrom))
	}
	f.whole(t, "answered early")
	if !e.adoption.isSettled() {
		t.Error("what the switches have is not known, though they have told it")
	}
	for at := now; at.Before(now.Add(time.Minute)); at = at.Add(time.Second) {
		e.ask(at)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// What is told late, of the session before, is not what the switch has now.
func TestObservedOfFormerSession(t *testing.T) {
	f, net := joined(t)
	net.e.handleSwitch(f, connected(2, nextAt, nextFrom))
	net.e.handleReport(f, f.has(2, firstAt, firstFrom, 2, 3))
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before the switch has told what it has in this session")
	}
	net.e.handleReport(f, f.has(2, nextAt, nextFrom, 2, 3))
	f.whole(t, "told in time")
}

// A session that is told once more, as to one who has missed events, changes
// nothing: nobody reads the switch again for that.
func TestConnectionToldAgain(t *testing.T) {
	f, net := joined(t)
	before := net.writes
	for sw := flow.DPID(1); sw <= 3; sw++ {
		net.e.handleSwitch(f, connected(sw, firstAt, firstFrom))
	}
	f.whole(t, "told again")
	if net.writes != before {
		t.Errorf("%d switches were written to for what has not changed", net.writes-before)
	}
}

// A session is told apart from another of the same second.
func TestSessionsOfOneSecond(t *testing.T) {
	f, net := joined(t)
	net.e.handleSwitch(f, connected(2, firstAt, nextFrom))
	if f.untilDue(time.Now().Add(time.Second)) == 0 {
		t.Error("due before the switch has told what it has in this session")
	}
	net.e.handleReport(f, f.has(2, firstAt, nextFrom, 2, 3))
	f.whole(t, "the second")
	if len(net.e.sessions.early) != 0 {
		t.Errorf("kept: %v", net.e.sessions.early)
	}
}
