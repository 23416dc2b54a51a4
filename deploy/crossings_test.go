package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/internal/testwait"
)

// crossingsOf returns the crossings that a process lists, by kind and services,
// and how many they are in all.
func crossingsOf(t *testing.T, n *deploy.Node, kind, from, to string) (list []*api.Crossing, total uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	m, err := n.ListCrossings(ctx, &api.ListCrossingsRequest{})
	if err != nil || len(m.Missing) > 0 {
		t.Fatalf("%v, missing %v", err, m.GetMissing())
	}
	for _, x := range m.Crossings {
		if x.Kind == kind && x.From == from && x.To == to {
			list, total = append(list, x), total+x.Total
		}
	}
	return list, total
}

// TestCrossingsOfCalls: calls are counted where they go, and the totals add up
// to what was called.
func TestCrossingsOfCalls(t *testing.T) {
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	c.apply("{name: a, events: grpc, transport: ws, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	c.startAll()
	call := func(n int) {
		for i := range n {
			if err := find(t.Context(), c.run("gateway"), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	call(40)
	list, total := crossingsOf(t, c.process("a").node, "call", "gateway", "hosts")
	if total != 40 || len(list) != 1 {
		t.Fatalf("%v, want 40 calls over ws", list)
	}
	x := list[0]
	if x.FromProcess != "b" || x.ToProcess != "a" || x.Name != "hosts.FindHost" || x.Transport != "ws" || x.P50Us < 5 || x.P99Us < x.P50Us || x.PerS <= 0 || len(x.Latency) == 0 {
		t.Errorf("%v", x)
	}
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts, gateway]}}}")
	c.startAll()
	call(25)
	if list, total = crossingsOf(t, c.process("a").node, "call", "gateway", "hosts"); total != 65 || len(list) != 2 || list[0].Total != 25 || list[0].Transport != "inproc" || list[0].ToProcess != "a" || list[0].P50Us <= 0 {
		t.Errorf("%v, want 25 within the process a and the 40 of before", list)
	}
}

// TestCrossingsOfEvents: an event counts once for each subscriber, with the time
// until it was handled there.
func TestCrossingsOfEvents(t *testing.T) {
	const handling = 3 * time.Millisecond
	c := newCluster(t, telling(), map[string]func(*actor){
		"hosts": func(p *actor) {
			weft.On(p.env, api.SwitchChangedEvent, func(context.Context, *api.SwitchChanged) {})
			weft.On(p.env, api.PortChangedEvent, func(context.Context, *api.PortChanged) {})
			weft.On(p.env, api.SwitchErrorEvent, func(context.Context, *api.SwitchError) { time.Sleep(handling) })
		},
		"gateway": newHeard().subscribe,
	})
	c.apply("{name: a, events: grpc, workers: {a: {services: [southbound, gateway]}, b: {services: [hosts]}}, config: {hosts: {name: a}, southbound: {name: a}}}")
	c.startAll()
	for i := range 30 {
		moment(c.run("southbound"), i)
		time.Sleep(handling + time.Millisecond)
	}
	for _, to := range []string{"hosts", "gateway"} {
		c.eventually("30 events for "+to, func() bool {
			_, total := crossingsOf(t, c.process("b").node, "event", "southbound", to)
			return total == 30
		})
		list, _ := crossingsOf(t, c.process("b").node, "event", "southbound", to)
		x := list[0]
		if len(list) != 1 || x.Name != "southbound.SwitchError" || x.FromProcess != "a" || x.P50Us <= 0 {
			t.Errorf("%v", list)
		}
		if to == "hosts" && (x.ToProcess != "b" || x.Transport != "grpc" || x.P50Us < 2000) || to == "gateway" && (x.ToProcess != "a" || x.Transport != "inproc") {
			t.Errorf("%v", x)
		}
	}
}

// TestCrossingsOfPackets: the packets to a stage are those that the stages before
// have passed on, in one process or over several.
func TestCrossingsOfPackets(t *testing.T) {
	actors := map[string]func(*actor){}
	for i, name := range stageNames {
		actors[name] = marking(i)
	}
	c := newCluster(t, staged(), actors)
	c.apply("{name: a, events: grpc, transport: shm, pipeline: [discovery, hosts, firewall, forwarding], workers: {a: {services: [southbound, discovery]}, b: {services: [hosts, firewall]}, c: {services: [forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 7)
	for range 50 {
		s.send(10)
	}
	c.eventually("every packet is answered", func() bool { return s.answered() >= s.sent })
	want := map[[2]string]struct {
		from, to, transport string
	}{
		{"southbound", "discovery"}: {"a", "a", "inproc"}, {"discovery", "hosts"}: {"a", "b", "shm"},
		{"hosts", "firewall"}: {"b", "b", "inproc"}, {"firewall", "forwarding"}: {"b", "c", "shm"},
	}
	left := make([]uint64, s.sent) // packets that come to a stage
	for i := range left {
		left[i] = uint64(i)
	}
	for stage, pair := range [][2]string{{"southbound", "discovery"}, {"discovery", "hosts"}, {"hosts", "firewall"}, {"firewall", "forwarding"}} {
		var list []*api.Crossing
		var total uint64
		c.eventually(fmt.Sprintf("%d packets from %v", len(left), pair), func() bool {
			list, total = crossingsOf(t, c.process("c").node, "packet", pair[0], pair[1])
			return len(list) == 1 && total == uint64(len(left))
		})
		x, w := list[0], want[pair]
		if x.FromProcess != w.from || x.ToProcess != w.to || x.Transport != w.transport || x.P50Us <= 0 {
			t.Errorf("%v", x)
		}
		left = slices.DeleteFunc(left, func(n uint64) bool { return n%11 == uint64(stage) || n%13 == uint64(stage) })
	}
}
