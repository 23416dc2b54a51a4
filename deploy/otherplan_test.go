package deploy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
)

// TestOfAnotherPlan: a process that has not learnt of a plan yet goes on by the
// one before. What it tells, asks and sends of that is refused by those who have
// the new one, and reaches whom it is for when it has the new one, too.
func TestOfAnotherPlan(t *testing.T) {
	x := newAsOne(t)
	east, west := x.both()
	switchIs(east, switch1, true)
	switchIs(west, switch20, true)
	x.hears(x.forwarding, "e", "1 up", "20 up")
	w := x.process("w")
	learn := make(chan struct{})
	w.gate.plans.Store(&learn)
	x.kill(x.process("wf")) // so that w's plan has it turn to e
	next := x.apply(apartPlan)
	x.eventually("e and wp, by which the packet goes, have carried the plan out", func() bool {
		entries, err := x.directory().Entries(t.Context())
		done := 0
		for _, e := range entries {
			if (e.Process == "e" || e.Process == "wp") && e.Generation == next.Generation {
				done++
			}
		}
		return err == nil && done == 2
	})
	decided := x.decisions("e")
	switchIs(west, "0000000000000021", true)
	x.packet(west, 0x20)
	answered := make(chan string, 1)
	go func() {
		r, err := weft.Call(t.Context(), west.env, api.ListRoutes, &api.ListRoutesRequest{})
		answered <- fmt.Sprint(r.GetRoutes(), err)
	}()
	x.eventually("the packet has been refused, and sent again", func() bool {
		return w.metric(t, "weft_deploy_packets_retried_total", "") > 0
	})
	x.start("wf")
	close(learn)
	x.settled()
	x.hears(x.forwarding, "e", "1 up")
	x.hears(x.forwarding, "wf", "20 up", "21 up")
	if answer := <-answered; !strings.Contains(answer, "wf") {
		t.Errorf("west's call is answered with %s; want wf", answer)
	}
	x.eventually("wf decides", func() bool { return x.decisions("wf") > 0 })
	if n := x.decisions("e"); n != decided {
		t.Errorf("e has decided about %d packets of another network", n-decided)
	}
}

// TestPlansThatDoNotChangeWhoWorksTogether: a process that does not learn of
// another configuration or transport goes on working with those that have.
func TestPlansThatDoNotChangeWhoWorksTogether(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe})
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "a"))
	c.startAll()
	sb := c.run("southbound")
	never := make(chan struct{})
	c.process("a").gate.plans.Store(&never)
	c.apply(fmt.Sprintf(tellingPlan, "ws", "b", "a"))
	c.eventually("hosts has been started again", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.starts["hosts"] == 2 && len(c.live["hosts"]) == 1
	})
	switchIs(sb, "1", true)
	wantHeard(c, h, "b", "switch 1 up")
	close(never)
}

// TestCallIsDirectedAnew: a call that waits for a partition goes to another when a
// plan moves its switch there.
func TestCallIsDirectedAnew(t *testing.T) {
	h := newHalves(t, "grpc")
	h.startAll()
	h.kill(h.process("w"))
	g := h.run("gateway").env
	answered := make(chan error, 1)
	go func() {
		_, err := weft.Call(t.Context(), g, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "20"})
		answered <- err
	}()
	time.Sleep(50 * time.Millisecond) // so that it waits already, most times
	h.apply(strings.Replace(fmt.Sprintf(halvesPlan, "grpc"), `"1-8"`, `"1-8", "20"`, 1))
	if err := <-answered; err == nil || err.Error() != `e has no "20"` { // its switches are fixed
		t.Errorf("%v; want e's answer", err)
	}
}

