package l2vpn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/services/l2vpn/calendar"
)

// The most that a circuit may have to be placed by the calendar.
const (
	mostDetours  = 32   // paths that are tried
	mostExcluded = 64   // links, of a tunnel
	mostPlanned  = 4096 // tunnels
)

// reserve checks what a batch books against the calendar. A circuit that is to begin is
// given a path all of whose links have its rate during its whole time; one that is in force
// is refused if its tunnels' paths would leave one to come too little.
func (k *keeper) reserve(ctx context.Context, t *batch) error {
	b := k.b
	b.mu.Lock()
	needed := false
	for i, c := range t.circuits {
		needed = needed || t.refused[i] == nil && c.RateKbps > 0 && c.phaseAt(b.now()) == waits
	}
	for name := range b.timed {
		s := b.status[name]
		needed = needed || s.phase == waits && s.circuit.RateKbps > 0
	}
	b.mu.Unlock()
	if !needed {
		return nil
	}
	tunnels, err := k.list(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	book := k.bookings(t, tunnels)
	b.mu.Unlock()
	for i, c := range t.circuits {
		if t.refused[i] != nil || c.RateKbps == 0 {
			continue
		}
		if err := k.place(ctx, t, i, book); err != nil {
			if api.KindOf(err) != codes.ResourceExhausted {
				return err
			}
			t.refused[i] = err
		}
	}
	return nil
}

// bookings returns what is booked when: by circuits, on the links of their tunnels or on
// those that are foreseen, and by tunnels of others. What a batch changes is not among
// it. It is called with b.mu held.
func (k *keeper) bookings(t *batch, tunnels []*api.Tunnel) *calendar.Calendar {
	b, book := k.b, &calendar.Calendar{}
	changed := map[string]bool{}
	for _, name := range t.gone {
		changed[name] = true
	}
	for _, c := range t.circuits {
		if c != nil {
			changed[c.Name] = true
		}
	}
	for name, s := range b.status {
		c := s.circuit
		if changed[name] || c.RateKbps == 0 || s.phase == ended {
			continue
		}
		links := c.Planned
		if s.phase == inForce {
			links = nil
			for _, name := range b.tunnels.holds[s.circuit.Name] {
				links = append(links, linksOf(b.tunnels.known[name])...)
			}
		}
		enter(book, c, links)
	}
	for _, m := range tunnels {
		if m.User != user && m.ReservedKbps > 0 {
			book.Set(calendar.Booking{Name: "tunnel " + m.Name, Links: linksOf(m), Kbps: m.ReservedKbps})
		}
	}
	return book
}

// enter enters the bookings of a circuit: as many on a link as it is named.
func enter(book *calendar.Calendar, c *circuit, links []string) {
	for n := 0; len(links) > 0; n++ {
		var once, more []string
		for _, l := range links {
			if slices.Contains(once, l) {
				more = append(more, l)
			} else {
				once = append(once, l)
			}
		}
		book.Set(calendar.Booking{Name: fmt.Sprint("circuit ", c.Name, n), Links: once, Kbps: c.RateKbps, From: c.from, Until: c.until})
		links = more
	}
}

// linksOf returns the links of the paths of a tunnel, each once, by the ports that frames leave by.
func linksOf(t *api.Tunnel) (list []string) {
	for _, p := range []*api.LabelSwitchedPath{t.GetPrimary(), t.GetStandby()} {
		for i, h := range p.GetHops() {
			if l := fmt.Sprintf("%s:%d", h.Dpid, h.OutPort); i < len(p.Hops)-1 && !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}

// place books a circuit of a batch, or returns which link lacks its rate when.
func (k *keeper) place(ctx context.Context, t *batch, i int, book *calendar.Calendar) error {
	b, c := k.b, t.circuits[i]
	b.mu.Lock()
	now := b.now()
	old := b.circuits.Get(c.Name)
	wants, ahead := b.wantsOf(c, old), c.phaseAt(now) == waits
	b.mu.Unlock()
	if c.phaseAt(now) == ended || len(wants) == 0 || len(wants) > mostPlanned {
		return nil
	}
	if ahead && old != nil && len(old.Planned) > 0 && proto.Equal(wanted(old.Circuit), wanted(c.Circuit)) {
		c.Planned = old.Planned
		enter(book, c, c.Planned)
		return nil
	}
	for n, m := range wants {
		if ahead { // what is booked now says nothing of then
			m.Name, m.ReservedKbps, m.SetupPriority = fmt.Sprintf("%s-plan-%d", user, n), 0, nil
		}
	}
	var refused error
	for range mostDetours {
		r, err := k.ask(ctx, &api.SetTunnelsRequest{User: user, Tunnels: wants, DryRun: true})
		if err != nil {
			return err
		}
		var links []string
		var found []*api.Tunnel
		for _, o := range r.Outcomes {
			if o.Code != 0 || o.Tunnel.GetState() == "down" {
				return refused // nil: there is no path now at all
			}
			found = append(found, o.Tunnel)
			links = append(links, linksOf(o.Tunnel)...)
		}
		b.mu.Lock()
		lacking, why := b.net.lacking(c, links, book, now, ahead)
		b.mu.Unlock()
		if why == nil {
			if ahead {
				c.Planned, t.planned[i] = links, found
			}
			enter(book, c, links)
			return nil
		}
		if refused == nil {
			refused = why
		}
		if !ahead || len(wants[0].ExcludeLinks)+len(lacking) > mostExcluded {
			return refused
		}
		for _, m := range wants {
			m.ExcludeLinks = append(m.ExcludeLinks, lacking...)
		}
	}
	return refused
}

// lacking returns the links that do not have the rate of a circuit during its whole time, and
// the first as an error, with the time. Of a circuit that is not ahead those
// times count that are, as tunnels see to what is booked now.
func (n *network) lacking(c *circuit, links []string, book *calendar.Calendar, now time.Time, ahead bool) (list []*api.Location, why error) {
	from := c.from
	if !ahead {
		from = now
	}
	need := map[string]uint64{}
	for _, l := range links {
		need[l] += c.RateKbps
	}
	for _, l := range links {
		if need[l] == 0 {
			continue // seen
		}
		e, err := parseEnd(l)
		capacity := n.capacity(e.at)
		booked, at := book.Peak(l, from, c.until, "")
		lacks := err == nil && capacity > 0 && booked+need[l] > capacity && (ahead || at.After(now))
		if delete(need, l); !lacks {
			continue
		}
		list = append(list, &api.Location{Dpid: e.at.Switch.String(), Port: uint32(e.at.Port)})
		if why == nil {
			why = api.Errorf(codes.ResourceExhausted, "circuit %s: the link from switch %v port %d has %d kbit/s, of which %d are booked at %s: too much for another %d",
				c.Name, e.at.Switch, uint32(e.at.Port), capacity, booked, at.UTC().Format(time.RFC3339), c.RateKbps)
		}
	}
	return list, why
}
