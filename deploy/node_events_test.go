package deploy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/testwait"
)

// heard is what subscribers have been told, by process, in order.
type heard struct {
	mu   sync.Mutex
	list map[string][]string
	slow atomic.Pointer[chan struct{}] // handlers wait for it
}

func newHeard() *heard { return &heard{list: map[string][]string{}} }

func (h *heard) note(p *actor, what string) {
	if wait := h.slow.Load(); wait != nil {
		select {
		case <-*wait:
		case <-p.ctx.Done():
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list[p.process] = append(h.list[p.process], what)
}

func (h *heard) of(process string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list[process])
}

func (h *heard) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.list)
}

// subscribe takes down all events of the southbound.
func (h *heard) subscribe(p *actor) {
	weft.On(p.env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) {
		state := "down"
		if e.GetSwitch().GetConnected() {
			state = "up"
		}
		h.note(p, "switch "+e.GetSwitch().GetDpid()+" "+state)
	})
	weft.On(p.env, api.PortChangedEvent, func(_ context.Context, e *api.PortChanged) {
		h.note(p, fmt.Sprintf("port %s/%d", e.GetPort().GetDpid(), e.GetPort().GetPort()))
	})
	weft.On(p.env, api.SwitchErrorEvent, func(_ context.Context, e *api.SwitchError) { h.note(p, "error "+e.GetDpid()) })
}

// telling declares southbound, which publishes, and hosts and gateway, which
// listen.
func telling() []weft.Spec {
	all := weft.Subjects(api.SwitchChangedEvent, api.PortChangedEvent, api.SwitchErrorEvent)
	return []weft.Spec{
		{Name: "southbound", Publishes: all, Scale: weft.PerPartition, Config: &named{Name: "a"}},
		{Name: "hosts", Subscribes: all, Scale: weft.PerPartition, Config: &named{Name: "a"}},
		{Name: "gateway", Subscribes: all, Scale: weft.Any},
	}
}

func switchIs(p *actor, dpid string, up bool) {
	weft.Publish(p.env, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: up}})
}

func portIs(p *actor, dpid string, port uint32) {
	weft.Publish(p.env, api.PortChangedEvent, &api.PortChanged{Port: &api.Port{Dpid: dpid, Port: port}})
}

func moment(p *actor, n int) {
	weft.Publish(p.env, api.SwitchErrorEvent, &api.SwitchError{Dpid: fmt.Sprint(n)})
}

// wantHeard waits until a process has heard exactly this.
func wantHeard(c *cluster, h *heard, process string, want ...string) {
	c.t.Helper()
	var got []string
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if got = h.of(process); len(got) >= len(want) {
			break
		}
	}
	time.Sleep(20 * time.Millisecond) // for what is too much
	if got = h.of(process); !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		c.t.Errorf("%s has heard %d events, want %d; from number %d on %q, want %q", process, len(got), len(want), at, got[at:min(at+10, len(got))], want[at:min(at+10, len(want))])
	}
}

const tellingPlan = "{name: a, events: %s, workers: {a: {services: [southbound]}, b: {services: [hosts]}, c: {services: [gateway]}}, config: {hosts: {name: %s}, southbound: {name: %s}}}"

// TestEventsArriveOnceAndInOrder loses answers at random, so that batches are
// sent again, while transports change.
func TestEventsArriveOnceAndInOrder(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe})
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "a"))
	c.startAll()
	var lost atomic.Int64
	seed := rand.New(rand.NewPCG(5, 6))
	var mu sync.Mutex
	cut := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if seed.IntN(4) == 0 {
			lost.Add(1)
			return true
		}
		return false
	}
	c.process("a").gate.cut.Store(&cut)
	const total = 3000
	want := make([]string, total)
	sb := c.run("southbound")
	for i := range total {
		moment(sb, i)
		want[i] = fmt.Sprintf("error %d", i)
		if i%100 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
		if i%700 == 699 {
			c.apply(fmt.Sprintf(tellingPlan, []string{"ws", "rest", "shm", "grpc"}[i/700%4], "a", "a"))
		}
	}
	wantHeard(c, h, "b", want...)
	wantHeard(c, h, "c", want...)
	if lost.Load() == 0 {
		t.Error("no answer was lost: the test shows nothing")
	}
}

func TestStateIsToldToTheLateAndTheRestarted(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe})
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "a"))
	c.start("a")
	sb := c.run("southbound")
	c.eventually("southbound publishes", func() bool {
		entries, _ := c.directory().Entries(t.Context())
		return len(entries) == 1 && len(entries[0].Services) == 1 && entries[0].Services[0].State == members.StateReady
	})
	for i := 5; i > 0; i-- {
		switchIs(sb, fmt.Sprint(i), true)
		portIs(sb, fmt.Sprint(i), 1)
	}
	switchIs(sb, "3", false) // is no more, and its ports neither
	switchIs(sb, "5", true)  // anew: its ports are unknown
	moment(sb, 1)            // nobody hears it
	portIs(sb, "5", 2)
	want := []string{"switch 4 up", "switch 2 up", "switch 1 up", "switch 5 up", "port 4/1", "port 2/1", "port 1/1", "port 5/2"}
	c.start("b")
	c.start("c")
	c.settled()
	wantHeard(c, h, "b", want...)
	wantHeard(c, h, "c", want...)
	h.forget()
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "b", "a")) // hosts starts again
	c.settled()
	wantHeard(c, h, "b", want...)
	wantHeard(c, h, "c")
	c.kill(c.process("c")) // and a process
	c.start("c")
	c.settled()
	wantHeard(c, h, "c", want...)
	moment(sb, 2)
	wantHeard(c, h, "c", append(want, "error 2")...)
}

