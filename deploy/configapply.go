package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// GetConfig returns the configuration in force, or one of the history.
func (cs *configurations) GetConfig(ctx context.Context, req *api.GetConfigRequest) (*api.Configuration, error) {
	now, _, err := cs.store.InForce(ctx)
	if err != nil {
		return nil, err
	}
	number := req.Number
	if number == 0 {
		number = now.Good
	}
	r, err := cs.store.Get(ctx, number)
	if err != nil {
		return nil, err
	}
	if r == nil && req.Number != 0 {
		return nil, api.Errorf(codes.NotFound, "configuration %d is not in the history; weft config history lists those that are", req.Number)
	}
	if r == nil || req.Number == 0 { // whatever is recorded, this is what is in force
		current, _, err := cs.members.directory.Current(ctx)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return nil, api.Errorf(codes.Unavailable, "there is no plan in force yet; try again")
		}
		if now.Trial != 0 && req.Number == 0 {
			if trial, err := cs.store.Get(ctx, now.Trial); err == nil && trial != nil && trial.Hash == plan.Hash(current.InForce().Config) {
				r = trial
			}
		}
		if hash := plan.Hash(current.InForce().Config); r == nil || r.Hash != hash {
			text, err := plan.ConfigYAML(current.InForce().Config)
			if err != nil {
				return nil, err
			}
			r = &config.Record{Text: string(text), Hash: hash, Source: "what the controller was started with", State: config.Good}
		}
	}
	m := r.Message(now)
	m.Text, err = config.ShownText(r.Text)
	for _, o := range cs.config.Settings {
		m.Overrides = append(m.Overrides, o.Shown())
	}
	return m, err
}

// ListConfigs returns the configurations in the history.
func (cs *configurations) ListConfigs(ctx context.Context, _ *api.ListConfigsRequest) (*api.ListConfigsResponse, error) {
	now, _, err := cs.store.InForce(ctx)
	if err != nil {
		return nil, err
	}
	list, err := cs.store.List(ctx)
	if err != nil {
		return nil, err
	}
	resp := &api.ListConfigsResponse{}
	for _, r := range list {
		resp.Configurations = append(resp.Configurations, r.Message(now))
	}
	return resp, nil
}

// RollbackConfig applies a configuration from the history again.
func (cs *configurations) RollbackConfig(ctx context.Context, req *api.RollbackConfigRequest) (*api.ApplyConfigResponse, error) {
	now, _, err := cs.store.InForce(ctx)
	if err != nil {
		return nil, err
	}
	list, err := cs.store.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(r *config.Record) bool {
		if req.Number != 0 {
			return r.Number == req.Number
		}
		return r.Number < now.Good && r.State == config.Good
	})
	switch {
	case i < 0 && req.Number != 0:
		return nil, api.Errorf(codes.NotFound, "configuration %d is not in the history; weft config history lists those that are", req.Number)
	case i < 0:
		return nil, api.Errorf(codes.FailedPrecondition, "there is no good configuration before the one in force; weft config history lists all")
	}
	r := list[i]
	return cs.apply(ctx, r.Text, fmt.Sprintf("roll-back to %d", r.Number), 0, req.DryRun, req.LimitMs)
}

// ApplyConfig applies a configuration as a difference, or returns what that
// would change.
func (cs *configurations) ApplyConfig(ctx context.Context, req *api.ApplyConfigRequest) (*api.ApplyConfigResponse, error) {
	source := req.Source
	if source == "" {
		source = "the northbound"
	}
	return cs.apply(ctx, req.Text, config.Shorten(strings.Join(strings.Fields(source), " ")), req.MadeFrom, req.DryRun, req.LimitMs)
}

