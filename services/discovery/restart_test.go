package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// roleEvents returns the role events so far, as "port role", and forgets all.
func (w *world) roleEvents() (list []string) {
	w.take()
	for _, e := range w.events {
		if e.role != nil {
			list = append(list, short(e.role.Port.At)+" "+e.role.Port.Role)
		}
	}
	w.events = nil
	slices.Sort(list)
	return list
}

// restart is a new run with the memory of this one, saved now.
func (w *world) restart(after time.Duration) *world {
	next := newWorld(w.t, func(c *Config) { *c = *w.topo.cfg })
	next.wires, next.now = w.wires, w.now+int64(after)
	defer func() { next.topo.trust(next.now, w.now+trustFor) }()
	for id := range w.topo.switches {
		ports, _ := w.topo.memories(w.now, id)
		again, err := decodePorts(encodePorts(ports))
		if err != nil {
			w.t.Fatal(err)
		}
		for p, m := range again {
			next.topo.remember(at(id, p), m)
		}
	}
	return next
}

// TestRestartDisturbsNothing has the southbound replay its switches to a new
// run: links and edges are there at once, and never anything else.
func TestRestartDisturbsNothing(t *testing.T) {
	for _, liveness := range []time.Duration{0, 80 * time.Millisecond} {
		w := newWorld(t, func(c *Config) { c.Liveness.Interval = liveness })
		w.cable(at(1, 1), at(2, 1))
		w.cable(at(2, 2), at(3, 1))
		w.switches(3, 1, 2, 3)
		w.run(5 * time.Second)
		w = w.restart(time.Second)
		w.switches(3, 1, 2, 3)
		want := []string{"1/1->2/1 up removed=false restart", "2/1->1/1 up removed=false restart",
			"2/2->3/1 up removed=false restart", "3/1->2/2 up removed=false restart"}
		if log := w.linkEvents(); !slices.Equal(slices.Sorted(slices.Values(log)), want) {
			t.Errorf("link events %q, want %q", log, want)
		}
		if log := fmt.Sprint(w.roleEvents()); log != "[1/1 link 1/2 edge 1/3 edge 2/1 link 2/2 link 2/3 edge 3/1 link 3/2 edge 3/3 edge]" {
			t.Errorf("role events %s", log)
		}
		w.run(time.Minute)
		if log := append(w.linkEvents(), w.roleEvents()...); len(log) != 0 {
			t.Errorf("events %q afterwards", log)
		}
	}
}

// TestHostAtFormerLink: a port that has been down for long is soon a host's when one is
// plugged in, also just after a restart: it does not wait for the neighbour that it once had.
func TestHostAtFormerLink(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := newWorld(t, nil)
		w.cable(at(1, 1), at(2, 1))
		w.switches(3, 1, 2)
		w.run(5 * time.Second)
		w.want(at(1, 1), at(2, 1), "up")
		w.cut(at(1, 1), at(2, 1))
		w.port(at(1, 1), false)
		w.port(at(2, 1), false)
		w.run(time.Minute)
		if restarted {
			w = w.restart(time.Second)
			for id := flow.DPID(1); id <= 2; id++ {
				w.topo.connect(w.now, id, nil, []*api.Port{portMsg(id, 1, false), portMsg(id, 2, true), portMsg(id, 3, true)})
				w.topo.confirmTrap(w.now, id)
			}
			w.run(time.Second)
		}
		w.port(at(1, 1), true)
		w.run(w.topo.cfg.Settle + time.Second)
		w.wantRole(at(1, 1), flow.RoleEdge)
	}
}

// TestHostPluggedInUnseen: a host takes the place of a link's far end while no session could
// tell: the far port is down, this one is up as before. It is the host's before long.
func TestHostPluggedInUnseen(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(3, 1, 2)
	w.run(5 * time.Second)
	w.want(at(1, 1), at(2, 1), "up")
	w.cut(at(1, 1), at(2, 1))
	w.port(at(2, 1), false)
	w.run(11 * w.topo.cfg.Timeout)
	w.wantRole(at(1, 1), flow.RoleEdge)
}