func TestStateThatARestartedPublisherDoesNotKnowIsWithdrawn(t *testing.T) {
	h := newHeard()
	again := false
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe, "southbound": func(p *actor) {
		if again {
			switchIs(p, "2", true) // however long it takes until somebody looks, it is in time
		}
		again = true
	}})
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "a"))
	c.withdrawAfter = 300 * time.Millisecond
	c.startAll()
	sb := c.run("southbound")
	switchIs(sb, "1", true)
	switchIs(sb, "2", true)
	wantHeard(c, h, "b", "switch 1 up", "switch 2 up")
	c.apply(fmt.Sprintf(tellingPlan, "grpc", "a", "b")) // southbound starts again
	c.eventually("southbound has started again", func() bool { next := c.run("southbound"); return next != sb })
	c.eventually("switch 1 is withdrawn", func() bool { return len(h.of("b")) == 4 && len(h.of("c")) == 4 })
	wantHeard(c, h, "b", "switch 1 up", "switch 2 up", "switch 2 up", "switch 1 down")
	wantHeard(c, h, "c", "switch 1 up", "switch 2 up", "switch 2 up", "switch 1 down")
}

func TestPartitionsDoNotHearEachOther(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe, "gateway": h.subscribe})
	c.apply(`{name: a, events: grpc, partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}, workers: {
		e: {services: [southbound], partition: east}, eh: {services: [hosts], partition: east},
		w: {services: [southbound], partition: west}, wh: {services: [hosts], partition: west}, g: {services: [gateway]}}}`)
	c.withdrawAfter = 200 * time.Millisecond
	c.startAll()
	for _, sb := range c.runs("southbound", 2) {
		switchIs(sb, sb.process, true)
	}
	wantHeard(c, h, "eh", "switch e up")
	wantHeard(c, h, "wh", "switch w up")
	time.Sleep(400 * time.Millisecond) // nothing is withdrawn
	c.eventually("the gateway hears both", func() bool {
		got := strings.Join(h.of("g"), ", ")
		return got == "switch e up, switch w up" || got == "switch w up, switch e up"
	})
	wantHeard(c, h, "eh", "switch e up")
}

// TestQueueThatOverflows has a process that takes nothing while more is told
// than is kept for it; afterwards it knows the state.
func TestQueueThatOverflows(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe})
	c.apply("{name: a, events: grpc, workers: {a: {services: [southbound]}, b: {services: [hosts]}}}")
	c.startAll()
	sb := c.run("southbound")
	switchIs(sb, "1", true)
	switchIs(sb, "2", true)
	wantHeard(c, h, "b", "switch 1 up", "switch 2 up")
	c.process("b").gate.freeze()
	for i := range 1<<17 + 1000 {
		moment(sb, i)
	}
	switchIs(sb, "2", false)
	switchIs(sb, "3", true)
	c.process("b").gate.thaw()
	state := func() map[string]string {
		m := map[string]string{}
		for _, what := range h.of("b") {
			if f := strings.Fields(what); f[0] == "switch" {
				m[f[1]] = f[2]
			}
		}
		return m
	}
	c.eventually("the state is right", func() bool {
		s := state()
		return s["1"] == "up" && s["2"] == "down" && s["3"] == "up"
	})
	moment(sb, -1)
	c.eventually("events go on", func() bool { got := h.of("b"); return got[len(got)-1] == "error -1" })
}

func TestReplicasAreNumbered(t *testing.T) {
	var mu sync.Mutex
	last := map[string][2]int{}
	c := newCluster(t, []weft.Spec{{Name: "idle"}, {Name: "many", Scale: weft.Any}}, map[string]func(*actor){"many": func(p *actor) {
		note := func(index, count int) { mu.Lock(); defer mu.Unlock(); last[p.process] = [2]int{index, count} }
		note(weft.Replicas(p.env))
		weft.OnReplicas(p.env, note)
	}})
	text := "{name: a, events: grpc, workers: {a: {services: [idle]}, m: {services: [many], replicas: %d}}}"
	want := func(names ...string) {
		t.Helper()
		c.eventually(fmt.Sprint("numbers of ", names), func() bool {
			mu.Lock()
			defer mu.Unlock()
			for i, name := range names {
				if last[name] != [2]int{i, len(names)} {
					return false
				}
			}
			return true
		})
	}
	c.apply(fmt.Sprintf(text, 3))
	c.startAll()
	want("m-1", "m-2", "m-3")
	c.kill(c.process("m-2"))
	want("m-1", "m-3")
	c.start("m-2")
	want("m-1", "m-2", "m-3")
	workers, err := c.store.Bucket(t.Context(), "deploy.workers")
	if err != nil {
		t.Fatal(err)
	}
	left, _, err := workers.Get(t.Context(), "m-3")
	if err != nil {
		t.Fatal(err)
	}
	c.apply(fmt.Sprintf(text, 2))
	c.settled()
	want("m-1", "m-2")
	if _, err := workers.Put(t.Context(), "m-3", left); err != nil { // it could not take its entry out when it ended
		t.Fatal(err)
	}
	c.kill(c.process("m-2"))
	want("m-1")
}
