package tunnels

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A quest is a tunnel whose paths are sought.
type quest struct {
	t         *tunnel
	kept      lsp // of a protected tunnel: the path beside which a second is sought; nil: all are sought
	found     []lsp
	worth     worth // of those found
	takes     []*api.PathPreemption
	why       string // nothing is found
	displaced string // as of the tunnel when it began
	own       bool   // all are sought, and what it books now counts for it
}

// demandsMax is how many demands one call of paths may have.
const demandsMax = 4096

// kinds are what two paths of a tunnel do not share, the best first.
var kinds = [][]string{{"switches", "risk_groups"}, {"links", "risk_groups"}, {"links"}}

// seek finds the paths of quests, which share what is not booked. Bookings of the
// tunnels themselves count, unless they are taken out before. It returns what the found
// paths book.
func (r *repairer) seek(ctx context.Context, quests []*quest, booked []*api.LinkBooking) (added []*api.LinkBooking, err error) {
	quests = r.overlays(ctx, quests)
	for level := 0; len(quests) > 0; level++ {
		var open []*quest
		for part := range slices.Chunk(quests, demandsMax) {
			req := &api.ComputePathsRequest{Bookings: slices.Concat(booked, added)}
			var asked []*quest
			for _, q := range part {
				d, err := r.demand(q, level)
				switch {
				case err != nil:
					q.why = err.Error()
				case d != nil:
					asked, req.Demands = append(asked, q), append(req.Demands, d)
				}
			}
			if len(asked) == 0 {
				continue
			}
			resp, err := r.compute(ctx, req)
			if err != nil {
				return added, fmt.Errorf("path not found: %w", err)
			}
			for i, q := range asked {
				if err := q.take(resp.Answers[i]); err != nil {
					q.why = err.Error()
				}
				if len(q.found) == 0 {
					open = append(open, q)
					continue
				}
				_, hold := priorities(q.t.wanted)
				if kbps := q.t.wanted.ReservedKbps; kbps > 0 {
					for _, p := range q.found {
						for _, at := range p.via() {
							added = append(added, &api.LinkBooking{Src: api.NewLocation(at), Kbps: kbps, Priority: hold})
						}
					}
				}
			}
		}
		quests = open
	}
	return added, nil
}

// take takes the answer of paths.
func (q *quest) take(a *api.PathAnswer) error {
	q.found, q.worth, q.takes, q.why = nil, worth{}, a.Preempts, a.Reason
	for _, m := range a.Paths {
		p, err := parsePath(m)
		if err != nil {
			return err
		}
		if len(p) < 2 || p[0].sw != q.t.from || p[len(p)-1].sw != q.t.to {
			return fmt.Errorf("paths has answered with a path that does not lead from %v to %v", q.t.from, q.t.to)
		}
		q.found = append(q.found, p)
		q.worth.cost += m.Cost
		q.worth.delay += m.DelayUs
	}
	if len(q.found) == 0 && q.why == "" {
		q.why = fmt.Sprintf("there is no path from %v to %v", q.t.from, q.t.to)
	}
	return nil
}

// demandFor returns what paths is asked at an attempt.
func (r *repairer) demandFor(q *quest, a attempt) (*api.PathDemand, error) {
	w, level := q.t.wanted, a.level
	setup, hold := priorities(w)
	d := &api.PathDemand{
		Name: w.Name, Src: w.From, Dst: w.To, BandwidthKbps: w.ReservedKbps, SetupPriority: &setup, HoldPriority: &hold,
		MaxDelayUs: a.us, Minimise: minimised[w.Strategy], MaxHops: w.MaxHops, ExcludeSwitches: w.ExcludeNodes, ExcludeLinks: w.ExcludeLinks, ExcludeRiskGroups: w.ExcludeRiskGroups,
		IncludeAny: w.IncludeAny, IncludeAll: w.IncludeAll, ExcludeAny: w.ExcludeAny,
	}
	for _, sw := range w.Pin {
		d.Via = append(d.Via, &api.PathVia{Dpid: sw})
	}
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	d.ExcludeLinks = slices.Clone(d.ExcludeLinks)
	for _, ports := range []map[flow.Location]bool{b.links.drains, b.dead} { // paths may not know yet
		for at := range ports {
			d.ExcludeLinks = append(d.ExcludeLinks, api.NewLocation(at))
		}
	}
	if at := q.t.around; at != nil {
		d.ExcludeLinks = append(d.ExcludeLinks, api.NewLocation(*at))
		d.ExcludeRiskGroups = b.links.risks(crossing{*at, q.t.to})
	}
	if w.DiverseFrom != "" {
		s := b.status[w.DiverseFrom]
		if s == nil {
			return nil, fmt.Errorf("diverse_from: there is no tunnel %s", w.DiverseFrom)
		}
		if s.tunnel.overlay() {
			return nil, fmt.Errorf("diverse_from: nobody knows the way of tunnel %s, since the nodes' own routing chooses it", w.DiverseFrom)
		}
		for _, p := range s.tunnel.paths(onPrimary) {
			d.Apart = append(d.Apart, &api.PathApart{Path: p.path(), Kinds: []string{"links", "risk_groups"}})
		}
	}
	switch {
	case q.kept != nil:
		d.Apart = append(d.Apart, &api.PathApart{Path: q.kept.path(), Kinds: kinds[level]})
	case q.t.protect && level < len(kinds):
		d.Disjoint = kinds[level]
		if len(w.Pin) > 0 && level == 0 {
			d.Disjoint = kinds[1] // both pass the same switches
		}
	}
	return d, nil
}