// TestRestartFindsChanges has the network change while discovery is away.
func TestRestartFindsChanges(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1)) // goes down
	w.cable(at(2, 2), at(3, 1)) // dies silently
	w.cable(at(3, 2), at(4, 1)) // switch 4 does not come back
	w.switches(3, 1, 2, 3, 4)
	w.run(5 * time.Second)
	before := w.topo.listLinks(w.now)
	w = w.restart(time.Second)
	w.cut(at(2, 2), at(3, 1))
	w.cable(at(1, 3), at(2, 3)) // was edge
	for id := range flow.DPID(3) {
		ports := []*api.Port{portMsg(id+1, 1, id != 0), portMsg(id+1, 2, true), portMsg(id+1, 3, true)}
		w.topo.connect(w.now, id+1, nil, ports)
		w.topo.confirmTrap(w.now, id+1)
	}
	log := strings.Join(w.linkEvents(), "\n")
	for _, gone := range []string{"1/1->2/1 one_way removed=true port_status", "2/1->1/1 one_way removed=true port_status"} {
		if !strings.Contains(log, gone) {
			t.Errorf("no %q at once in\n%s", gone, log)
		}
	}
	w.wantRole(at(1, 1), flow.RoleUnsettled)
	w.run(100 * time.Millisecond)
	w.want(at(1, 3), at(2, 3), "up")
	w.run(time.Duration(doubtFor) + time.Second)
	log += strings.Join(w.linkEvents(), "\n")
	known := map[string]bool{}
	for _, l := range before {
		known[fmt.Sprintf("%s->%s", short(l.Src), short(l.Dst))] = true
	}
	for line := range strings.Lines(log) { // what a subscriber knows then
		link, rest, _ := strings.Cut(line, " ")
		if known[link] = true; strings.Contains(rest, "removed=true") {
			delete(known, link)
		}
	}
	delete(known, "4/1->3/2") // for switch 4 itself is gone
	if len(known) != 2 || !known["1/3->2/3"] || !known["2/3->1/3"] {
		t.Errorf("subscribers know %v", known)
	}
}

// TestOldMemoryIsAGuess has the new run start too late.
func TestOldMemoryIsAGuess(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(2, 1, 2)
	w.run(5 * time.Second)
	w = w.restart(20 * time.Second)
	w.switches(2, 1, 2)
	w.wantRole(at(1, 1), flow.RoleUnsettled)
	w.wantRole(at(1, 2), flow.RoleUnsettled)
}

// TestRestartKeepsLocks shows that a port of hosts stays one for suspect.
func TestRestartKeepsLocks(t *testing.T) {
	w := newWorld(t, nil)
	w.switches(1, 1, 2)
	w.run(2 * time.Second)
	w.topo.at(at(1, 1)).view.host.Store(true)
	w.topo.at(at(2, 1)).view.host.Store(true)
	w.run(2 * time.Minute)
	w = w.restart(time.Second)
	w.switches(1, 1, 2)
	w.cable(at(1, 1), at(2, 1))
	w.run(2 * time.Second)
	w.wantRole(at(1, 1), flow.RoleEdge)
	if w.refuse[hostPort] == 0 {
		t.Errorf("refusals %v: two hosts that pass probes on have become a link", w.refuse)
	}
}

// TestSouthboundRestart has switches connect again, one after the other,
// without having left.
func TestSouthboundRestart(t *testing.T) {
	for _, liveness := range []time.Duration{0, 80 * time.Millisecond} {
		w := newWorld(t, func(c *Config) { c.Liveness.Interval = liveness })
		w.cable(at(1, 1), at(2, 1))
		w.cable(at(2, 2), at(3, 1))
		w.cable(at(3, 2), at(1, 2))
		w.switches(3, 1, 2, 3)
		w.run(5 * time.Second)
		w.linkEvents()
		w.roleEvents()
		for range 2 {
			w.away = map[flow.DPID]bool{1: true, 2: true, 3: true}
			w.run(1500 * time.Millisecond)
			for id := range flow.DPID(3) {
				delete(w.away, id+1)
				w.switches(3, id+1)
				w.run(2500 * time.Millisecond)
			}
			w.run(2 * time.Second)
		}
		if log := append(w.linkEvents(), w.roleEvents()...); len(log) != 0 {
			t.Errorf("events %q", log)
		}
		// A silent failure is still found in time, and what went down meanwhile at once.
		w.away = map[flow.DPID]bool{1: true, 2: true, 3: true}
		w.run(time.Second)
		w.away = nil
		w.topo.connect(w.now, 1, nil, []*api.Port{portMsg(1, 1, false), portMsg(1, 2, true)})
		if log := w.linkEvents(); len(log) != 2 || !strings.Contains(log[0], "port_status") {
			t.Errorf("events %q, want both directions of the link that is down", log)
		}
		w.switches(3, 2, 3)
		w.cut(at(2, 2), at(3, 1))
		w.run(3 * time.Second)
		w.want(at(2, 2), at(3, 1), "")
		w.want(at(3, 2), at(1, 2), "up")
	}
}

