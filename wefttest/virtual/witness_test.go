package virtual

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// sortedBy returns the keys of a map in an order.
func sortedBy[K comparable, V any](m map[K]V, order func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), order)
}

// facts is what the witness has been told last, by subject and key: what is
// retained of every subject.
type facts struct {
	mu       sync.Mutex // guards what follows
	switches map[string]*api.SwitchChanged
	links    map[string]*api.LinkChanged
	hosts    map[string]*api.HostChanged
	roles    map[string]*api.PortRoleChanged
}

// witness declares a service that calls the others in the name of the test.
func (c *cluster) witness(g *gate) weft.Spec {
	return weft.Spec{
		Name: "witness",
		Doc:  "calls the others in the name of the test",
		Calls: append(readMethods(), api.AddFlows, api.DeleteFlows, api.AddFirewallRules, api.BindHost, api.SetChain, api.QosSetPolicy,
			api.SetTenant, api.SetNetwork, api.SetVip, api.AddRouterAddress, api.AddRouterRoute, api.SetCircuits, api.DeleteFirewallRules, api.DeleteTenant, api.SetNat),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.LinkChangedEvent, api.HostChangedEvent, api.PortRoleChangedEvent),
		Class:      weft.Compute,
		Scale:      weft.Single,
		Run: func(ctx context.Context, env *weft.Env) error {
			f := &facts{
				switches: map[string]*api.SwitchChanged{}, links: map[string]*api.LinkChanged{},
				hosts: map[string]*api.HostChanged{}, roles: map[string]*api.PortRoleChanged{},
			}
			note(env, f, api.SwitchChangedEvent, f.switches)
			note(env, f, api.LinkChangedEvent, f.links)
			note(env, f, api.HostChangedEvent, f.hosts)
			note(env, f, api.PortRoleChangedEvent, f.roles)
			w := &witness{g.process, env, g, f}
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			c.mu.Lock()
			c.witnesses = append(c.witnesses, w)
			c.mu.Unlock()
			<-ctx.Done()
			c.mu.Lock()
			c.witnesses = slices.DeleteFunc(c.witnesses, func(x *witness) bool { return x == w })
			c.mu.Unlock()
			return nil
		},
	}
}

// note keeps the last event of each key.
func note[E any](env *weft.Env, f *facts, s api.Subject[E], into map[string]*E) {
	weft.On(env, s, func(_ context.Context, e *E) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if key, _ := s.KeyOf(e); s.GoneBy(e) {
			delete(into, key)
		} else {
			into[key] = e
		}
	})
}

// present returns the witness that runs; nil if none does.
func (c *cluster) present() *witness {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.witnesses {
		if !w.gate.dead() {
			return w
		}
	}
	return nil
}
