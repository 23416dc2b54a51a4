package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/nib"
)

// TestStandbyTakesOver: of a service with a standby both processes run it, and
// only the one that has called Ready is there for others. When the other does, it
// counts from then on, though the former goes on; and when the former's process
// freezes and wakes up, it stays so.
func TestStandbyTakesOver(t *testing.T) {
	specs := []weft.Spec{
		{Name: "hosts", Serves: weft.Methods(api.FindHost), Publishes: weft.Subjects(api.HostChangedEvent), Standby: true, Scale: weft.PerPartition},
		{Name: "gateway", Calls: weft.Methods(api.FindHost), Subscribes: weft.Subjects(api.HostChangedEvent), Scale: weft.Any},
	}
	may := map[string]chan struct{}{"a": make(chan struct{}), "a-standby": make(chan struct{})}
	var heard atomic.Value
	heard.Store("")
	c := newCluster(t, specs, map[string]func(*actor){
		"hosts": func(p *actor) {
			weft.Handle(p.env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) {
				return &api.Host{Mac: p.process}, nil
			})
			select {
			case <-may[p.process]:
			case <-p.ctx.Done():
			}
		},
		"gateway": func(p *actor) {
			weft.On(p.env, api.HostChangedEvent, func(_ context.Context, e *api.HostChanged) { heard.Store(e.Host.GetMac()) })
		},
	})
	c.apply("{name: s, events: grpc, workers: {a: {services: [hosts], standby: 1}, b: {services: [gateway]}}}")
	c.reconcile()
	c.eventually("both stand by", func() bool {
		return c.states("a")["hosts"] == members.StateStandby && c.states("a-standby")["hosts"] == members.StateStandby
	})
	asked := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
		defer cancel()
		h, err := weft.Call(ctx, c.run("gateway").env, api.FindHost, &api.FindHostRequest{Address: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return h.GetMac()
	}
	roles := func() (list []string) {
		r, err := c.process("b").node.ListWorkers(t.Context(), &api.ListWorkersRequest{})
		if api.KindOf(err) == codes.Unavailable {
			return nil // it has not seen the plan yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Workers {
			for _, s := range w.Services {
				if s.Name == "hosts" {
					list = append(list, w.Process+" "+s.Role)
				}
			}
		}
		return list
	}
	is := func(want ...string) func() bool { return func() bool { return slices.Equal(roles(), want) } }
	of := func(process string) *actor {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, a := range c.live["hosts"] {
			if a.process == process {
				return a
			}
		}
		t.Fatalf("no hosts in %s", process)
		return nil
	}
	tell := func(process, mac string) {
		weft.Publish(of(process).env, api.HostChangedEvent, &api.HostChanged{Host: &api.Host{Mac: mac}})
	}

	close(may["a"])
	c.eventually("a is master", is("a master", "a-standby standby"))
	if got := asked(); got != "a" {
		t.Errorf("%s answers, which stands by", got)
	}
	tell("a", "02:00:00:00:00:01")
	c.eventually("its event is heard", func() bool { return heard.Load() == "02:00:00:00:00:01" })

	close(may["a-standby"])
	c.eventually("a-standby is master", is("a superseded", "a-standby master"))
	if got := asked(); got != "a-standby" {
		t.Errorf("%s answers, whose place has been taken", got)
	}
	tell("a", "02:00:00:00:00:02")
	tell("a-standby", "02:00:00:00:00:03")
	c.eventually("the new one's event is heard", func() bool { return heard.Load() == "02:00:00:00:00:03" })
	time.Sleep(50 * time.Millisecond)
	if got := heard.Load(); got != "02:00:00:00:00:03" {
		t.Errorf("an event of the former one is heard: %v", got)
	}
	c.process("a").gate.freeze()
	if got := asked(); got != "a-standby" {
		t.Errorf("%s answers", got)
	}
	c.process("a").gate.thaw()
}

