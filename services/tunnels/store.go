package tunnels

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// store is the tunnels and what is known of the network.
type store struct {
	cfg     *Config
	now     func() time.Time
	declare func(...flow.DPID) // declares the entries of switches anew
	kick    func()             // has tunnels in need seen to
	notify  func()             // has changes published

	mu       object.Guard // guards the following
	tunnels  *object.Store[*tunnel]
	bypasses *object.Store[*tunnel]
	status   map[string]*status
	at       map[flow.DPID]map[string]bool // the tunnels of a switch
	links    linkTable
	sessions map[flow.DPID]map[flow.Port]bool // whether BFD sessions are up that have been
	dead     map[flow.Location]bool           // the ports whose sessions are not
	booked   bookings
	needs    map[string]*status // the tunnels to be seen to
	room     bool               // something is booked no more since it was looked which tunnels are to be seen to
	improved improvements
	net      nib.Snapshot
	over     map[flow.Location]map[string]bool // the tunnels that leave by a port
	crossed  crossings
	labels   *labels
	groups   map[uint32]bool
	group    uint32                 // all below are in use
	news     map[string]bool        // the tunnels that may differ from what was published
	told     map[string]*api.Tunnel // as last published
	pairs    pairTable
	steering *steering
}

func newStore(cfg *Config, bucket, bypasses object.Bucket, now func() time.Time, bad func(name string, err error)) *store {
	b := &store{cfg: cfg, now: now, declare: func(...flow.DPID) {}, kick: func() {}, notify: func() {},
		news: map[string]bool{}, told: map[string]*api.Tunnel{}, needs: map[string]*status{}, improved: improvements{holds: map[time.Duration]*held{}}, group: flow.TunnelGroups,
		status: map[string]*status{}, at: map[flow.DPID]map[string]bool{}, links: newLinkTable(), booked: bookings{},
		crossed:  newCrossings(),
		sessions: map[flow.DPID]map[flow.Port]bool{}, dead: map[flow.Location]bool{},
		over: map[flow.Location]map[string]bool{}, pairs: newPairTable(), labels: newLabels(), groups: map[uint32]bool{}}
	b.tunnels = object.New(&b.mu, bucket, object.Kind[*tunnel]{
		What: "tunnel", Many: "tunnels", Most: func() int { return cfg.Tunnels }, Raise: "tunnels.tunnels",
		Name:    func(t *tunnel) string { return t.name },
		Format:  object.Messages(parse, (*tunnel).message),
		Changed: b.changed, Bad: bad,
	})
	b.bypasses = object.New(&b.mu, bypasses, object.Kind[*tunnel]{
		What: "bypass", Many: "bypasses", Most: func() int { return bypassMost },
		Name:    func(t *tunnel) string { return t.name },
		Format:  object.Messages(parseBypass, (*tunnel).message),
		Changed: b.changed, Bad: bad,
	})
	b.steering = newSteering(b)
	return b
}

// changed follows a change of a tunnel. It is called with mu held.
func (b *store) changed(old, now *tunnel) {
	name := cmp.Or(old, now).name
	b.differs(name)
	s := b.status[name]
	if s != nil {
		b.index(s, false)
		if now == nil || now.wanted.RevertAfterS != old.wanted.RevertAfterS || now.overlay() != old.overlay() {
			b.improved.unhold(s)
		}
	}
	var touched []flow.DPID
	switch {
	case now == nil:
		if b.booked.remove(s); old.wanted.ReservedKbps > 0 {
			freed(b)
		}
		delete(b.status, name)
		delete(b.needs, name)
		delete(b.groups, old.group)
		b.group = min(b.group, old.group)
		for _, p := range s.installed() {
			b.labels.release(p)
			touched = append(touched, switchesOf(p)...)
		}
		b.declare(append(touched, old.from)...)
		b.kick()
		return
	case s == nil:
		s = &status{tunnel: now, entered: now, since: b.now(), state: "down", reason: "its path is being sought"}
		b.status[name] = s
	default:
		for _, p := range s.tunnel.paths(onPrimary) {
			if !slices.ContainsFunc(now.paths(onPrimary), func(o lsp) bool { return slices.Equal(o, p) }) {
				s.retired = append(s.retired, p)
			}
		}
		s.reroute = s.reroute || !sameDemand(old, now)
		s.tunnel = now
	}
	b.improved.hold(s, b.now())
	b.groups[now.group] = true
	for _, p := range now.paths(onPrimary) {
		for _, h := range p {
			if h.label != 0 {
				b.labels.mark(h.sw, h.label)
			}
		}
		touched = append(touched, switchesOf(p)...)
	}
	b.index(s, true)
	b.book(s)
	b.needs[name] = s
	if old == nil && now.primary != nil { // of an earlier run
		b.assess(s, "")
	}
	b.declare(append(touched, now.from)...)
	b.kick()
}

