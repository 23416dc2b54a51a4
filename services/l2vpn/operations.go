package l2vpn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// operations are what operators have circuits do by hand.
type operations struct {
	b    *store
	move func(context.Context, *api.RerouteTunnelsRequest) (*api.RerouteTunnelsResponse, error)
}

// swap answers SwapCircuit.
func (o *operations) swap(ctx context.Context, q *api.SwapCircuitRequest) (*api.CircuitMoves, error) {
	b, name := o.b, q.GetName()
	b.mu.Lock()
	s := b.status[name]
	why := ""
	switch {
	case s == nil:
		b.mu.Unlock()
		return nil, missing(name)
	case s.circuit.Type == vpls || s.circuit.local():
		why = "it has no standby path to swap with: want a vpws between two switches"
	case !s.circuit.Protect:
		why = fmt.Sprintf("it has no standby path: weft l2vpn set %s --protect gives it one", name)
	}
	b.mu.Unlock()
	if why != "" {
		return nil, api.Errorf(codes.FailedPrecondition, "circuit %s: %s", name, why)
	}
	r, err := o.of(ctx, []string{name}, "swap", true)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(r.Moves, func(m *api.CircuitMove) bool { return m.Name == name }); i >= 0 && !r.Moves[i].Moved {
		return nil, api.Errorf(codes.FailedPrecondition, "circuit %s: it stays: %s", name, r.Moves[i].Reason)
	}
	return r, nil
}

// reroute answers RerouteCircuits.
func (o *operations) reroute(ctx context.Context, q *api.RerouteCircuitsRequest) (*api.CircuitMoves, error) {
	names := slices.Clone(q.GetNames())
	if (len(names) == 0) == (q.GetViaLink() == "") {
		return nil, api.Errorf(codes.InvalidArgument, "want names of circuits, or via_link, a link whose circuits are meant")
	}
	link, err := linkName{}, error(nil)
	if q.ViaLink != "" {
		if link, err = parseLink(q.ViaLink); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "via_link: %w", err)
		}
	}
	b := o.b
	b.mu.Lock()
	if q.ViaLink != "" {
		names = o.over(link)
	}
	for _, name := range names {
		if b.status[name] == nil {
			b.mu.Unlock()
			return nil, missing(name)
		}
	}
	b.mu.Unlock()
	return o.of(ctx, names, "reroute", false)
}

// moveMost is how many tunnels are asked to move at once; tunnels takes 4,096 at most.
const moveMost = 1000

// of moves the tunnels of circuits, and says what becomes of these and of those that share them.
func (o *operations) of(ctx context.Context, names []string, what string, swap bool) (*api.CircuitMoves, error) {
	b, r := o.b, &api.CircuitMoves{}
	before := map[string][]string{}
	tunnels := map[string]bool{}
	b.mu.Lock()
	for _, name := range names {
		s := b.status[name]
		if s == nil {
			continue // deleted just now
		}
		before[name] = nil
		for _, w := range b.tunnels.wishesOf(s.circuit) {
			tunnels[w.Name] = true
			for user := range w.users {
				before[user] = nil
			}
		}
	}
	for name := range before {
		if s := b.status[name]; s != nil {
			before[name] = s.message(b.now(), &b.net, &b.tunnels).Path
		}
	}
	b.mu.Unlock()
	why := map[string]string{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(tunnels)), moveMost) {
		done, err := o.move(ctx, &api.RerouteTunnelsRequest{Names: some, User: user, Swap: swap})
		if err != nil {
			return nil, err
		}
		var now []*api.Tunnel
		for _, x := range done.Outcomes {
			if why[x.Name] = x.Reason; x.Tunnel != nil {
				now = append(now, x.Tunnel)
			}
		}
		b.learn(now, false)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		s := b.status[name]
		if s == nil {
			continue
		}
		m := &api.CircuitMove{Name: name, From: before[name], To: s.message(b.now(), &b.net, &b.tunnels).Path, Reason: "both ends are at one switch"}
		for i, w := range b.tunnels.wishesOf(s.circuit) {
			if i == 0 || m.Reason == "" {
				m.Reason = why[w.Name]
			}
		}
		if m.Moved = !slices.Equal(m.From, m.To); m.Moved {
			m.Reason = ""
			s.log(b, fmt.Sprintf("%s: its way was %s", what, strings.Join(m.From, " ")), client)
		}
		r.Moves = append(r.Moves, m)
	}
	return r, nil
}

// A linkName is two ends of a link, as somebody has named it; a port of 0 is any.
type linkName [2]flow.Location

// parseLink reads SWITCH-SWITCH or SWITCH:PORT-SWITCH:PORT, also with / before the ports.
func parseLink(text string) (l linkName, err error) {
	a, z, _ := strings.Cut(text, "-")
	for i, end := range []string{a, z} {
		if strings.Count(end, ":") == 1 || strings.Contains(end, "/") { // more colons are those of a DPID
			l[i], err = flow.ParseLocation(end)
		} else {
			l[i].Switch, err = flow.ParseDPID(end)
		}
		if err != nil {
			return l, fmt.Errorf("%.80q: want SWITCH-SWITCH or SWITCH:PORT-SWITCH:PORT, such as 1-4 or 1:9-4:8", text)
		}
	}
	return l, nil
}

// has reports whether frames that leave a switch by a port for the next pass the link.
func (l linkName) has(from, to flow.Location) bool {
	is := func(named, at flow.Location) bool {
		return named.Switch == at.Switch && (named.Port == 0 || named.Port == at.Port)
	}
	return is(l[0], from) && is(l[1], to) || is(l[0], to) && is(l[1], from)
}

// over returns the circuits whose ways lead over a link. It is called with b.mu held.
func (o *operations) over(l linkName) (names []string) {
	b := o.b
	for name, s := range b.status {
		if slices.ContainsFunc(b.tunnels.of(s.circuit), func(t *api.Tunnel) bool {
			p := t.GetPrimary()
			if t.GetActive() == "standby" {
				p = t.GetStandby()
			}
			hops := p.GetHops()
			for i := 1; i < len(hops); i++ {
				from := (&api.Location{Dpid: hops[i-1].Dpid, Port: hops[i-1].OutPort}).Flow()
				to := (&api.Location{Dpid: hops[i].Dpid, Port: hops[i].InPort}).Flow()
				if l.has(from, to) {
					return true
				}
			}
			return false
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
