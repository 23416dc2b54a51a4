package l2vpn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A mover has circuits go other ways: away from links where a bound of theirs is broken,
// and into a second tunnel where one cannot hold the rates of all.
type mover struct {
	b   *store
	try func(context.Context, *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error)
}

const (
	brokenFor = 5 * time.Second  // that a bound is broken before its circuit is moved
	restFor   = 30 * time.Second // between two moves of a circuit; twice as long each time
	avoidFor  = 10 * time.Minute // that it avoids the links then; twice as long each time
	avoidMost = 4 * time.Hour    // at most; and after that without a move it counts anew
	sharesMax = 16               // tunnels of equal constraints between two switches
)

// run moves circuits until ctx ends.
func (m *mover) run(ctx context.Context, tight <-chan struct{}) {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tight:
		case <-tick.C:
			m.b.settle()
			m.bounds(ctx)
		}
		m.share(ctx)
	}
}

// bounds moves the circuits of which a bound is broken, and has those go back whose time
// is over.
func (m *mover) bounds(ctx context.Context) {
	b := m.b
	b.mu.Lock()
	now := b.now()
	settled := now.Add(-judgeWindow*b.cfg.ProbeInterval - brokenFor) // what was lost while a tunnel failed over says nothing of its way
	var move, back []*circuit
	left := map[string]bool{} // whose other way carries nothing
	for _, name := range slices.Sorted(maps.Keys(b.broken)) {
		if s := b.status[name]; s != nil && s.phase == inForce && now.Sub(b.broken[name]) >= brokenFor && !now.Before(s.hold) && b.tunnels.steady(s.circuit, settled) {
			move = append(move, s.circuit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.detours)) {
		c := b.status[name].circuit
		lost := slices.ContainsFunc(b.tunnels.wishesOf(c), func(w *wish) bool { // a slow way is better than none
			t := b.tunnels.known[w.Name]
			return t != nil && !carries(t) && b.tunnels.standIn(c, w.From, w.To) == nil
		})
		left[name] = lost
		if at, err := time.Parse(time.RFC3339, c.AvoidsUntil); (err != nil || !now.Before(at)) && !now.Before(b.status[name].hold) || lost {
			back = append(back, c)
		}
	}
	b.mu.Unlock()
	for _, c := range move {
		m.away(ctx, c)
	}
	for _, c := range back {
		if slices.Contains(move, c) {
			continue
		}
		if ok, _ := m.possible(ctx, c, nil); ok || left[c.Name] {
			m.put(ctx, c, nil, "", c.Share)
			continue
		}
		b.mu.Lock() // it would lose its second path
		if s := b.status[c.Name]; s != nil && s.circuit == c {
			s.hold = b.now().Add(time.Minute)
		}
		b.mu.Unlock()
	}
}

// away moves a circuit off the links of its way: off all, or else off one.
func (m *mover) away(ctx context.Context, c *circuit) {
	b := m.b
	b.mu.Lock()
	s := b.status[c.Name]
	if s == nil || s.circuit != c {
		b.mu.Unlock()
		return
	}
	links := linksUsed(c, &b.net, &b.tunnels)
	if b.now().Sub(s.hold) > avoidMost {
		s.moves = 0
	}
	hold := min(avoidFor<<min(s.moves, 10), avoidMost)
	until := b.now().Add(hold).UTC().Format(time.RFC3339)
	b.mu.Unlock()
	why := unmoved(c)
	if why == "" {
		why = "there is no other path"
		tries := [][]*api.Location{slices.Concat(c.Avoids, links)}
		for _, l := range links {
			tries = append(tries, append(slices.Clone(c.Avoids), l))
		}
		for _, avoid := range tries {
			if ok, reason := m.possible(ctx, c, avoid); !ok {
				why = cmp.Or(reason, why)
				continue
			}
			b.mu.Lock()
			s.detour = fmt.Sprintf("; it moves off %s for %v", placesOf(avoid), hold)
			s.hold = b.now().Add(min(restFor<<min(s.moves, 10), avoidMost))
			s.moves++
			delete(b.broken, c.Name)
			b.assess(s)
			b.mu.Unlock()
			m.put(ctx, c, avoid, until, c.Share)
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.hold = b.now().Add(time.Minute)
	if text := "; it stays: " + why; s.detour != text {
		s.detour = text
		b.assess(s)
	}
}

// unmoved returns why a circuit is not moved; empty if it may be.
func unmoved(c *circuit) string {
	switch {
	case c.Type == vpls:
		return "ways of a vpls are not moved"
	case c.local():
		return "both ends are at one switch"
	case overlaid(c.Transport):
		return "the nodes' own routing chooses its way"
	case len(c.Pin) > 0:
		return "its way is pinned"
	case c.NeverMove:
		return "it never moves"
	}
	return ""
}

// linksUsed returns the links of the ways that a circuit uses, by the ports that frames
// leave by.
func linksUsed(c *circuit, n *network, tunnels *tunnelTable) (list []*api.Location) {
	seen := map[flow.Location]bool{}
	for i := range c.ends {
		t := tunnels.between(c, i, len(c.ends)-1-i)
		p := t.GetPrimary()
		if t.GetActive() == "standby" {
			p = t.GetStandby()
		}
		for _, h := range p.GetHops() {
			l := &api.Location{Dpid: h.Dpid, Port: h.OutPort}
			if h.OutPort != 0 && !seen[l.Flow()] && !seen[n.farEnd(l.Flow())] {
				seen[l.Flow()] = true
				list = append(list, l)
			}
		}
	}
	return list
}

func placesOf(list []*api.Location) (text string) {
	for i, l := range list {
		if i > 0 {
			text += ", "
		}
		text += l.Flow().String()
	}
	return text
}

// possible reports whether a circuit would have both ways without some links, and why not. One
// that is protected does not give up its second path for that.
func (m *mover) possible(ctx context.Context, c *circuit, avoid []*api.Location) (bool, string) {
	b := m.b
	b.mu.Lock()
	n := c.detoured(avoid, "", c.Share)
	wants := b.wantsOf(n, nil)
	whole := !slices.ContainsFunc(b.tunnels.wishesOf(c), func(w *wish) bool { return b.tunnels.known[w.Name].GetState() != "up" })
	b.mu.Unlock()
	r, err := m.try(ctx, &api.SetTunnelsRequest{User: user, Tunnels: wants, DryRun: true})
	if err != nil {
		return false, err.Error()
	}
	for _, o := range r.Outcomes {
		if state := o.Tunnel.GetState(); o.Code != 0 || state == "down" || state == "degraded" && whole {
			return false, cmp.Or(o.Error, o.Tunnel.GetReason())
		}
	}
	return true, ""
}

// detoured returns a circuit with another way.
func (c *circuit) detoured(avoid []*api.Location, until string, share uint32) *circuit {
	n := *c
	n.Circuit = proto.CloneOf(c.Circuit)
	n.Avoids, n.AvoidsUntil, n.Share = avoid, until, share
	return &n
}

var errChanged = errors.New("it has changed meanwhile")

// put stores the way of a circuit, unless it has changed meanwhile. Its tunnels follow,
// the new ones before the old ones go.
func (m *mover) put(ctx context.Context, c *circuit, avoid []*api.Location, until string, share uint32) {
	b := m.b
	_, now, err := b.circuits.Change(ctx, c.Name, func(old *circuit) (*circuit, error) {
		if old != c {
			return nil, errChanged
		}
		return c.detoured(avoid, until, share), nil
	})
	if err != nil {
		return // what cannot be stored is tried again
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[c.Name]; s != nil && s.circuit == now {
		s.log(b, moves(c, now), service)
	}
}

// moves returns how the way of a circuit differs from before.
func moves(old, now *circuit) string {
	var list []string
	switch {
	case len(now.Avoids) > 0 && !slices.EqualFunc(now.Avoids, old.Avoids, sameLocation):
		list = append(list, fmt.Sprintf("avoids %s until %s", placesOf(now.Avoids), now.AvoidsUntil))
	case len(now.Avoids) == 0 && len(old.Avoids) > 0:
		list = append(list, "avoids no links any more")
	}
	if now.Share != old.Share {
		list = append(list, fmt.Sprintf("share: %d, now %d", old.Share, now.Share))
	}
	return strings.Join(list, "; ")
}

// share has circuits go through a further tunnel where one cannot hold the rates of all.
func (m *mover) share(ctx context.Context) {
	b := m.b
	b.mu.Lock()
	var full []*wish
	for _, w := range b.tunnels.wants {
		if w.lacksRoom(b.tunnels.known[w.Name]) {
			full = append(full, w)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(full, func(x, y *wish) int { return cmp.Compare(x.Name, y.Name) })
	for _, w := range full {
		for _, c := range m.surplus(ctx, w) {
			m.put(ctx, c, c.Avoids, c.AvoidsUntil, c.Share+1)
		}
	}
}

// surplus returns the circuits for which a tunnel has no room: those that came last, all
// but one at most.
func (m *mover) surplus(ctx context.Context, w *wish) (list []*circuit) {
	b := m.b
	b.mu.Lock()
	var sums []uint64
	var sum uint64
	for name := range w.users {
		switch c := b.status[name].circuit; {
		case !slices.Contains(b.tunnels.holds[name], w.Name): // it is about to leave
		case c.Type == vpws && c.Share+1 < sharesMax && !(c.NeverMove && b.status[name].served):
			list = append(list, c)
		default:
			sum += w.users[name]
		}
	}
	slices.SortFunc(list, func(x, y *circuit) int { return cmp.Compare(x.Id, y.Id) })
	for _, c := range list {
		sum += c.RateKbps
		sums = append(sums, sum)
	}
	want := proto.CloneOf(w.Tunnel)
	b.mu.Unlock()
	fits := func(kbps uint64) bool {
		want.ReservedKbps = kbps
		r, err := m.try(ctx, &api.SetTunnelsRequest{User: user, Tunnels: []*api.Tunnel{want}, DryRun: true})
		return err == nil && len(r.Outcomes) == 1 && r.Outcomes[0].Code == 0 && r.Outcomes[0].Tunnel.GetState() != "down"
	}
	n := len(list)
	if n == 0 || fits(sums[n-1]) || !fits(0) {
		return nil // there is nothing to move, it is seen to, or it is not room that lacks
	}
	low, high := 0, n-1 // the first low fit, the first high+1 do not
	for low < high {
		if mid := (low + high) / 2; fits(sums[mid]) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return list[max(low, 1):]
}

// roomy returns the tunnels of a circuit that is to be, and of those of equal constraints
// the first that have room.
func (s *server) roomy(ctx context.Context, t *batch, wants []*api.Tunnel) ([]*api.Tunnel, error) {
	c := t.circuits[0]
	if len(wants) == 0 || c.RateKbps == 0 || c.Type != vpws || overlaid(c.Transport) || t.refused[0] != nil {
		return wants, nil
	}
	m := &mover{b: s.b, try: s.tunnel.ask}
	b := s.b
	for share := c.Share; share < sharesMax; share++ {
		n := c.detoured(c.Avoids, "", share)
		b.mu.Lock()
		list := b.wantsOf(n, b.circuits.Get(c.Name))
		alone := !slices.ContainsFunc(list, func(t *api.Tunnel) bool { return t.Circuits > 1 })
		b.mu.Unlock()
		r, err := m.try(ctx, &api.SetTunnelsRequest{User: user, Tunnels: list, DryRun: true})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.Outcomes, func(o *api.TunnelOutcome) bool { return o.Code != 0 || o.Tunnel.GetState() == "down" }) {
			return list, nil
		}
		if alone {
			break // another would have no more room
		}
	}
	return wants, nil
}
