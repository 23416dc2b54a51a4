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

// A wish is a tunnel that circuits want: those between the same switches, with
// the same constraints, share it.
type wish struct {
	*api.Tunnel                   // without what is booked on it
	users       map[string]uint64 // circuits, and what each books, kbit/s
	kbps        uint64            // the sum
	err         error             // why it cannot be had as it should be
}

// asked returns the tunnel as it should be, with what its circuits book.
func (w *wish) asked() *api.Tunnel {
	t := proto.CloneOf(w.Tunnel)
	t.ReservedKbps, t.Circuits = w.booked(), uint32(len(w.users))
	return t
}

// booked returns the sum of the rates of the circuits that want a tunnel; nothing
// where the nodes' own routing chooses the way.
func (w *wish) booked() uint64 {
	if overlaid(w.Transport) {
		return 0
	}
	return w.kbps
}

// unbook keeps a tunnel wanted for a circuit that books nothing on it any more.
func (w *wish) unbook(c *circuit) {
	w.kbps -= w.users[c.Name]
	w.users[c.Name] = 0
}

// met reports whether a tunnel is what is wished.
func (w *wish) met(t *api.Tunnel) bool {
	return t != nil && t.From == w.From && t.To == w.To && t.ReservedKbps == w.booked()
}

// tunnelJoining returns the tunnel that a circuit wants from one switch to another.
func tunnelJoining(c *circuit, a, z flow.DPID) *api.Tunnel {
	t := &api.Tunnel{From: a.String(), To: z.String(), Protect: c.Protect, MaxDelayUs: uint64(c.MaxDelayUs),
		IncludeAny: c.IncludeAny, IncludeAll: c.IncludeAll, ExcludeAny: c.ExcludeAny,
		SetupPriority: c.Priority, Transport: c.Transport, RevertAfterS: c.RevertAfterS, User: user, ExcludeLinks: c.Avoids}
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
		diverse = b.holds[o.circuit.Name]
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

// wish has a circuit want tunnels, or no more those that it has wanted. It is called
// with mu held.
func (b *store) wish(c *circuit, list []*api.Tunnel, enter bool) {
	if !enter {
		for _, name := range b.holds[c.Name] {
			b.wishFor(&api.Tunnel{Name: name}, c, false)
		}
		delete(b.holds, c.Name)
		return
	}
	if b.status[c.Name].phase != inForce {
		return
	}
	for _, t := range list {
		b.wishFor(t, c, true)
		if !slices.Contains(b.holds[c.Name], t.Name) {
			b.holds[c.Name] = append(b.holds[c.Name], t.Name)
		}
	}
}

// wishFor has a circuit want a tunnel, or no more. It is called with mu held.
func (b *store) wishFor(t *api.Tunnel, c *circuit, enter bool) {
	w := b.wants[t.Name]
	switch {
	case w == nil && !enter:
		return
	case w == nil:
		w = &wish{Tunnel: t, users: map[string]uint64{}}
		b.wants[t.Name] = w
	}
	b.due[t.Name] = true
	w.kbps -= w.users[c.Name]
	delete(w.users, c.Name)
	if enter {
		w.users[c.Name] = c.RateKbps
		w.kbps += c.RateKbps
	}
	if len(w.users) == 0 {
		delete(b.wants, t.Name)
	}
}

// wishesOf returns what a circuit in the store wants. It is called with mu held.
func (b *store) wishesOf(c *circuit) (list []*wish) {
	for _, name := range b.holds[c.Name] {
		if w := b.wants[name]; w != nil {
			list = append(list, w)
		}
	}
	return list
}

// tunnelBetween returns the tunnel from one end to another as it is; nil if there is
// none. It is called with mu held.
func (b *store) tunnelBetween(c *circuit, from, to int) *api.Tunnel {
	a, z := c.ends[from].at.Switch.String(), c.ends[to].at.Switch.String()
	for _, name := range b.holds[c.Name] {
		w := b.wants[name]
		if w == nil || w.From != a || w.To != z {
			continue
		}
		if t := b.tunnels[name]; carries(t) {
			return t
		}
		if t := b.standIn(b.status[c.Name], a, z); t != nil {
			return t
		}
		return b.tunnels[name]
	}
	return nil
}

// groupOf returns the group of the tunnel from one end to another; 0 if there is
// none, or it has never had a path. It is called with mu held.
func (b *store) groupOf(c *circuit, from, to int) uint32 { return usable(b.tunnelBetween(c, from, to)) }

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
		for _, name := range slices.Sorted(maps.Keys(b.tunnels)) {
			if !there[name] {
				b.tunnelChanged(name, nil)
			}
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
	b.due[name] = true
	w := b.wants[name]
	if w == nil || alike(old, now) {
		return
	}
	before, after := usable(old), usable(now)
	for user := range w.users {
		s := b.status[user]
		if s == nil {
			continue // it is about to be entered
		}
		if before != after || len(s.former) > 0 {
			b.again(s)
		}
		b.assess(s)
	}
}

// alike reports whether two tunnels differ at most in what circuits book on them, and in
// how many these are.
func alike(x, y *api.Tunnel) bool {
	if x == nil || y == nil {
		return x == y
	}
	x = proto.CloneOf(x)
	x.ReservedKbps, x.Circuits = y.ReservedKbps, y.Circuits
	return proto.Equal(x, y)
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
		for name := range b.wants {
			b.due[name] = true
		}
		for name := range b.tunnels {
			b.due[name] = true
		}
	}
	req := &api.SetTunnelsRequest{User: user}
	for name := range b.due {
		switch w, t := b.wants[name], b.tunnels[name]; {
		case w == nil && t == nil, w != nil && w.met(t) && (!all || int(t.Circuits) == len(w.users)):
			if delete(b.due, name); w != nil && w.err != nil {
				w.err = nil // what was refused is not wanted any more
				for user := range w.users {
					b.assess(b.status[user])
				}
			}
		case w == nil:
			req.Delete = append(req.Delete, name)
		default:
			req.Tunnels = append(req.Tunnels, w.asked())
		}
	}
	b.mu.Unlock()
	slices.SortFunc(req.Tunnels, func(x, y *api.Tunnel) int { return cmp.Compare(x.Name, y.Name) })
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
		if w := b.wants[t.Name]; w != nil {
			same := fmt.Sprint(w.err) == fmt.Sprint(why)
			if w.err = why; !same {
				b.due[t.Name] = true
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
