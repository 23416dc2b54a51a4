package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/backoff"
)

// finishTrial waits until all processes have applied a configuration on trial, and
// keeps it. If they fail, it restores the former configuration and records why.
func (n *Node) finishTrial(ctx context.Context, r *config.Record, c *candidate, next *members.Current, limit time.Duration) error {
	err := n.awaitApplied(ctx, next, limit)
	if ctx.Err() != nil {
		return fmt.Errorf("configuration %d: the process has ended before it was known to be good", r.Number)
	}
	if err == nil {
		if err = n.keep(ctx, next); err == nil {
			if err = n.configs.End(ctx, r, config.Good, ""); err == nil {
				n.log.Info("configuration is in force", "number", r.Number, "hash", r.Hash)
				return nil
			}
		}
	}
	n.configMetrics.failures.Add(1)
	back := "the former one is back in force"
	if putBack := n.restorePlan(ctx, next, c.old); putBack != nil {
		back = "the former one could not be put back: " + putBack.Error()
	}
	if end := n.configs.End(ctx, r, config.Failed, err.Error()); end != nil {
		n.log.Warn("what has become of a configuration is not written down", "number", r.Number, "error", end)
	}
	n.log.Error("configuration has failed; "+back, "number", r.Number, "error", err)
	return fmt.Errorf("configuration %d has failed: %w; %s", r.Number, err, back)
}

// awaitApplied waits until all processes have applied a plan, and then for
// trialQuiet.
func (n *Node) awaitApplied(ctx context.Context, next *members.Current, limit time.Duration) error {
	end := time.Now().Add(limit)
	var since time.Time // when all had applied it
	for {
		late, err := n.listUnapplied(next)
		switch {
		case err != nil:
			return err
		case len(late) > 0:
			since = time.Time{}
			if time.Now().After(end) {
				return fmt.Errorf("not carried out within %v: waiting for %s", limit, strings.Join(late, ", "))
			}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= trialQuiet || !next.Trial:
			return nil
		}
		if err := backoff.Sleep(ctx, trialPoll); err != nil {
			return err
		}
	}
}

// listUnapplied returns the processes that have not applied a plan yet, or an error
// if one of them cannot apply it or another plan has come into force.
func (n *Node) listUnapplied(next *members.Current) (late []string, err error) {
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	if n.members.current != nil && n.members.current.Generation > next.Generation {
		return nil, fmt.Errorf("another plan has been applied meanwhile")
	}
	for _, i := range next.InForce().Instances() {
		process := next.ProcessOf(i.Name)
		e := n.members.entries[process]
		if e == nil {
			late = append(late, process+" (down)")
			continue
		}
		if f := e.Failed; f != nil && f.Generation == next.Generation {
			return nil, fmt.Errorf("process %s: %s", process, f.Error)
		}
		var missing []string
		for _, name := range i.Services {
			if s := e.Service(name); s == nil || s.State != members.StateReady && s.State != members.StateStandby {
				missing = append(missing, name)
			}
		}
		switch {
		case e.Generation != next.Generation:
			late = append(late, process)
		case len(missing) > 0:
			late = append(late, fmt.Sprintf("%s (%s)", process, strings.Join(missing, ", ")))
		}
	}
	slices.Sort(late)
	return late, nil
}

// keep ends the trial of a plan.
func (n *Node) keep(ctx context.Context, next *members.Current) error {
	now, revision, err := n.members.directory.Current(ctx)
	if err != nil {
		return err
	}
	if now == nil || now.Generation != next.Generation {
		return fmt.Errorf("another plan has been applied meanwhile")
	}
	now.Trial = false
	return n.members.directory.Put(ctx, now, revision)
}

// restorePlan restores the plan that was in force before the one on trial, unless
// another plan is in force by now.
func (n *Node) restorePlan(ctx context.Context, trial, former *members.Current) error {
	now, revision, err := n.members.directory.Current(ctx)
	if err != nil || now == nil || now.Generation != trial.Generation {
		return err
	}
	back, err := members.Succeed(now, former.InForce(), n.config.Specs)
	if err != nil {
		return err
	}
	if err := n.members.directory.Put(ctx, back, revision); err != nil {
		return err
	}
	return n.awaitApplied(ctx, back, trialLimit)
}

// resume restores the last good configuration if an earlier run of this process
// left one on trial.
func (n *Node) resume(ctx context.Context) {
	now, _, err := n.configs.InForce(ctx)
	if err != nil || now.Trial == 0 {
		return
	}
	r, err := n.configs.Get(ctx, now.Trial)
	if err != nil || r == nil || r.Process != n.config.Process {
		return
	}
	const why = "the process that applied it has ended before it was known to be good"
	err = func() error {
		good, err := n.configs.Get(ctx, now.Good)
		if err != nil || good == nil {
			return fmt.Errorf("the last good configuration, number %d, cannot be read: %w", now.Good, err)
		}
		sections, err := good.Sections()
		if err != nil {
			return err
		}
		current, revision, err := n.members.directory.Current(ctx)
		if err != nil || current == nil || !current.Trial {
			return err
		}
		back, err := members.Succeed(current, current.InForce().WithConfig(sections), n.config.Specs)
		if err != nil {
			return err
		}
		return n.members.directory.Put(ctx, back, revision)
	}()
	if err == nil {
		err = n.configs.End(ctx, r, config.Dropped, why)
	}
	n.configMetrics.failures.Add(1)
	if err != nil {
		n.log.Error("a configuration that was on trial could not be put back", "number", r.Number, "error", err)
		return
	}
	n.log.Warn("a configuration is dropped, and the last good one put back: "+why, "dropped", r.Number, "in force", now.Good)
}
