package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

// asOne is one network of two partitions, each of which has a forwarding of its
// own that works as one with the other: east's beside its southbound, west's in
// a process of its own.
type asOne struct {
	*cluster
	forwarding, firewall *heard // what they have heard, by process

	mu      sync.Mutex
	numbers map[string][2]int
	decided map[string]int // packets, by process of the forwarding
}

const asOnePlan = `{name: one, events: grpc, partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}, workers: {
	e: {services: [southbound, firewall, forwarding], partition: east}, w: {services: [southbound], partition: west},
	wp: {services: [firewall], partition: west}, wf: {services: [forwarding], partition: west}, a: {services: [discovery]}, g: {services: [gateway]}}}`

// apartPlan is the plan with the partitions as networks of their own.
var apartPlan = strings.NewReplacer("{services: [southbound], partition", "{services: [southbound, discovery], partition", "forwarding], partition: east", "forwarding, discovery], partition: east",
	", a: {services: [discovery]}, g: {services: [gateway]}", "").Replace(asOnePlan)

const (
	switch1  = "0000000000000001"
	switch20 = "0000000000000020"
)

func newAsOne(t *testing.T) *asOne {
	x := &asOne{forwarding: newHeard(), firewall: newHeard(), numbers: map[string][2]int{}, decided: map[string]int{}}
	x.cluster = newCluster(t, []weft.Spec{
		{Name: "southbound", Pipeline: true, Scale: weft.PerPartition, Publishes: weft.Subjects(api.SwitchChangedEvent), Calls: weft.Methods(api.ListRoutes)},
		{Name: "discovery", Scale: weft.Single},
		{Name: "firewall", Stage: true, Scale: weft.PerPartition, Subscribes: weft.Subjects(api.SwitchChangedEvent)},
		{Name: "forwarding", Stage: true, Scale: weft.Any, Serves: weft.Methods(api.ListRoutes), Publishes: weft.Subjects(api.RoutesSharedEvent),
			Subscribes: weft.Subjects(api.SwitchChangedEvent, api.RoutesSharedEvent)},
		{Name: "gateway", Scale: weft.Any, Calls: weft.Methods(api.ListRoutes)},
	}, map[string]func(*actor){"forwarding": x.forward, "firewall": func(p *actor) {
		passing(p)
		weft.On(p.env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { x.firewall.note(p, switchText(e)) })
	}})
	x.withdrawAfter = 200 * time.Millisecond
	x.apply(asOnePlan)
	x.startAll()
	return x
}

func switchText(e *api.SwitchChanged) string {
	return strings.TrimLeft(e.GetSwitch().GetDpid(), "0") + map[bool]string{true: " up", false: " down"}[e.GetSwitch().GetConnected()]
}

// forward is a run of forwarding; what it hears is taken down from its beginning.
func (x *asOne) forward(p *actor) {
	x.forwarding.mu.Lock()
	delete(x.forwarding.list, p.process)
	x.forwarding.mu.Unlock()
	weft.Stage(p.env, func(flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.decided[p.process]++
			return flow.Done
		}
	})
	weft.On(p.env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { x.forwarding.note(p, switchText(e)) })
	weft.On(p.env, api.RoutesSharedEvent, func(_ context.Context, e *api.RoutesShared) {
		x.forwarding.note(p, fmt.Sprint("route ", e.GetRoutes()[0].GetSrc()))
	})
	weft.Handle(p.env, api.ListRoutes, func(context.Context, *api.ListRoutesRequest) (*api.ListRoutesResponse, error) {
		return &api.ListRoutesResponse{Routes: []*api.Route{{Src: p.process}}}, nil
	})
	note := func(index, count int) { x.mu.Lock(); defer x.mu.Unlock(); x.numbers[p.process] = [2]int{index, count} }
	note(weft.Replicas(p.env))
	weft.OnReplicas(p.env, note)
}

