package policy

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Declare adds to a Spec what a Policy of the kind uses.
func Declare[M Message, T comparable](s weft.Spec, k Kind[M, T]) weft.Spec {
	methods := slices.DeleteFunc([]weft.Method{k.Set, k.Delete, k.List}, func(m weft.Method) bool { return m == nil })
	s.Serves = append(methods, s.Serves...)
	if k.Compile != nil || k.All != nil {
		s.Calls = append(s.Calls, api.SetStanding)
		s.Subscribes = append(s.Subscribes, api.FlowsObservedEvent)
	}
	s.Reads |= k.reads()
	s.Buckets = append([]string{k.bucket()}, s.Buckets...)
	s.Class, s.Scale = weft.Latency, weft.PerPartition
	return s
}

// Spec declares a service that is a kind of objects and nothing else, with Config as its
// configuration: its name, what it does, and the objects.
func Spec[M Message, T comparable](name, doc string, k Kind[M, T]) weft.Spec {
	s := Declare(weft.Spec{Name: name, Doc: doc, Config: &Config{Most: 1000, Deadline: 3 * time.Second}, Live: []string{"*"}}, k)
	s.Run = func(ctx context.Context, env *weft.Env) error {
		var cfg atomic.Pointer[Config]
		cfg.Store(env.Config.(*Config))
		k := k
		k.Most, k.Raise = func() int { return cfg.Load().Most }, name+".most"
		k.Deadline = func() time.Duration { return cfg.Load().Deadline }
		p := New(k)
		if err := Serve(ctx, env, p); err != nil {
			return err
		}
		weft.OnConfig(env, func(_ context.Context, _, c *Config) error { cfg.Store(c); return nil })
		if err := weft.Ready(ctx, env); err != nil {
			return err
		}
		p.Run(ctx)
		return nil
	}
	return s
}