// alone finds the paths of tunnels as if each had none: what it books counts for it.
// One that keeps a path does so unless two others are found. More is what is to be
// booked besides.
func (r *repairer) alone(ctx context.Context, quests []*quest, more []*api.LinkBooking) error {
	var tries, free []*quest
	for _, q := range quests {
		try := &quest{t: q.t}
		if tries = append(tries, try); q.t.wanted.ReservedKbps == 0 {
			free = append(free, try)
			continue
		}
		added, err := r.seek(ctx, []*quest{try}, append(r.b.bookedBut(q.t.name), more...))
		if err != nil {
			return err
		}
		more = append(more, added...)
	}
	_, err := r.seek(ctx, free, nil)
	for i, q := range quests {
		if try := tries[i]; q.kept == nil || len(try.found) == 2 {
			try.displaced = q.displaced
			*q = *try
		}
	}
	return err
}

// bookedBut returns all bookings but those of a tunnel; all if there is none of that
// name.
func (b *store) bookedBut(name string) []*api.LinkBooking {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[name]
	if s == nil {
		return b.booked.messages(nil)
	}
	for _, at := range s.books {
		b.booked.sub(at, s.hold, s.kbps)
	}
	list := b.booked.messages(nil)
	for _, at := range s.books {
		b.booked.add(at, s.hold, s.kbps)
	}
	return list
}

// path returns a path as paths has it.
func (p lsp) path() *api.Path {
	m := &api.Path{}
	for _, h := range p {
		m.Hops = append(m.Hops, &api.Hop{Dpid: h.sw.String(), InPort: uint32(h.in), OutPort: uint32(h.out)})
	}
	return m
}

// quest returns what is to be sought for a tunnel; nil if it lacks nothing. It is
// called with mu held.
func (b *store) quest(s *status) *quest {
	var have []lsp
	for _, p := range s.tunnel.paths(s.active) {
		if b.usable(s, p) || s.stays() {
			have = append(have, p)
		}
	}
	switch {
	case len(have) == 0, s.late(b) != "" && !s.stays():
		return &quest{t: s.tunnel}
	case !s.tunnel.protect:
		return nil
	case len(have) == 1:
		return &quest{t: s.tunnel, kept: have[0]}
	}
	return nil
}

// stays reports whether a tunnel keeps its paths whatever becomes of their links.
func (s *status) stays() bool {
	return s.tunnel.wanted.NeverMove && s.displaced == "" && !s.reroute
}

// usable reports whether a path may stay. It is called with mu held.
func (b *store) usable(s *status, p lsp) bool {
	return b.whole(p) && b.pairs.suits(s.tunnel, p) && !b.links.drained(p) && s.displaced == "" && !s.reroute
}

// fit returns why paths that were found cannot be used.
func (r *repairer) fit(paths []lsp) error {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range paths {
		if !b.whole(p) {
			return errors.New("it is known already that a link of the path, or its tunnel port, is down")
		}
		for _, h := range p {
			if sw := b.net.Connected(h.sw); sw.GetOpenflow() == "1.0" {
				return fmt.Errorf("switch %v on the path speaks OpenFlow 1.0, which has no labels", h.sw)
			}
		}
	}
	return nil
}

// sameDemand reports whether two tunnels ask for the same paths.
func sameDemand(x, y *tunnel) bool {
	bare := func(t *tunnel) *api.Tunnel {
		m := proto.CloneOf(t.wanted)
		m.User, m.Circuits, m.RevertAfterS, m.NeverMove = "", 0, 0, false
		return m
	}
	return proto.Equal(bare(x), bare(y))
}

// takenFrom returns the names of tunnels that would lose bandwidth.
func (b *store) takenFrom(list []*api.PathPreemption) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := map[string]bool{}
	for _, t := range list {
		at, left := t.GetSrc().Flow(), t.Kbps
		for name := range names {
			if s := b.status[name]; slices.Contains(s.books, at) {
				left -= min(left, s.kbps)
			}
		}
		var gone []*status
		for left > 0 {
			s := b.victim(at, left, 8)
			if s == nil {
				break
			}
			names[s.tunnel.name] = true
			left -= min(left, s.kbps)
			s.books = slices.DeleteFunc(s.books, func(o flow.Location) bool { return o == at })
			gone = append(gone, s)
		}
		for _, s := range gone {
			s.books = append(s.books, at)
		}
	}
	return sorted(names)
}

// An attempt is what is asked for at once: how far paths are to be apart, and how long they may take.
type attempt struct {
	level int
	us    uint64
}

// attempts returns what is asked for what a quest seeks, each for less than the one before. A second path comes
// before what is wanted of delay, where more of that is tolerated.
func (q *quest) attempts() (list []attempt) {
	w := q.t.wanted
	try := func(levels ...int) {
		bounds := []uint64{w.MaxDelayUs}
		if w.ToleratedDelayUs > 0 {
			bounds = append(bounds, w.ToleratedDelayUs)
		}
		for _, us := range bounds {
			for _, level := range levels {
				list = append(list, attempt{level, us})
			}
		}
	}
	switch {
	case q.kept != nil:
		try(0, 1, 2)
	case q.t.protect:
		try(0, 1, 2)
		try(len(kinds))
	default:
		try(0)
	}
	return list
}

// demand returns what paths is asked at each attempt, nil after the last.
func (r *repairer) demand(q *quest, n int) (*api.PathDemand, error) {
	list := q.attempts()
	if n >= len(list) {
		return nil, nil
	}
	return r.demandFor(q, list[n])
}