// numbered waits until the instances of these processes have their numbers.
func (x *asOne) numbered(processes ...string) {
	x.t.Helper()
	x.eventually(fmt.Sprint("numbers of ", processes), func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for i, name := range processes {
			if x.numbers[name] != [2]int{i, len(processes)} {
				return false
			}
		}
		return true
	})
}

// hears waits until somebody has heard these, in any order, and nothing else.
func (x *asOne) hears(h *heard, process string, want ...string) {
	x.t.Helper()
	same := func() bool {
		got := h.of(process)
		for _, w := range want {
			if strings.Count(strings.Join(got, ", "), w) != strings.Count(strings.Join(want, ", "), w) {
				return false
			}
		}
		return len(got) == len(want)
	}
	for end := time.Now().Add(testwait.Limit); !same() && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
	}
	time.Sleep(20 * time.Millisecond) // for what is too much
	if !same() {
		x.t.Errorf("%s has heard %q, want %q", process, h.of(process), want)
	}
}

// both returns the southbounds, east's first.
func (x *asOne) both() (east, west *actor) {
	list := x.runs("southbound", 2)
	return list[0], list[1]
}

// TestAsOneHearsAll: the instances of a service that works as one hear each
// other and what happens in all partitions, when it happens, when they start
// later, and when it is withdrawn; other services hear of their own partition.
func TestAsOneHearsAll(t *testing.T) {
	x := newAsOne(t)
	x.numbered("e", "wf")
	east, west := x.both()
	switchIs(east, switch1, true)
	switchIs(west, switch20, true)
	for _, process := range []string{"e", "wf"} {
		x.hears(x.forwarding, process, "1 up", "20 up")
	}
	x.hears(x.firewall, "e", "1 up")
	x.hears(x.firewall, "wp", "20 up")
	for i, p := range x.runs("forwarding", 2) {
		weft.Publish(p.env, api.RoutesSharedEvent, &api.RoutesShared{Routes: []*api.RouteRecord{{Src: uint64(i + 7)}}})
	}
	x.hears(x.forwarding, "e", "1 up", "20 up", "route 8")
	x.hears(x.forwarding, "wf", "1 up", "20 up", "route 7")

	g := x.run("gateway").env
	if r, err := weft.Call(t.Context(), g, api.ListRoutes, &api.ListRoutesRequest{}); err != nil || len(r.Routes) != 1 {
		t.Errorf("routes: %v %v; want those of one instance", r, err)
	}
	x.kill(x.process("wf"))
	x.numbered("e")
	if r, err := weft.Call(t.Context(), g, api.ListRoutes, &api.ListRoutesRequest{}); err != nil || len(r.Routes) != 1 || r.Routes[0].Src != "e" {
		t.Errorf("routes without west's: %v %v", r, err)
	}
	x.forwarding.forget()
	x.firewall.forget()
	x.start("wf")
	x.settled()
	x.numbered("e", "wf")
	x.hears(x.forwarding, "wf", "1 up", "20 up")
	x.hears(x.firewall, "wp")

	x.kill(x.process("w")) // and its switch does not come back
	x.start("w")
	for _, process := range []string{"e", "wf"} {
		x.eventually("a switch of west is withdrawn in "+process, func() bool { return strings.Contains(strings.Join(x.forwarding.of(process), ", "), "20 down") })
	}
	x.hears(x.forwarding, "e", "20 down")
	x.hears(x.firewall, "e")
	x.hears(x.firewall, "wp", "20 down")
}