// index enters a tunnel at its switches and ports, or takes it out. It is called
// with mu held.
func (b *store) index(s *status, enter bool) {
	s.pieces = nil
	over := s.tunnel.overlay()
	for _, p := range append(s.installed(), lsp{{sw: s.tunnel.from}}) {
		over = over || p.overlay()
		for _, h := range p {
			note(b.at, h.sw, s.tunnel.name, enter)
		}
		for _, at := range p.via() {
			note(b.over, at, s.tunnel.name, enter)
		}
	}
	if delete(b.pairs.overlays, s.tunnel.name); over && enter {
		b.pairs.overlays[s.tunnel.name] = s
	}
	b.crossed.enter(s, enter)
}

func switchesOf(p lsp) (list []flow.DPID) {
	for _, h := range p {
		list = append(list, h.sw)
	}
	return list
}

// set stores what is wanted of a tunnel, and returns what became of it. One with the
// same ends keeps its group and its paths.
func (b *store) set(ctx context.Context, t *tunnel) (result string, err error) {
	_, _, err = b.tunnels.Change(ctx, t.name, func(old *tunnel) (now *tunnel, err error) {
		result, now, err = b.admit(old, t)
		return now, err
	})
	return result, err
}

// admit returns what a tunnel becomes that is wanted as t. It is called with mu
// held.
func (b *store) admit(old, t *tunnel) (result string, now *tunnel, err error) {
	if old == nil {
		for b.groups[b.group] {
			b.group++
		}
		t.group = b.group
		return made, t, nil
	}
	if err := old.keptBy(t.wanted.User); err != nil {
		return "", nil, err
	}
	t.group = old.group
	if old.from != t.from {
		return "", nil, api.Errorf(codes.FailedPrecondition, "tunnel %s begins at %v: delete it first", t.name, old.from)
	}
	if old.to == t.to {
		t.primary, t.standby, t.optimised = old.primary, old.standby, old.optimised
	}
	if t.equal(old) {
		return unchanged, old, nil
	}
	return changed, t, nil
}

// keptBy returns an error if somebody else than user keeps the tunnel.
func (t *tunnel) keptBy(user string) error {
	switch by := t.wanted.User; {
	case by == user:
		return nil
	case by == "":
		return api.Errorf(codes.FailedPrecondition, "tunnel %s is an operator's: choose another name", t.name)
	default:
		return api.Errorf(codes.FailedPrecondition, "tunnel %s is kept by %s: change it there", t.name, by)
	}
}

// remove deletes a tunnel of a user, and returns it as it was; nil if there was none.
func (b *store) remove(ctx context.Context, name, user string) (was *api.Tunnel, err error) {
	if err := api.CheckName("name", name); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	_, _, err = b.tunnels.Change(ctx, name, func(old *tunnel) (*tunnel, error) {
		if old == nil {
			return nil, nil
		}
		was = b.message(b.status[name])
		if by := b.steering.through(name); by != "" {
			return nil, api.Errorf(codes.FailedPrecondition, "tunnel %s: steer %s leads packets through it: delete that first", name, by)
		}
		return nil, old.keptBy(user)
	})
	if err != nil {
		return nil, err
	}
	return was, nil
}

// get returns a tunnel with its state; nil if there is none.
func (b *store) get(name string) *api.Tunnel {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[name]; s != nil {
		return b.message(s)
	}
	return nil
}

// list returns the tunnels by name, without bypasses.
func (b *store) list() []*api.Tunnel {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*api.Tunnel, 0, len(b.status))
	for _, name := range slices.Sorted(maps.Keys(b.status)) {
		if s := b.status[name]; s.tunnel.around == nil {
			list = append(list, b.message(s))
		}
	}
	return list
}

