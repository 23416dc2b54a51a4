package weft

import "context"

// OnConfig registers a function that applies a new configuration to the running
// service. It is called if only keys that the Spec lists in Live have changed. It
// runs as an event handler, so state that only event handlers use needs no lock.
// old is the configuration in force, and new has been validated; apply writes to
// neither. Env.Config keeps the configuration of the start.
//
// If apply returns an error, it must have changed nothing; the runtime then
// restores the old configuration in every instance. Therefore apply may be
// called again with old and new exchanged, or with a configuration that is
// already in force, which must have no effect.
//
// Some objects, such as rules, come both from the configuration and from the
// API. apply replaces all objects that came from the configuration by those of
// new, and leaves the others alone. A service does the same when it starts,
// because its configuration may have changed meanwhile.
func OnConfig[C any](env *Env, apply func(ctx context.Context, old, new *C) error) {
	if len(env.spec.Live) == 0 {
		env.addMistake("takes over configurations, but its Spec lists no keys in Live")
		return
	}
	env.runtime.OnConfig(func(ctx context.Context, old, new any) error { return apply(ctx, old.(*C), new.(*C)) })
}
