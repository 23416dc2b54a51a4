package deploy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// reconcile brings this process closer to what the plan assigns to it: it stops
// services that belong elsewhere once their new place is ready, and starts
// services that belong here once they run nowhere else.
func (n *Node) reconcile(ctx context.Context) error {
	n.members.mu.Lock()
	current, since := n.members.current, n.members.since
	n.members.mu.Unlock()
	if current == nil {
		return nil
	}
	mine, _ := current.InstanceOf(n.config.Process)
	settings := n.setup.Settings
	again := current == n.configuredBy
	if !again {
		var err error
		if settings, err = n.config.settings(current, mine); err != nil {
			return err
		}
	}
	n.waiting = false
	for _, g := range n.listActivatable() {
		if err := n.activate(ctx, g); err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(n.worker.Running().Services) {
		wanted := slices.Contains(mine.Services, s.Spec.Name)
		same := n.members.entry.Partition == mine.Partition && s.Clustered == n.config.clustered(current, mine, s.Spec.Name)
		if wanted && same && !s.Stale.Load() && (again || n.reconfigure(ctx, s, settings, current)) {
			continue
		}
		if !wanted && !s.Stale.Load() && !n.mayStop(s, current) && time.Since(since) < successionWait {
			n.waiting = true
			continue
		}
		if err := n.retire(ctx, s); err != nil {
			return err
		}
	}
	n.members.mu.Lock()
	renamed := n.members.entry.Instance != mine.Name || n.members.entry.Worker != mine.Worker || n.members.entry.Partition != mine.Partition
	n.members.entry.Instance, n.members.entry.Worker, n.members.entry.Partition = mine.Name, mine.Worker, mine.Partition
	n.members.mu.Unlock()
	n.setup = local.Setup{Settings: settings, Generation: current.Generation}
	n.configuredBy = current
	if mine.Partition != "" {
		n.setup.Prefix = mine.Partition + "."
	}
	if renamed {
		if err := n.members.publish(ctx); err != nil {
			return err
		}
	}
	if order := current.InForce().Stages(n.config.Specs); !slices.Equal(order, n.worker.Running().Pipeline) {
		n.worker.SetPipeline(order)
	}
	n.members.mu.Lock()
	entries := maps.Clone(n.members.entries)
	n.members.mu.Unlock()
	var specs, standing []weft.Spec
	for _, spec := range n.config.Specs {
		switch {
		case !slices.Contains(mine.Services, spec.Name) || n.worker.Running().Service(spec.Name) != nil:
		case n.refused[spec.Name] == current.Generation: // until another plan is in force
		case standsBy(current, mine, &spec):
			standing = append(standing, spec)
		case n.runningElsewhere(ctx, current, &spec, entries) != "":
			n.waiting = true
		default:
			specs = append(specs, spec)
		}
	}
	if len(standing) > 0 {
		if err := n.runStandby(ctx, standing); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if len(specs) > 0 {
		if err := n.startServices(ctx, current, specs); err != nil || ctx.Err() != nil || n.waiting {
			return err
		}
		return n.reconcile(ctx) // the next service may be able to start now
	}
	n.apps.republish()
	n.members.mu.Lock()
	late := !n.waiting && n.members.entry.Generation != current.Generation
	if late {
		n.members.entry.Generation = current.Generation
		if f := n.members.entry.Failed; f != nil && f.Generation != current.Generation {
			n.members.entry.Failed = nil
		}
	}
	n.members.mu.Unlock()
	if late {
		return n.members.publish(ctx)
	}
	return nil
}

// mayStop reports whether a service of this process may stop: the process of its new
// place runs, and serves already if the service may run twice.
func (n *Node) mayStop(s *local.Service, c *members.Current) bool {
	if !c.InForce().Has(s.Spec.Name) {
		return true
	}
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	for _, i := range c.InForce().Instances() {
		if !slices.Contains(i.Services, s.Spec.Name) {
			continue
		}
		e := n.members.entries[c.ProcessOf(i.Name)]
		if e == nil || e.Process == n.config.Process {
			continue
		}
		overlaps := s.Spec.Scale == weft.Any && !(s.Spec.Listens && e.Machine == n.members.entry.Machine)
		if st := e.Service(s.Spec.Name); !overlaps || st != nil && st.State == members.StateReady {
			return true
		}
	}
	return false
}

// runningElsewhere returns the process that still runs a service and must stop it before
// the service starts here; empty if there is none.
func (n *Node) runningElsewhere(ctx context.Context, c *members.Current, spec *weft.Spec, entries map[string]*members.Entry) string {
	if spec.Scale == weft.Any && !spec.Listens {
		return ""
	}
	peers := n.members.others()
	mine, _ := c.InstanceOf(n.config.Process)
	for name, e := range entries {
		if name == n.config.Process || e.Service(spec.Name) == nil {
			continue
		}
		if e.Partition != "" && mine.Partition != "" && e.Partition != mine.Partition {
			continue
		}
		if spec.Scale == weft.Any {
			there, _ := c.InstanceOf(name)
			if e.Machine != n.members.entry.Machine || slices.Contains(there.Services, spec.Name) {
				continue // it stays, or is on another machine: both may run
			}
		}
		if p := peers[name]; p != nil && p.Dead(ctx) {
			continue
		}
		return name
	}
	return ""
}

// mustYield reports whether another process, whose plan is older or newer than ours,
// has also started one of the services. Both publish their start before they check,
// so at least one of them yields until the plans agree.
func (n *Node) mustYield(ctx context.Context, c *members.Current, specs []weft.Spec) bool {
	list, err := n.members.directory.Entries(ctx)
	if err != nil {
		n.log.Warn("services wait: it is not known now whether they run elsewhere", "error", err)
		return true
	}
	entries := map[string]*members.Entry{}
	for _, e := range list {
		entries[e.Process] = e
	}
	return slices.ContainsFunc(specs, func(s weft.Spec) bool { return n.runningElsewhere(ctx, c, &s, entries) != "" })
}

// retire stops a service that now belongs elsewhere.
func (n *Node) retire(ctx context.Context, s *local.Service) error {
	n.log.Info("service leaves", "service", s.Spec.Name)
	n.members.setState(s, members.StateDraining)
	if err := n.members.publish(ctx); err != nil {
		return err
	}
	if err := n.stopService(ctx, s); err != nil {
		select {
		case <-s.Ended:
		default:
			return err // nobody else may run it as long as this process lives
		}
		n.log.Error("service has not stopped well", "service", s.Spec.Name, "error", err)
	}
	n.members.setState(s, "")
	return n.members.publish(ctx)
}

// startServices starts services, waits until they have received what others
// retain, and offers them to others.
func (n *Node) startServices(ctx context.Context, c *members.Current, specs []weft.Spec) error {
	if err := n.setup.Settings.Check(n.config.Specs); err != nil {
		return err
	}
	g, err := n.worker.Build(specs, n.setup)
	if err != nil {
		return err
	}
	mine, _ := c.InstanceOf(n.config.Process)
	for _, s := range g.Services {
		s.Clustered = n.config.clustered(c, mine, s.Spec.Name)
		n.members.setState(s, members.StateStarting)
	}
	if err := n.members.publish(ctx); err != nil {
		return err
	}
	if n.mustYield(ctx, c, specs) {
		n.waiting = true
		for _, s := range g.Services {
			n.members.setState(s, "")
		}
		return n.members.publish(ctx)
	}
	n.worker.Enter(g)
	n.members.mu.Lock()
	n.rebuild() // others may want what these publish
	n.members.mu.Unlock()
	if ready, err := n.worker.Launch(ctx, g); !ready {
		if err == nil && ctx.Err() == nil {
			err = errors.New("a service has not started") // its stop says why
		}
		if c.Trial && ctx.Err() == nil {
			return n.abandon(ctx, c, g.Services, err)
		}
		return err
	}
	if err := n.sync(ctx, g); err != nil {
		return err
	}
	return n.offer(ctx, g, "services ready")
}

// sync asks other processes for the events that they retain for services.
func (n *Node) sync(ctx context.Context, g *local.Group) error {
	for _, s := range g.Services {
		n.members.setState(s, members.StateSyncing)
	}
	return n.members.publish(ctx)
}

// offer offers services to others once they have handled retained events.
func (n *Node) offer(ctx context.Context, g *local.Group, what string) error {
	var names []string
	for _, s := range g.Services {
		n.receivers.await(ctx, s)
		names = append(names, s.Spec.Name)
	}
	for _, s := range g.Services {
		s.MarkSynced()
		s.Serving.Store(true)
		n.members.setState(s, members.StateReady)
	}
	n.worker.Refresh()
	n.log.Info(what, "services", names)
	return n.members.publish(ctx)
}
