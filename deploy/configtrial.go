package deploy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/plan"
)

// Time limits of applying a configuration.
const (
	trialLimit = 20 * time.Second       // to start, unless the request sets it
	trialMost  = 10 * time.Minute       // the longest limit that a request may set
	trialQuiet = 500 * time.Millisecond // services must run with it for this long
	trialPoll  = 20 * time.Millisecond
)

// configurations brings configurations into force, each on trial first, and keeps their
// history.
type configurations struct {
	config  *NodeConfig
	members *membership
	log     *slog.Logger
	store   *config.Store // the history
	metrics *configMetrics
	trials  sync.WaitGroup  // those that go on
	resumed chan struct{}   // closed when a trial left by an earlier run is resolved
	life    context.Context // lasts until the services have stopped; nil before Run; guarded by the lock of members
}

// candidate is a configuration to apply.
type candidate struct {
	doc     *plan.Document
	text    string
	old     *members.Current
	rev     uint64 // of the plan in force
	plan    *plan.Plan
	changes []*api.ConfigChange
}

// finishTrial waits until all processes have applied a configuration on trial, and
// keeps it. If they fail, it restores the former configuration and records why.
func (cs *configurations) finishTrial(ctx context.Context, r *config.Record, c *candidate, next *members.Current, limit time.Duration) error {
	err := cs.awaitApplied(ctx, next, limit)
	if ctx.Err() != nil {
		return fmt.Errorf("configuration %d: the process has ended before it was known to be good", r.Number)
	}
	if err == nil {
		if err = cs.keep(ctx, next); err == nil {
			if err = cs.store.End(ctx, r, config.Good, ""); err == nil {
				cs.log.Info("configuration is in force", "number", r.Number, "hash", r.Hash)
				return nil
			}
		}
	}
	cs.metrics.failures.Add(1)
	back := "the former one is back in force"
	if putBack := cs.restorePlan(ctx, next, c.old); putBack != nil {
		back = "the former one could not be put back: " + putBack.Error()
	}
	if end := cs.store.End(ctx, r, config.Failed, err.Error()); end != nil {
		cs.log.Warn("what has become of a configuration is not written down", "number", r.Number, "error", end)
	}
	cs.log.Error("configuration has failed; "+back, "number", r.Number, "error", err)
	return fmt.Errorf("configuration %d has failed: %w; %s", r.Number, err, back)
}

// awaitApplied waits until all processes have applied a plan, and then for
// trialQuiet.
func (cs *configurations) awaitApplied(ctx context.Context, next *members.Current, limit time.Duration) error {
	end := time.Now().Add(limit)
	var since time.Time // when all had applied it
	for {
		late, err := cs.listUnapplied(next)
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
func (cs *configurations) listUnapplied(next *members.Current) (late []string, err error) {
	cs.members.mu.Lock()
	defer cs.members.mu.Unlock()
	if cs.members.current != nil && cs.members.current.Generation > next.Generation {
		return nil, fmt.Errorf("another plan has been applied meanwhile")
	}
	for _, i := range next.InForce().Instances() {
		process := next.ProcessOf(i.Name)
		e := cs.members.entries[process]
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
func (cs *configurations) keep(ctx context.Context, next *members.Current) error {
	now, revision, err := cs.members.directory.Current(ctx)
	if err != nil {
		return err
	}
	if now == nil || now.Generation != next.Generation {
		return fmt.Errorf("another plan has been applied meanwhile")
	}
	now.Trial = false
	return cs.members.directory.Put(ctx, now, revision)
}

// restorePlan restores the plan that was in force before the one on trial, unless
// another plan is in force by now.
func (cs *configurations) restorePlan(ctx context.Context, trial, former *members.Current) error {
	now, revision, err := cs.members.directory.Current(ctx)
	if err != nil || now == nil || now.Generation != trial.Generation {
		return err
	}
	back, err := members.Succeed(now, former.InForce(), cs.config.Specs)
	if err != nil {
		return err
	}
	if err := cs.members.directory.Put(ctx, back, revision); err != nil {
		return err
	}
	return cs.awaitApplied(ctx, back, trialLimit)
}

// resume restores the last good configuration if an earlier run of this process
// left one on trial.
func (cs *configurations) resume(ctx context.Context) {
	defer close(cs.resumed)
	now, _, err := cs.store.InForce(ctx)
	if err != nil || now.Trial == 0 {
		return
	}
	r, err := cs.store.Get(ctx, now.Trial)
	if err != nil || r == nil || r.Process != cs.config.Process {
		return
	}
	const why = "the process that applied it has ended before it was known to be good"
	err = func() error {
		good, err := cs.store.Get(ctx, now.Good)
		if err != nil || good == nil {
			return fmt.Errorf("the last good configuration, number %d, cannot be read: %w", now.Good, err)
		}
		sections, err := good.Sections()
		if err != nil {
			return err
		}
		current, revision, err := cs.members.directory.Current(ctx)
		if err != nil || current == nil || !current.Trial {
			return err
		}
		back, err := members.Succeed(current, current.InForce().WithConfig(sections), cs.config.Specs)
		if err != nil {
			return err
		}
		return cs.members.directory.Put(ctx, back, revision)
	}()
	if err == nil {
		err = cs.store.End(ctx, r, config.Dropped, why)
	}
	cs.metrics.failures.Add(1)
	if err != nil {
		cs.log.Error("a configuration that was on trial could not be put back", "number", r.Number, "error", err)
		return
	}
	cs.log.Warn("a configuration is dropped, and the last good one put back: "+why, "dropped", r.Number, "in force", now.Good)
}
