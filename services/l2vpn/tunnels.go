package l2vpn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// tunnelPrefix begins the names of the tunnels that this service keeps.
const tunnelPrefix = "l2vpn-"

// A wish is a tunnel that circuits want: those between the same switches, with
// the same constraints, share it.
type wish struct {
	*api.Tunnel
	users map[string]bool // circuits
	err   error           // why it cannot be had
}

// tunnelBetween returns the tunnel that a circuit wants between the switches of two ends.
func tunnelBetween(c *circuit, from, to int) *api.Tunnel {
	return tunnelJoining(c, c.ends[from].at.Switch, c.ends[to].at.Switch)
}

// tunnelJoining returns the tunnel that a circuit wants from one switch to another.
func tunnelJoining(c *circuit, a, z flow.DPID) *api.Tunnel {
	t := &api.Tunnel{From: a.String(), To: z.String(), Protect: c.Protect}
	t.Name = tunnelPrefix + fmt.Sprintf("%x-%x", uint64(a), uint64(z))
	if c.Protect {
		t.Name += "-protect"
	}
	return t
}

// tunnelsOf returns the tunnels that a circuit wants, that from the first end to
// the second first.
func tunnelsOf(c *circuit) (list []*api.Tunnel) {
	if c.Type == vpls {
		for _, a := range c.edges() {
			for _, z := range c.edges() {
				if a != z {
					list = append(list, tunnelJoining(c, a, z))
				}
			}
		}
		for _, a := range c.arcs() {
			list = append(list, tunnelJoining(c, a.from, a.to))
		}
		slices.SortFunc(list, func(x, y *api.Tunnel) int { return cmp.Compare(x.Name, y.Name) })
		return slices.CompactFunc(list, func(x, y *api.Tunnel) bool { return x.Name == y.Name })
	}
	for i := range c.ends {
		for j := range c.ends {
			if c.ends[i].at.Switch != c.ends[j].at.Switch {
				list = append(list, tunnelBetween(c, i, j))
			}
		}
	}
	return list
}

// wish has a circuit want its tunnels, or no more. It is called with mu held.
func (b *store) wish(c *circuit, enter bool) {
	for _, t := range tunnelsOf(c) {
		b.wishFor(t, c.Name, enter)
	}
}

// wishFor has a circuit want a tunnel, or no more. It is called with mu held.
func (b *store) wishFor(t *api.Tunnel, user string, enter bool) {
	w := b.wants[t.Name]
	if w == nil {
		w = &wish{Tunnel: t, users: map[string]bool{}}
		b.wants[t.Name] = w
	}
	if w.users[user] = true; !enter {
		delete(w.users, user)
	}
	if len(w.users) == 0 {
		delete(b.wants, t.Name)
	}
}

// wishesOf returns what a circuit in the store wants. It is called with mu held.
func (b *store) wishesOf(c *circuit) (list []*wish) {
	for _, t := range tunnelsOf(c) {
		if w := b.wants[t.Name]; w != nil {
			list = append(list, w)
		}
	}
	return list
}

// groupOf returns the group of the tunnel from one end to another; 0 if there is
// none, or it has never had a path. It is called with mu held.
func (b *store) groupOf(c *circuit, from, to int) uint32 {
	t := b.tunnels[tunnelBetween(c, from, to).Name]
	if t.GetPrimary() == nil && t.GetStandby() == nil {
		return 0
	}
	return t.Group
}

// learn takes over tunnels as they are; all says that there are no others.
func (b *store) learn(list []*api.Tunnel, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := map[string]bool{}
	for _, t := range list {
		if strings.HasPrefix(t.Name, tunnelPrefix) {
			there[t.Name] = true
			b.tunnelChanged(t.Name, t)
		}
	}
	if all {
		for _, name := range slices.Sorted(maps.Keys(b.tunnels)) {
			if !there[name] {
				b.tunnelChanged(name, nil)
			}
		}
	}
}

// tunnelChanged follows that a tunnel is another; nil: it is gone. It is called
// with mu held.
func (b *store) tunnelChanged(name string, now *api.Tunnel) {
	old := b.tunnels[name]
	if proto.Equal(old, now) {
		return
	}
	if b.tunnels[name] = now; now == nil {
		delete(b.tunnels, name)
	}
	w := b.wants[name]
	if w == nil {
		return
	}
	before, after := usable(old), usable(now)
	for user := range w.users {
		s := b.status[user]
		if s == nil {
			continue // it is about to be entered
		}
		if before != after {
			b.again(s)
		}
		b.assess(s)
	}
}

// usable returns the group by which circuits enter a tunnel; 0 if there is none.
func usable(t *api.Tunnel) uint32 {
	if t.GetPrimary() == nil && t.GetStandby() == nil {
		return 0
	}
	return t.Group
}

// A keeper gives circuits the tunnels that they want.
type keeper struct {
	b      *store
	set    func(context.Context, *api.Tunnel) (*api.Tunnel, error)
	remove func(context.Context, string) error
	turn   chan struct{} // capacity one
	kicked chan struct{} // capacity one
}

// setters is how many tunnels are asked for at once.
const setters = 16

// keep asks for the tunnels that are lacking, and gives back those that no
// circuit wants.
func (k *keeper) keep(ctx context.Context) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return
	}
	b := k.b
	var lacking []*api.Tunnel
	var extra []string
	b.mu.Lock()
	for name, w := range b.wants {
		if t := b.tunnels[name]; t == nil || t.From != w.From || t.To != w.To || t.Protect != w.Protect {
			lacking = append(lacking, w.Tunnel)
		}
	}
	for name := range b.tunnels {
		if b.wants[name] == nil {
			extra = append(extra, name)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(lacking, func(x, y *api.Tunnel) int { return cmp.Compare(x.Name, y.Name) })
	var work sync.WaitGroup
	slots := make(chan struct{}, setters)
	for _, t := range lacking {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			now, err := k.set(ctx, t)
			if err == nil {
				b.learn([]*api.Tunnel{now}, false)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if w := b.wants[t.Name]; w != nil {
				w.err = err
				for user := range w.users {
					b.assess(b.status[user])
				}
			}
		})
	}
	work.Wait()
	for _, name := range extra {
		if k.remove(ctx, name) == nil {
			b.mu.Lock()
			b.tunnelChanged(name, nil)
			b.mu.Unlock()
		}
	}
}