func (cs *configurations) apply(ctx context.Context, text, source string, madeFrom uint64, dry bool, limitMs uint32) (*api.ApplyConfigResponse, error) {
	limit := trialLimit
	if limitMs > 0 {
		limit = min(time.Duration(limitMs)*time.Millisecond, trialMost)
	}
	c, err := cs.checkConfig(ctx, text)
	if err != nil {
		cs.metrics.failures.Add(1)
		return nil, err
	}
	now, _, err := cs.store.InForce(ctx)
	if err != nil {
		return nil, err
	}
	if madeFrom != 0 && madeFrom != now.Good {
		return nil, api.Errorf(codes.Aborted, "configuration %d is in force, not %d; look at it with weft config show, and make yours from it", now.Good, madeFrom)
	}
	resp := &api.ApplyConfigResponse{
		Changes: c.changes, Hash: plan.Hash(c.doc.Sections), Number: now.Good, State: "in-force",
		Notes: config.Notes(c.doc, c.plan, c.changes, cs.config.Specs, cs.config.Settings),
	}
	same := plan.Hash(c.old.InForce().Config) == resp.Hash
	switch {
	case dry && !same:
		resp.State = "would-apply"
		return resp, nil
	case same && c.old.Trial && now.Trial != 0: // asked for twice
		resp.Number, resp.State = now.Trial, "applying"
		return resp, nil
	case dry || same:
		return resp, nil
	}
	select { // else resume would take our trial for one that an earlier run left
	case <-cs.resumed:
	case <-ctx.Done():
		return nil, api.Errorf(codes.Unavailable, "process %s is still starting: %w", cs.config.Process, ctx.Err())
	}
	trial, done, err := cs.try(ctx, c, source, now, limit)
	if err != nil {
		cs.metrics.failures.Add(1)
		return nil, err
	}
	resp.Number = trial.Number
	for _, ch := range c.changes {
		if s := cs.config.spec(ch.Section); s != nil && s.Listens && !s.Pipeline && ch.Effect == config.EffectRestart {
			resp.State = "applying" // the connection of the caller breaks
			return resp, nil
		}
	}
	select {
	case err := <-done:
		if err != nil {
			return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
		}
		return resp, nil
	case <-ctx.Done():
		resp.State = "applying"
		return resp, nil
	}
}

// checkConfig checks a configuration against the plan in force.
func (cs *configurations) checkConfig(ctx context.Context, text string) (*candidate, error) {
	doc, err := plan.ParseConfig("configuration", []byte(text))
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if masked := plan.Masked(doc.Sections); len(masked) > 0 {
		return nil, api.Errorf(codes.InvalidArgument, "%s: %s stands for a secret that was not shown; write the secret itself, or name a file that holds it", strings.Join(masked, ", "), plan.Secret)
	}
	old, rev, err := cs.members.directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, api.Errorf(codes.Unavailable, "there is no plan in force yet; try again")
	}
	var running []weft.Spec
	for _, s := range cs.config.Specs {
		if old.InForce().Has(s.Name) {
			running = append(running, s)
		}
	}
	c := &candidate{doc: doc, text: text, old: old, rev: rev, plan: old.InForce().WithConfig(doc.Sections)}
	err = errors.Join(config.StartKeys(doc, old.InForce(), cs.config.Alone), config.CheckDocument("configuration", doc, running, cs.config.Settings...))
	if err == nil {
		err = config.CheckPlan(c.plan, cs.config.Specs, cs.config.Settings...)
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if err := config.StartOnly(old.InForce(), c.plan, running, cs.config.Settings...); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if c.changes, err = config.Difference(old.InForce(), c.plan, running, cs.config.Settings...); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	return c, nil
}

// try applies a configuration on trial, and sends the result to done.
func (cs *configurations) try(ctx context.Context, c *candidate, source string, now config.Now, limit time.Duration) (*config.Record, <-chan error, error) {
	chosen := &config.Chosen{Sections: c.old.InForce().Config, Source: "what the controller was started with", Base: plan.Hash(c.old.InForce().Config)}
	former, err := chosen.Record(cs.members.now())
	if err != nil {
		return nil, nil, err
	}
	base := former.Base
	if now.Good != 0 {
		last, err := cs.store.Get(ctx, now.Good)
		if err != nil {
			return nil, nil, err
		}
		if last != nil {
			base = last.Base
		}
	}
	r := &config.Record{Text: c.text, Hash: plan.Hash(c.doc.Sections), Base: base, Source: source, Applied: cs.members.now(), Process: cs.config.Process}
	next, err := members.Succeed(c.old, c.plan, cs.config.Specs)
	if err != nil {
		return nil, nil, err
	}
	next.Trial = true
	cs.members.mu.Lock()
	life := cs.life
	cs.members.mu.Unlock()
	if life == nil {
		return nil, nil, api.Errorf(codes.Unavailable, "this process is being started; try again")
	}
	if err := cs.store.Begin(ctx, r, former); err != nil {
		return nil, nil, err
	}
	if err := cs.members.directory.Put(ctx, next, c.rev); err != nil {
		err = api.Errorf(codes.Aborted, "%w", err)
		return nil, nil, errors.Join(err, cs.store.End(context.WithoutCancel(ctx), r, config.Failed, err.Error()))
	}
	cs.log.Info("configuration is applied", "number", r.Number, "hash", r.Hash, "source", source, "changes", len(c.changes))
	done := make(chan error, 1)
	cs.trials.Go(func() { done <- cs.finishTrial(life, r, c, next, limit) })
	return r, done, nil
}
