package scp

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/sbi"
)

// Bounds of names that are resolved.
const (
	mostNames       = 256
	resolveInterval = 10 * time.Second
	resolveTime     = 2 * time.Second
)

// lookup returns the addresses of a name.
type lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// lookupAt returns a lookup at a DNS server.
func lookupAt(server netip.AddrPort) lookup {
	var d net.Dialer
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, server.String())
	}}
	return func(ctx context.Context, name string) ([]netip.Addr, error) {
		found, err := r.LookupNetIP(ctx, "ip", name+".") // as it is, in no domain of this machine
		return slices.DeleteFunc(found, func(a netip.Addr) bool { return a.Unmap().IsLoopback() }), err
	}
}

// resolver resolves the names in profiles that scp.names lacks.
type resolver struct {
	proxy *proxy
	ask   lookup
}

// run asks until ctx ends.
func (r *resolver) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.once(ctx)
		_ = backoff.Sleep(ctx, resolveInterval)
	}
}

func (r *resolver) once(ctx context.Context) {
	p := r.proxy
	p.mu.Lock()
	wanted := p.hostNames(p.cfg.Load().names())
	p.mu.Unlock()
	found := p.cfg.Load().names()
	for _, name := range wanted {
		asking, cancel := context.WithTimeout(ctx, resolveTime)
		at, err := r.ask(asking, name)
		if cancel(); err != nil {
			p.log.Debug("a name in a profile is not resolved", "name", name, "error", err)
		}
		for i := range at {
			at[i] = at[i].Unmap()
		}
		if slices.SortFunc(at, netip.Addr.Compare); len(at) > 0 {
			found[name] = at
		}
	}
	p.mu.Lock()
	was := p.names
	for _, name := range wanted {
		if found[name] == nil && was[name] != nil {
			found[name] = was[name] // the server may be away
		}
	}
	changed := !maps.EqualFunc(found, was, slices.Equal[[]netip.Addr])
	if p.names = found; !changed {
		p.mu.Unlock()
		return
	}
	named := p.named()
	p.mu.Unlock()
	for _, x := range named {
		if y, err := newProducer(x.text, netip.Addr{}); err == nil {
			y.profile.NFInstanceID = x.id()
			err = p.learn(y) // as if the NRF had answered it anew
			p.log.Debug("an instance is where its names are", "instance", x.id(), "error", err)
		}
	}
}

// hostNames returns names in profiles that a table lacks, mostNames of them at most.
func (r *registry) hostNames(table sbi.Names) []string {
	names := map[string]bool{}
	for _, x := range r.book {
		for _, name := range x.profile.HostNames() {
			if table[name] == nil {
				names[name] = true
			}
		}
	}
	all := slices.Sorted(maps.Keys(names))
	return all[:min(len(all), mostNames)]
}

// named returns the instances that have names where addresses belong.
func (r *registry) named() (list []*producer) {
	for _, x := range r.book {
		if len(x.profile.HostNames()) > 0 {
			list = append(list, x)
		}
	}
	return list
}
