package weft

import "context"

// OnConfig registers what takes over a new configuration while the service
// runs. It is called when nothing has changed but keys that the Spec lists in
// Live, as an event of the service's: one at a time with all others, so state
// that only handlers touch needs no lock. old is what the service runs with,
// new is validated; neither is written to. Env.Config stays what it was at
// start.
//
// An error says that new cannot be taken over: take leaves things as they were,
// and the configuration that was in force before is put back everywhere. take
// may therefore be called again with old and new exchanged, and with a new that
// it has taken over already: then it changes nothing.
//
// Objects that people give in the configuration and by the API as well, such as
// rules, are told apart by their origin: take replaces those of the
// configuration as a whole by those of new, and leaves the others alone. A
// service does the same at its start, for its configuration may have changed
// since.
func OnConfig[C any](env *Env, take func(ctx context.Context, old, new *C) error) {
	if len(env.spec.Live) == 0 {
		env.mistake("takes over configurations, but its Spec lists no keys in Live")
		return
	}
	env.runtime.OnConfig(func(ctx context.Context, old, new any) error { return take(ctx, old.(*C), new.(*C)) })
}
