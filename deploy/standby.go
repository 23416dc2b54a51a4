package deploy

import (
	"context"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// A service of which a plan has a standby runs in several processes, and works
// in one. In the others it sets itself up, and stands ready: it is in the
// directory as that, and nobody calls it or hears of it. Which of them works is
// for the services to find out among themselves (for the southbound, by a lease
// in its bucket): whoever may calls weft.Ready, and counts from then on instead
// of all that became ready before it, even if their processes are there still.

// StateStandby is the state of a service that stands ready in a process.
const StateStandby = "standby"

// standsBy reports whether a service of an instance may be one of several that
// take each other's place.
func standsBy(c *Current, mine plan.Instance, spec *weft.Spec) bool {
	w := c.plan.Worker(mine.Worker)
	return spec.Standby && w != nil && w.Standby > 0
}

// stand starts a service that works once it finds that it may: it does not
// wait for that.
func (n *Node) stand(ctx context.Context, specs []weft.Spec) error {
	if err := n.worker.config.Settings.Check(n.config.Specs); err != nil {
		return err
	}
	g, err := n.worker.build(specs)
	if err != nil {
		return err
	}
	for _, s := range g.services {
		s.standing.Store(true)
		n.setState(s, StateStandby)
	}
	if err := n.announce(ctx); err != nil {
		return err
	}
	n.worker.enter(g)
	for _, s := range g.services {
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	for _, s := range g.services {
		go s.run(n.worker.failed)
	}
	go func() {
		for range g.services {
			select {
			case <-g.arrived:
			case <-g.services[0].ended:
				return
			}
		}
		g.ripe.Store(true)
		n.wake()
	}()
	return nil
}

// ripe returns the services that stand by and may work now, by group.
func (n *Node) ripe() (list []*group) {
	seen := map[*group]bool{}
	for _, s := range n.worker.tables.Load().services {
		if s.standing.Load() && s.group.ripe.Load() && !seen[s.group] {
			seen[s.group] = true
			list = append(list, s.group)
		}
	}
	return list
}

// work has services that have stood by begin: they are a run that begins now,
// and count instead of all earlier ones.
func (n *Node) work(ctx context.Context, g *group) error {
	epoch := n.nextEpoch()
	subscribes := false
	names := make([]string, len(g.services))
	for i, s := range g.services {
		s.epoch.Store(epoch)
		s.standing.Store(false)
		subscribes = subscribes || len(s.spec.Subscribes) > 0
		names[i] = s.spec.Name
	}
	if subscribes {
		for _, s := range g.services {
			n.setState(s, StateSyncing)
		}
		if err := n.announce(ctx); err != nil {
			return err
		}
	}
	close(g.started)
	for _, s := range g.services {
		if subscribes {
			n.inlets.await(ctx, n, s)
		}
		s.serving.Store(true)
		n.setState(s, StateReady)
	}
	n.worker.version.Add(1)
	n.log.Info("services ready, having stood by", "services", names)
	return n.announce(ctx)
}

// nextEpoch returns the epoch of a run that begins now: the time, or more than
// that of every run in the directory if the clock has been set back.
func (n *Node) nextEpoch() uint64 {
	epoch := uint64(n.now().UnixNano())
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.entries {
		for i := range e.Services {
			epoch = max(epoch, e.Services[i].Epoch+1)
		}
	}
	return epoch
}

// runOf names a run of a service.
type runOf struct {
	service   string
	partition string
	epoch     uint64
}

// superseded returns the runs of services that do not count any more, since
// another of the same service and partition has become ready after them. It is
// called with the lock.
func (n *Node) superseded() map[runOf]bool {
	latest := map[runOf]uint64{} // by service and partition
	each := func(f func(key runOf, s *ServiceState)) {
		for _, e := range n.entries {
			for i := range e.Services {
				if spec := n.spec(e.Services[i].Name); spec != nil && spec.Standby {
					f(runOf{service: e.Services[i].Name, partition: e.Partition}, &e.Services[i])
				}
			}
		}
	}
	each(func(key runOf, s *ServiceState) {
		if s.State == StateReady || s.State == StateSyncing {
			latest[key] = max(latest[key], s.Epoch)
		}
	})
	var over map[runOf]bool
	each(func(key runOf, s *ServiceState) {
		if s.State != StateStandby && s.Epoch < latest[key] {
			if over == nil {
				over = map[runOf]bool{}
			}
			key.epoch = s.Epoch
			over[key] = true
		}
	})
	return over
}

// The roles of a service of which a plan has a standby.
const (
	roleMaster     = "master"     // it works
	roleStandby    = "standby"    // it stands ready
	roleSuperseded = "superseded" // it has worked, and another does now
)

// roleOf returns the role of a service in a process, empty if the plan has no
// standby for it.
func roleOf(c *Current, over map[runOf]bool, e *Entry, s *ServiceState) string {
	switch {
	case s.State == StateStandby:
		return roleStandby
	case over[runOf{s.Name, e.Partition, s.Epoch}]:
		return roleSuperseded
	case s.State == StateReady && c.plan.HasStandby(s.Name):
		if w := c.plan.Worker(e.Worker); w != nil && w.Standby > 0 {
			return roleMaster
		}
	}
	return ""
}