// TestAsOneHearsOfMoves: a switch that a plan moves to another partition is not
// gone for those who work for both, wherever they are; it is for the others.
func TestAsOneHearsOfMoves(t *testing.T) {
	for _, c := range []struct{ name, partitions, dpid, gone string }{
		{"to west", `east: {switches: ["2-8"]}, west: {switches: [rest]}`, switch1, "e"},
		{"to east", `east: {switches: ["1-8", "20"]}, west: {switches: [rest]}`, switch20, "wp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newAsOne(t)
			old, next := x.both()
			if c.gone == "wp" {
				old, next = next, old
			}
			switchIs(old, c.dpid, true)
			text := strings.TrimLeft(c.dpid, "0")
			x.hears(x.forwarding, "e", text+" up")
			x.hears(x.forwarding, "wf", text+" up")
			x.apply(strings.Replace(asOnePlan, `east: {switches: ["1-8"]}, west: {switches: [rest]}`, c.partitions, 1))
			x.settled()
			switchIs(next, c.dpid, true)
			for _, process := range []string{"e", "wf"} {
				x.hears(x.forwarding, process, text+" up", text+" up")
			}
			switchIs(old, c.dpid, false)
			switchIs(old, "00000000000000ff", true) // comes behind it
			x.hears(x.firewall, c.gone, text+" up", text+" down", "ff up")
			for _, process := range []string{"e", "wf"} {
				x.hears(x.forwarding, process, text+" up", text+" up", "ff up")
			}
		})
	}
}

// decisions returns about how many packets a process has decided.
func (x *asOne) decisions(at string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.decided[at]
}

// packet has a switch send a packet.
func (x *asOne) packet(p *actor, sw flow.DPID) {
	pipe := weft.OpenPipeline(p.env, sw, func(*flow.Decision) {})
	defer pipe.Close()
	var d flow.Decision
	pipe.Packet(&flow.PacketIn{Switch: sw, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 60, Data: make([]byte, 60)}, &d)
	pipe.Flush()
}

// TestAsOneDecides: a packet-in is for the instance of its switch's partition,
// and while that is away, for another. An instance that is late with its answer
// counts as away for that moment, so a packet may be decided about elsewhere, or
// twice; it may not go on being so.
func TestAsOneDecides(t *testing.T) {
	x := newAsOne(t)
	east, west := x.both()
	packet := func(p *actor, sw flow.DPID, at, other string) {
		t.Helper()
		x.eventually(fmt.Sprintf("%s alone decides about a packet of %v", at, sw), func() bool {
			here, there := x.decisions(at), x.decisions(other)
			x.packet(p, sw)
			x.eventually("a decision", func() bool { return x.decisions(at) > here || x.decisions(other) > there })
			return x.decisions(other) == there
		})
	}
	for range 3 {
		packet(east, 1, "e", "wf")
		packet(west, 0x20, "wf", "e")
	}
	x.process("wf").gate.kill() // and its entry is there still
	packet(west, 0x20, "e", "wf")
	x.kill(x.process("wf"))
	packet(west, 0x20, "e", "wf")
	x.start("wf")
	x.settled()
	packet(west, 0x20, "wf", "e") // when it is known that it is back
	packet(east, 1, "e", "wf")
}

// TestAsOneOfPlan: partitions that become networks of their own have services
// that do not hear each other any more, and know nothing of each other; and the
// other way round.
func TestAsOneOfPlan(t *testing.T) {
	x := newAsOne(t)
	tell := func() {
		east, west := x.both()
		switchIs(east, switch1, true)
		switchIs(west, switch20, true)
	}
	tell()
	x.hears(x.forwarding, "e", "1 up", "20 up")
	x.hears(x.forwarding, "wf", "1 up", "20 up") // before it is forgotten
	x.forwarding.forget()
	x.apply(apartPlan)
	x.settled()
	x.hears(x.forwarding, "e", "1 up") // it was started again
	x.hears(x.forwarding, "wf", "20 up")
	x.numbered("e")
	x.numbered("wf")
	x.forwarding.forget()
	x.apply(asOnePlan)
	x.reconcile()
	x.settled()
	x.numbered("e", "wf")
	x.hears(x.forwarding, "e", "1 up", "20 up")
	x.hears(x.forwarding, "wf", "1 up", "20 up")
}
