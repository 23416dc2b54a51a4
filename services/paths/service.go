package paths

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "paths",
		Doc:        "computes and looks up paths over the discovered links",
		Serves:     weft.Methods(api.FindPath, api.ComputePaths, api.GetTree, api.ExchangeSummaries),
		Calls:      weft.Methods(api.FindPath, api.ExchangeSummaries), // of other partitions' paths
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.LinkChangedEvent),
		Publishes:  weft.Subjects(api.PathsConvergedEvent),
		Class:      weft.Compute,
		Scale:      weft.Any,
		Config:     &Config{},
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	// Versions grow over restarts, too: no instance makes a thousand topologies a second.
	first := uint64(weft.Now(env).UnixMilli())
	c := newConvergence(first, func(e *api.PathsConverged) { weft.Publish(env, api.PathsConvergedEvent, e) })
	c.over = ctx.Done()
	var err error
	if c.part, err = newPart(env.Config.(*Config), first); err != nil {
		return err
	}
	if c.part != nil {
		c.part.find = func(ctx context.Context, req *api.FindPathRequest) (*api.FindPathResponse, error) {
			return weft.Call(ctx, env, api.FindPath, req)
		}
		c.part.exchange = func(ctx context.Context, req *api.ExchangeSummariesRequest) (*api.ExchangeSummariesResponse, error) {
			return weft.Call(ctx, env, api.ExchangeSummaries, req)
		}
		var failing atomic.Bool
		c.part.report = func(err error) {
			if failing.Swap(err != nil) == (err != nil) {
				return
			}
			if err != nil {
				env.Log.Warn("summaries not exchanged with other partitions", "error", err)
			} else {
				env.Log.Info("summaries exchanged with other partitions")
			}
		}
	}
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { c.switchChanged(e) })
	weft.On(env, api.LinkChangedEvent, func(_ context.Context, e *api.LinkChanged) { c.linkChanged(e, time.Now()) })
	weft.Handle(env, api.FindPath, c.findPath)
	weft.Handle(env, api.ComputePaths, c.computePaths)
	weft.Handle(env, api.GetTree, c.getTree)
	weft.Handle(env, api.ExchangeSummaries, c.exchangeSummaries)
	env.Metric.CounterFunc("convergences_total", "New topologies that paths were computed for.", func() float64 { return float64(c.count()) })
	env.Metric.Gauge("links", "Links that paths lead over, each direction.", func() float64 { return float64(c.graph.Current().links) })
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	c.listen(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	telling.Go(func() { c.tellOthers(ctx) })
	c.gather(ctx)
	return nil
}