// pump carries frames over cables for a time, or until done.
func pump(t *testing.T, h *wefttest.Harness, frames chan frame, wires map[flow.Location]flow.Location, within time.Duration, done func() bool) {
	t.Helper()
	timeout := time.After(within)
	for done == nil || !done() {
		select {
		case f := <-frames:
			if to, ok := wires[f.from]; ok {
				h.Packet(to.Switch, to.Port, f.data)
			}
		case <-timeout:
			if done != nil {
				t.Fatalf("not done within %v", within)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestServiceRestart kills the service and starts it with what it has kept.
func TestServiceRestart(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("interval: 100ms\ntimeout: 2m\nsettle: 400ms")
		frames, traps := fakes(h)
		wires := map[flow.Location]flow.Location{at(1, 1): at(2, 1), at(2, 1): at(1, 1)}
		connect := func() {
			wefttest.PublishAsync(h, api.SwitchChangedEvent, connected(1, 1, 2))
			wefttest.Publish(h, api.SwitchChangedEvent, connected(2, 1, 2))
		}
		saved := func(sw flow.DPID, lines ...string) bool {
			v, _, err := h.Bucket("ports").Get(t.Context(), sw.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if !strings.Contains(string(v), l) {
					return false
				}
			}
			return true
		}
		connect()
		pump(t, h, frames, wires, testwait.Limit, func() bool {
			return saved(1, "1 link 0000000000000002 1 ", "2 edge ") && saved(2, "1 link 0000000000000001 1 ", "2 edge ")
		})
		h.Restart()
		for len(traps) > 0 {
			<-traps
		}
		in := wefttest.NewPacketIn(1, 2, data) // that was held, before anything is replayed
		if v, _ := h.PacketIn(in); v != flow.Next || in.Role != flow.RoleEdge {
			t.Errorf("packet of a host: verdict %v, role %v", v, in.Role)
		}
		connect()
		r, err := wefttest.Call(h, api.ListPortRoles, &api.ListPortRolesRequest{})
		if err != nil || strings.Join([]string{r.Ports[0].Role, r.Ports[1].Role, r.Ports[2].Role, r.Ports[3].Role}, " ") != "link edge link edge" {
			t.Errorf("%v, %v", r, err)
		}
		pump(t, h, frames, wires, 800*time.Millisecond, nil)
		links := wefttest.Taken(h, api.LinkChangedEvent)
		if len(links) != 2 || links[0].Link.State != "up" || links[1].Link.State != "up" || links[0].Removed {
			t.Errorf("link events %v, want both directions up", links)
		}
		for _, e := range wefttest.Taken(h, api.PortRoleChangedEvent) {
			if want := map[uint32]string{1: "link", 2: "edge"}[e.Port.At.Port]; e.Port.Role != want {
				t.Errorf("port %v is %s for a while", e.Port.At, e.Port.Role)
			}
		}
		if n := len(traps); n != 2 {
			t.Errorf("standing entries declared %d times, want once for each switch", n)
		}
		if n := h.Metric("refused_total", "reason", "forged"); n != 0 {
			t.Errorf("%v probes of the earlier run count as forged", n)
		}
	})
}

// TestFlowrulesRestart has flowrules forget what was declared.
func TestFlowrulesRestart(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		_, traps := fakes(h)
		observed := func(sw flow.DPID, owner string) {
			wefttest.Publish(h, api.FlowsObservedEvent, &api.FlowsObserved{Dpid: sw.String(), Owner: owner})
		}
		observed(1, "discovery") // before the switch has connected: nothing to declare
		wefttest.Publish(h, api.SwitchChangedEvent, connected(1, 1))
		<-traps
		observed(1, "forwarding")
		time.Sleep(50 * time.Millisecond)
		if n := len(traps); n != 0 {
			t.Fatalf("declared %d times too often", n)
		}
		observed(1, "discovery")
		select {
		case <-traps:
		case <-time.After(testwait.Limit):
			t.Fatal("not declared anew")
		}
	})
}

