package l2vpn

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// user is who keeps the tunnels of circuits.
const user = "l2vpn"

// tunnelJoining returns the tunnel that a circuit wants from one switch to another.
func tunnelJoining(c *circuit, a, z flow.DPID) *api.Tunnel {
	t := &api.Tunnel{From: a.String(), To: z.String(), Protect: c.Protect, MaxDelayUs: uint64(c.MaxDelayUs),
		IncludeAny: c.IncludeAny, IncludeAll: c.IncludeAll, ExcludeAny: c.ExcludeAny,
		SetupPriority: c.Priority, Transport: c.Transport, RevertAfterS: c.RevertAfterS, User: user, ExcludeLinks: c.Avoids, NeverMove: c.NeverMove,
		ToleratedDelayUs: uint64(c.ToleratedDelayUs)}
	if c.Strategy != "cost" { // so that names of tunnels stay
		t.Strategy = c.Strategy
	}
	t.Name = tunnelName(t, a, z, c.Share)
	return t
}

// tunnelsOf returns the tunnels that a circuit wants; of a vpws that from the first end
// to the second first. It is called with mu held.
func (b *store) tunnelsOf(c *circuit) (list []*api.Tunnel) {
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
	if c.local() {
		return nil
	}
	var diverse []string
	if o := b.status[c.DiverseFrom]; o != nil && o.circuit.Type != vpls {
		diverse = b.tunnels.holds[o.circuit.Name]
	}
	for i := range c.ends {
		a, z := c.ends[i].at.Switch, c.ends[1-i].at.Switch
		t := tunnelJoining(c, a, z)
		t.Pin = slices.Clone(c.Pin)
		if i > 0 {
			slices.Reverse(t.Pin)
		}
		if len(diverse) > i {
			t.DiverseFrom = diverse[i]
		}
		t.Name = ""
		t.Name = tunnelName(t, a, z, c.Share)
		list = append(list, t)
	}
	return list
}