// TestLateFacts: what an earlier run of a publisher has told, and what arrives
// when a later one has told all, is taken back.
func TestLateFacts(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe})
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "a"))
	c.withdrawAfter = 300 * time.Millisecond
	c.startAll()
	sb := c.run("southbound")
	switchIs(sb, "1", true)
	wantHeard(c, h, "b", "switch 1 up")
	c.process("b").gate.deaf.Store(true)
	switchIs(sb, "2", true)
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "b")) // southbound starts again
	c.eventually("southbound has started again", func() bool { next := c.run("southbound"); return next != sb })
	c.settled()
	switchIs(c.run("southbound"), "3", true)
	c.eventually("switch 1 is withdrawn", func() bool {
		return strings.Contains(strings.Join(h.of("b"), ", "), "switch 1 down") && strings.Contains(strings.Join(h.of("c"), ", "), "switch 2 down")
	})
	c.process("b").gate.deaf.Store(false)
	c.eventually("switch 2 is told of, late, and withdrawn", func() bool {
		got := strings.Join(h.of("b"), ", ")
		return strings.Contains(got, "switch 2 up") && strings.Contains(got, "switch 2 down") && strings.Contains(got, "switch 3 up")
	})
	for _, e := range h.of("b") {
		if e == "switch 3 down" {
			t.Error("switch 3, which is there, is withdrawn")
		}
	}
}

// TestEventsQueuedBeforePartitions: what a run that worked for all has queued is
// outdated once the partitions have their own runs: it must not replace what those
// have published, only to be withdrawn as that of an earlier run.
func TestEventsQueuedBeforePartitions(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe})
	c.withdrawAfter = 300 * time.Millisecond
	c.apply(`{name: a, events: grpc, workers: {e: {services: [southbound]}, b: {services: [hosts]}, c: {services: [gateway]}}}`)
	c.startAll()
	sb := c.run("southbound")
	c.process("b").gate.deaf.Store(true)
	switchIs(sb, "1", true)
	c.apply(`{name: a, events: grpc, partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}, workers: {
		e: {services: [southbound], partition: east}, w: {services: [southbound], partition: west}, b: {services: [hosts]}, c: {services: [gateway]}}}`)
	c.start("w")
	c.eventually("southbound runs for each partition", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.starts["southbound"] == 3 && len(c.live["southbound"]) == 2
	})
	c.process("b").gate.deaf.Store(false)
	c.settled()
	for _, next := range c.runs("southbound", 2) {
		if next.process == "e" {
			switchIs(next, "2", true) // behind what was queued
		}
	}
	wantHeard(c, h, "b", "switch 2 up")
}

// TestRequestsNameTheRun: a request for a run of a service that has ended is not
// for the next one.
func TestRequestsNameTheRun(t *testing.T) {
	h := newHalves(t, "grpc")
	h.startAll()
	current, _, err := h.directory().Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := h.directory().Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var epoch uint64
	for _, e := range entries {
		for _, s := range e.Services {
			if e.Process == "e" && s.Name == "southbound" {
				epoch = s.Epoch
			}
		}
	}
	request, err := weft.Encode(nil, &api.ReadFlowsRequest{Dpid: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"southbound.ReadFlows": true, // of an earlier build
		fmt.Sprintf("southbound.ReadFlows@%d.%d.", current.Wiring, epoch):       true,
		fmt.Sprintf("southbound.ReadFlows@%d.0.west", current.Wiring):           true,
		fmt.Sprintf("southbound.ReadFlows@%d.%d.west", current.Wiring, epoch-1): false,
		fmt.Sprintf("southbound.ReadFlows@%d.%d.west", current.Wiring+1, epoch): false,
		fmt.Sprintf("southbound.ReadFlows@%d.%d.west", current.Wiring-1, epoch): false,
		fmt.Sprintf("%s@%d.0.", members.PingMethod, current.Wiring):             true,
	} {
		answer, err := h.process("e").node.Call(t.Context(), name, request)
		if err != nil || name[:6] == "southb" && (answer[0] == 0) != want {
			t.Errorf("%s: %q %v, want an answer: %v", name, answer, err, want)
		}
	}
	for _, name := range []string{"southbound.ReadFlows@", "southbound.ReadFlows@1", "southbound.ReadFlows@1.2", "southbound.ReadFlows@x.1.", "southbound.ReadFlows@1.-1."} {
		if _, err := h.process("e").node.Call(t.Context(), name, request); err == nil {
			t.Errorf("%s is answered", name)
		}
	}
}
