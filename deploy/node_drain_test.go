package deploy_test

import (
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft"
)

// draining returns services, one of them a stage that Drains. When the first run of that stage
// is stopped, it goes on until ends is closed.
func draining(t *testing.T, stage string, ends chan struct{}) (bases []weft.Spec, setup map[string]func(*actor), first *atomic.Pointer[actor]) {
	bases, setup, first = staged(), stageSetup(), &atomic.Pointer[actor]{}
	mark := setup[stage]
	setup[stage] = func(p *actor) {
		if mark(p); first.CompareAndSwap(nil, p) {
			if err := weft.Ready(p.ctx, p.env); err != nil {
				t.Error(err)
			}
			<-p.ctx.Done()
			<-ends
		}
	}
	for i := range bases {
		if bases[i].Name == stage {
			bases[i].Drains, bases[i].Scale = true, weft.PerPartition
		}
	}
	return bases, setup, first
}

// TestStageThatDrains stops a stage that Drains, in the process with the switches and in another:
// it takes packets until its Run has returned.
func TestStageThatDrains(t *testing.T) {
	for where, workers := range map[string]string{
		"beside the switches": "w: {services: [southbound, discovery, hosts, firewall, forwarding]}",
		"elsewhere":           "w: {services: [southbound, discovery, hosts, firewall]}, r: {services: [forwarding]}",
	} {
		t.Run(where, func(t *testing.T) {
			ends := make(chan struct{})
			bases, setup, first := draining(t, "forwarding", ends)
			c := newCluster(t, bases, setup)
			c.apply("{name: a, events: grpc, workers: {" + workers + "}}")
			c.startAll()
			s := open(c.run("southbound"), 1)
			s.send(100)
			s.complete(c)
			c.start("n")
			c.apply("{name: b, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall]}, r: {services: [idle]}, n: {services: [forwarding]}}}")
			c.eventually("the stage is stopped", func() bool { return first.Load().ctx.Err() != nil })
			s.send(100)
			s.complete(c)
			close(ends)
			c.eventually("it runs anew", func() bool { return c.run("forwarding") != first.Load() })
			s.send(100)
			s.complete(c)
		})
	}
}

// TestProcessThatEndsDrains ends a process: its other stages take packets for as long as one that
// Drains does.
func TestProcessThatEndsDrains(t *testing.T) {
	ends := make(chan struct{})
	bases, setup, first := draining(t, "discovery", ends)
	c := newCluster(t, bases, setup)
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall, forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	go c.process("w").stop()
	c.eventually("the stage is stopped", func() bool { return first.Load().ctx.Err() != nil })
	s.send(100)
	s.complete(c)
	close(ends)
}