// TestStandbyIsNoRun: a standby that starts later than the active run says nothing
// about the network, so that what the active one says of a switch counts still: that
// it is gone and, when it has come back, that it is connected. When the standby has
// become active, what it says counts.
func TestStandbyIsNoRun(t *testing.T) {
	specs := []weft.Spec{
		{Name: "southbound", Publishes: weft.Subjects(api.SwitchChangedEvent), Standby: true, Scale: weft.PerPartition},
		{Name: "qos", Reads: nib.Switches, Scale: weft.PerPartition},
	}
	may := map[string]chan struct{}{"a": make(chan struct{}), "a-standby": make(chan struct{})}
	c := newCluster(t, specs, map[string]func(*actor){
		"southbound": func(p *actor) {
			select {
			case <-may[p.process]:
			case <-p.ctx.Done():
			}
		},
		"qos": func(*actor) {},
	})
	c.apply("{name: s, events: grpc, workers: {a: {services: [southbound], standby: 1}, b: {services: [qos]}}}")
	close(may["a"])
	c.start("a")
	c.start("b")
	state := func(process, want string) {
		c.eventually(process+" is "+want, func() bool { return c.states(process)["southbound"] == want })
	}
	state("a", members.StateReady)
	reader := c.run("qos")
	change := func(by *actor, connected bool) {
		switchIs(by, "0000000000000004", connected)
		c.eventually(fmt.Sprintf("%s is believed: connected %v", by.process, connected), func() bool { return (weft.NIB(reader.env).Connected(4) != nil) == connected })
	}
	first := c.run("southbound")
	change(first, true)
	c.start("a-standby")
	state("a-standby", members.StateStandby)
	for range 20 {
		change(first, false)
		change(first, true)
	}
	close(may["a-standby"])
	state("a-standby", members.StateReady)
	second := c.runs("southbound", 2)[1]
	for range 20 {
		change(second, true)
		change(second, false)
	}
}

// TestRunBeginsOnceSetUp: a service that has waited for its turn since before another run
// of it worked replaces that one when it begins to work itself: what it says of a switch
// counts, though it was started first, and also what it said while it waited.
func TestRunBeginsOnceSetUp(t *testing.T) {
	specs := []weft.Spec{
		{Name: "southbound", Publishes: weft.Subjects(api.SwitchChangedEvent), Standby: true, Scale: weft.PerPartition},
		{Name: "qos", Reads: nib.Switches, Scale: weft.PerPartition},
		{Name: "gateway", Subscribes: weft.Subjects(api.SwitchChangedEvent), Scale: weft.Any},
	}
	may := map[string]chan struct{}{"a": make(chan struct{}), "a-standby": make(chan struct{})}
	var heard atomic.Value // the address by which the switch was last heard to be connected
	heard.Store("")
	c := newCluster(t, specs, map[string]func(*actor){
		"southbound": func(p *actor) {
			if p.process == "a" {
				switchIs(p, "0000000000000005", true)
			}
			select {
			case <-may[p.process]:
			case <-p.ctx.Done():
			}
		},
		"qos": func(*actor) {},
		"gateway": func(p *actor) {
			weft.On(p.env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { heard.Store(e.Switch.Address) })
		},
	})
	alone := "{name: s, events: grpc, workers: {a: {services: [southbound]}, b: {services: [qos, gateway]}}}"
	c.apply(alone)
	c.start("a")
	c.start("b")
	state := func(process, want string) {
		c.eventually(process+" is "+want, func() bool { return c.states(process)["southbound"] == want })
	}
	state("a", members.StateStarting)
	c.eventually("qos works", func() bool { return c.states("b")["qos"] == members.StateReady })
	reader := c.run("qos")
	connected := func(by *actor, address string) {
		weft.Publish(by.env, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: "0000000000000004", Connected: true, Address: address}})
		c.eventually(address+" is heard of", func() bool { return heard.Load() == address })
		c.eventually(address+" is believed", func() bool {
			s := weft.NIB(reader.env).Connected(4)
			return s != nil && s.Address == address
		})
	}
	c.apply("{name: s, events: grpc, workers: {a: {services: [southbound], standby: 1}, b: {services: [qos, gateway]}}}")
	other := c.start("a-standby")
	close(may["a-standby"])
	state("a-standby", members.StateReady)
	for _, run := range c.runs("southbound", 2) {
		if run.process == "a-standby" {
			connected(run, "192.0.2.2:1")
		}
	}
	c.apply(alone)
	if err := c.leave(other); err != nil {
		t.Fatal(err)
	}
	close(may["a"])
	state("a", members.StateReady)
	connected(c.run("southbound"), "192.0.2.1:1")
	c.eventually("what it said before it began is believed", func() bool { return weft.NIB(reader.env).Connected(5) != nil })
}

// states returns those of the services of a process.
func (c *cluster) states(process string) map[string]string {
	entries, err := c.directory().Entries(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	m := map[string]string{}
	for _, e := range entries {
		if e.Process == process {
			for _, s := range e.Services {
				m[s.Name] = s.State
			}
		}
	}
	return m
}