// TestDyingInstance has an instance write after its successor has begun.
func TestDyingInstance(t *testing.T) {
	b, err := wefttest.NewStore().Bucket(t.Context(), "discovery.ports")
	if err != nil {
		t.Fatal(err)
	}
	load := func() (*persister, map[flow.Location]memory) {
		s, ports := &persister{store: b}, map[flow.Location]memory{}
		if _, err := s.load(t.Context(), func(at flow.Location, m memory) { ports[at] = m }, func(key string, err error) { t.Errorf("%s: %v", key, err) }); err != nil {
			t.Fatal(err)
		}
		return s, ports
	}
	edge := func(s int64) map[flow.Port]memory {
		return map[flow.Port]memory{1: {role: flow.RoleEdge, since: s * 1e9}}
	}
	old, _ := load()
	next, _ := load()
	for i, err := range []error{old.save(t.Context(), 1, edge(1)), next.save(t.Context(), 1, edge(2)), next.save(t.Context(), 1, edge(3)), next.storeSign(t.Context(), 7)} {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if err := old.save(t.Context(), 1, edge(4)); !errors.Is(err, errSuperseded) {
		t.Errorf("%v, want that another instance has taken over", err)
	}
	if _, ports := load(); len(ports) != 1 || ports[at(1, 1)].since != 3e9 {
		t.Errorf("kept are %v", ports)
	}
}

// TestConnectedTwiceAfterRestart: only one end of a link was saved, and a probe
// finds the link. When its switch connects once more, the link stays.
func TestConnectedTwiceAfterRestart(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	w.switches(1, 1, 2)
	w.run(5 * time.Second)
	w = w.restart(time.Second)
	delete(w.topo.past, at(2, 1))
	w.switches(1, 1, 2)
	w.run(5 * time.Second)
	w.want(at(1, 1), at(2, 1), "up")
	w.linkEvents()
	w.switches(1, 1)
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q when the switch connects once more", log)
	}
}

// settledEvents returns the switches that were reported to have settled so far, or to be
// gone, with how many events of roles and links came before, and forgets all.
func (w *world) settledEvents() (list []string) {
	w.take()
	for i, e := range w.events {
		if e.settled != nil {
			list = append(list, fmt.Sprintf("%s gone=%v after %d", e.settled.Dpid[15:], e.settled.Gone, i))
		}
	}
	w.events = nil
	return list
}

// TestSettled: a switch has settled when the role of each port that is up is known: at once
// after a short restart, else when its edge ports are found, and without a neighbour that
// does not return. Then it is said once.
func TestSettled(t *testing.T) {
	w := newWorld(t, nil)
	w.cable(at(1, 1), at(2, 1))
	want := func(when string, want ...string) {
		t.Helper()
		if got := w.settledEvents(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	w.switches(2, 1, 2)
	want("connected")
	w.run(500 * time.Millisecond)
	want("edge ports not found yet")
	w.run(5 * time.Second)
	if got := w.settledEvents(); len(got) != 2 {
		t.Errorf("found: %q", got)
	}
	w.run(time.Minute)
	want("settled already")
	w = w.restart(time.Second)
	w.switches(2, 1, 2)
	want("restarted", "1 gone=false after 2", "2 gone=false after 7")
	w = w.restart(20 * time.Second)
	w.switches(2, 1)
	w.run(10 * time.Second)
	want("restarted late, and the neighbour has not come")
	w.run(time.Duration(doubtFor))
	if got := w.settledEvents(); len(got) != 1 {
		t.Errorf("the neighbour does not come: %q", got)
	}
	w.topo.disconnect(w.now, 1)
	if got := w.settledEvents(); len(got) != 1 || !strings.Contains(got[0], "1 gone=true") {
		t.Errorf("disconnected: %q", got)
	}
}
