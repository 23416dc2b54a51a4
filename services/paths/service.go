package paths

import (
	"context"
	"time"

	"weft"
	"weft/api"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "paths",
		Doc:        "computes and looks up paths over the discovered links",
		Serves:     weft.Methods(api.FindPath, api.GetTree),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.LinkChangedEvent),
		Publishes:  weft.Subjects(api.PathsConvergedEvent),
		Class:      weft.Compute,
		Scale:      weft.Any,
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	// Versions grow over restarts, too: no instance makes a thousand topologies a second.
	c := newConvergence(uint64(weft.Now(env).UnixMilli()), func(e *api.PathsConverged) { weft.Publish(env, api.PathsConvergedEvent, e) })
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { c.switchChanged(e) })
	weft.On(env, api.LinkChangedEvent, func(_ context.Context, e *api.LinkChanged) { c.linkChanged(e, time.Now()) })
	weft.Handle(env, api.FindPath, c.findPath)
	weft.Handle(env, api.GetTree, c.getTree)
	env.Metric.CounterFunc("convergences_total", "New topologies that paths were computed for.", func() float64 { return float64(c.count()) })
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	c.listen(ctx)
	c.gather(ctx)
	return nil
}