// message returns a tunnel with its state. It is called with mu held.
func (b *store) message(s *status) *api.Tunnel {
	m := s.tunnel.message()
	b.bypassed(s.tunnel, m.Primary, s.tunnel.primary)
	b.bypassed(s.tunnel, m.Standby, s.tunnel.standby)
	m.State, m.Reason, m.Since = s.state, s.reason, s.since.UTC().Format(time.RFC3339)
	if s.state != "down" {
		m.DelayUs = b.links.delay(s.path(s.active))
		m.Active = [...]string{"primary", "standby"}[s.active]
		for _, h := range s.path(s.active) {
			m.Path = append(m.Path, h.sw.String())
			if h.label != 0 {
				m.Labels = append(m.Labels, h.label)
			}
		}
	}
	return m
}

// judge has the head use a path that is whole, and the tunnel seen to if it lacks
// one. It is called with mu held.
func (b *store) judge(s *status) {
	if other := 1 - s.active; !b.whole(s.path(s.active)) && b.whole(s.path(other)) {
		s.active = other
		b.declare(s.tunnel.from)
	}
	b.book(s)
	b.assess(s, "")
	if s.state != "up" || b.links.drained(s.tunnel.primary) || b.links.drained(s.tunnel.standby) {
		b.need(s, time.Time{})
		b.kick()
	}
}

// assess sets the state of a tunnel; why is the reason if it lacks a path. It is
// called with mu held.
func (b *store) assess(s *status, why string) {
	s.assess(b, why)
	b.differs(s.tunnel.name)
}

func (s *status) assess(b *store, why string) {
	primary, standby := b.whole(s.entered.primary), b.whole(s.entered.standby)
	state := "up"
	switch {
	case !primary && !standby:
		state, why = "down", cmp.Or(why, s.broken(b))
	case !b.pairs.suits(s.tunnel, s.path(s.active)):
		state, why = "degraded", fmt.Sprintf("it goes the way that it had before transport %s was wanted: %s", s.tunnel.wanted.Transport, cmp.Or(why, "the new way is being made"))
	case s.tunnel.protect && !(primary && standby):
		state, why = "degraded", cmp.Or(why, "a link of one of its paths is down")
	case s.tunnel.protect:
		if at, shared := share(s.entered.primary, s.entered.standby); shared {
			state, why = "degraded", fmt.Sprintf("both paths leave switch %v by port %v: there is no other way", at.Switch, at.Port)
		} else {
			why = ""
		}
	default:
		why = ""
	}
	if state == "up" && (b.links.drained(s.entered.primary) || b.links.drained(s.entered.standby)) {
		if why = "a link of its path is drained"; s.lack != "" {
			why += ", and it has no other: " + s.lack
		}
	}
	if late := s.late(b); state == "up" && late != "" {
		state, why = "degraded", late
	}
	if s.state != state {
		s.since = b.now()
	}
	s.state, s.reason = state, why
}

// share returns a port by which both paths leave.
func share(p, q lsp) (at flow.Location, shared bool) {
	for _, at := range p.via() {
		if slices.Contains(q.via(), at) {
			return at, true
		}
	}
	return at, false
}

// converged has all tunnels that lack a path seen to: paths computes on another
// topology now.
func (b *store) converged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at := range b.crossed.fars {
		b.crossed.stale[at] = true
	}
	for _, s := range b.status {
		if s.tunnel.around != nil {
			b.crossed.stale[*s.tunnel.around] = true
		}
		if b.assess(s, s.lack); s.state != "up" || b.links.drained(s.tunnel.primary) || b.links.drained(s.tunnel.standby) {
			b.need(s, time.Time{})
			b.kick()
		}
	}
}

// timelyFirst puts paths within what is wanted of delay before those that are tolerated. It is called with mu held.
func timelyFirst(b *store, t *tunnel, paths []lsp) {
	if w := t.wanted; w.ToleratedDelayUs > 0 {
		late := func(p lsp) int {
			if b.links.delay(p) > w.MaxDelayUs {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(paths, func(p, q lsp) int { return late(p) - late(q) })
	}
}

// late returns why the path in use takes longer than is wanted, though it is tolerated; empty if it does not. It is
// called with mu held.
func (s *status) late(b *store) string {
	w := s.tunnel.wanted
	if w.ToleratedDelayUs == 0 || s.entered == nil {
		return ""
	}
	if us := b.links.delay(s.path(s.active)); us > w.MaxDelayUs {
		return fmt.Sprintf("its path takes %d µs, and no path is within max_delay_us, %d", us, w.MaxDelayUs)
	}
	return ""
}