// tunnelName returns the name of a tunnel, by its ends, its constraints and which of
// several alike it is.
func tunnelName(t *api.Tunnel, from, to flow.DPID, share uint32) string {
	name := fmt.Sprintf("%s-%x-%x", user, uint64(from), uint64(to))
	if share > 0 {
		name += fmt.Sprintf("-%d", share)
	}
	plain := &api.Tunnel{From: t.From, To: t.To, Transport: "mpls", User: user}
	if proto.Equal(t, plain) {
		return name
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
	if err != nil {
		return name
	}
	h := fnv.New32a()
	h.Write(text)
	return fmt.Sprintf("%s-%08x", name, h.Sum32())
}

// wish has a circuit want tunnels if its time has come, or no more those that it has wanted. It
// is called with mu held.
func (b *store) wish(c *circuit, list []*api.Tunnel, enter bool) {
	switch {
	case !enter:
		b.tunnels.release(c)
	case b.status[c.Name].phase == inForce:
		b.tunnels.wish(c, list)
	}
}

// tunnelChanged follows that a tunnel is another; nil: it is gone. It is called
// with mu held.
func (b *store) tunnelChanged(name string, now *api.Tunnel) {
	old, changed := b.tunnels.update(name, now)
	w := b.tunnels.wants[name]
	if !changed || w == nil || alike(old, now) {
		return
	}
	before, after := usable(old), usable(now)
	for user := range w.users {
		s := b.status[user]
		if s == nil {
			continue // it is about to be entered
		}
		if before != after || len(b.tunnels.former[user]) > 0 {
			b.again(s)
		}
		b.assess(s)
	}
}

// learn takes over tunnels as they are; all says that there are no others.
func (b *store) learn(list []*api.Tunnel, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := map[string]bool{}
	for _, t := range list {
		if t.User == user {
			there[t.Name] = true
			b.tunnelChanged(t.Name, t)
		}
	}
	if all {
		for _, name := range slices.Sorted(maps.Keys(b.tunnels.known)) {
			if !there[name] {
				b.tunnelChanged(name, nil)
			}
		}
		if !b.tunnels.told {
			b.tunnels.told = true
			b.assessAll()
		}
	}
}

// gone follows that a tunnel is deleted.
func (b *store) gone(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tunnelChanged(name, nil)
	b.kick()
}

// ways returns the switches of a tunnel's path in use, and of its other.
func ways(t *api.Tunnel) (path, standby []string) {
	for _, p := range []*api.LabelSwitchedPath{t.GetPrimary(), t.GetStandby()} {
		var way []string
		for _, h := range p.GetHops() {
			way = append(way, h.Dpid)
		}
		switch {
		case len(way) == 0:
		case slices.Equal(way, t.Path) || len(t.Path) == 0 && path == nil:
			path = way
		default:
			standby = way
		}
	}
	return path, standby
}

// A keeper gives circuits the tunnels that they want.
type keeper struct {
	b      *store
	list   func(context.Context) ([]*api.Tunnel, error)
	ask    func(context.Context, *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error)
	turn   chan struct{} // capacity one
	kicked chan struct{} // capacity one
}

// most is how many tunnels are asked for at once.
const most = 1000

// keep asks for the tunnels that are lacking, or are not as they should be, and gives
// back those that no circuit wants. Where all is said, it looks at all tunnels, and those
// count as such whose number of circuits is another; else at those of which something has
// changed, so that a circuit costs the same however many others there are.
func (k *keeper) keep(ctx context.Context, all bool) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return
	}
	b := k.b
	b.mu.Lock()
	if all {
		for name := range b.tunnels.wants {
			b.tunnels.due[name] = true
		}
		for name := range b.tunnels.known {
			b.tunnels.due[name] = true
		}
	}
	req, had := &api.SetTunnelsRequest{User: user}, map[string]uint64{} // what they book
	for name := range b.tunnels.due {
		switch w, t := b.tunnels.wants[name], b.tunnels.known[name]; {
		case w == nil && t == nil, w != nil && w.met(t) && (!all || int(t.Circuits) == len(w.users)):
			if delete(b.tunnels.due, name); w != nil && w.err != nil {
				w.err = nil // what was refused is not wanted any more
				for user := range w.users {
					b.assess(b.status[user])
				}
			}
		case w == nil:
			req.Delete = append(req.Delete, name)
		default:
			req.Tunnels = append(req.Tunnels, w.asked())
			had[name] = t.GetReservedKbps()
		}
	}
	b.mu.Unlock()
	frees := func(t *api.Tunnel) int { // what books less than before comes first, as others may lack that
		if old := had[t.Name]; old > t.ReservedKbps {
			return 0
		}
		return 1
	}
	slices.SortFunc(req.Tunnels, func(x, y *api.Tunnel) int {
		return cmp.Or(cmp.Compare(frees(x), frees(y)), cmp.Compare(x.Name, y.Name))
	})
	for part := range slices.Chunk(req.Tunnels, most) {
		k.set(ctx, &api.SetTunnelsRequest{User: user, Tunnels: part})
	}
	for part := range slices.Chunk(req.Delete, most) {
		k.set(ctx, &api.SetTunnelsRequest{User: user, Delete: part})
	}
}

// set has tunnels set.
func (k *keeper) set(ctx context.Context, req *api.SetTunnelsRequest) {
	r, err := k.ask(ctx, req)
	b := k.b
	for i, t := range req.Tunnels {
		why := err
		if err == nil {
			o := r.Outcomes[i]
			if why = nil; o.Code != 0 {
				why = api.Errorf(codes.Code(o.Code), "%s", o.Error)
			}
			if o.Tunnel != nil && o.Code == 0 {
				b.learn([]*api.Tunnel{o.Tunnel}, false)
			}
		}
		b.mu.Lock()
		if w := b.tunnels.wants[t.Name]; w != nil {
			same := fmt.Sprint(w.err) == fmt.Sprint(why)
			if w.err = why; !same {
				b.tunnels.due[t.Name] = true
				b.tight()
				for user := range w.users {
					b.assess(b.status[user])
				}
			}
		}
		b.mu.Unlock()
	}
	for i, name := range req.Delete {
		if err == nil && r.Outcomes[len(req.Tunnels)+i].Code == 0 {
			b.mu.Lock()
			b.tunnelChanged(name, nil)
			b.mu.Unlock()
		}
	}
}
