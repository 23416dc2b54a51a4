package l2vpn

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// A tunnelTable is the tunnels of circuits, by their names: those that there are, and those
// that circuits want or still use. The store's mu guards it.
type tunnelTable struct {
	known  map[string]*api.Tunnel   // as they are
	told   bool                     // it has been said which there are
	wants  map[string]*wish         // as they should be
	due    map[string]bool          // those that may not be as they should be
	holds  map[string][]string      // by circuit, those that it wants
	former map[string][]*api.Tunnel // by circuit, those of an earlier transport, in use until there are new ones
}

func newTunnelTable() tunnelTable {
	return tunnelTable{known: map[string]*api.Tunnel{}, wants: map[string]*wish{}, due: map[string]bool{}, holds: map[string][]string{}, former: map[string][]*api.Tunnel{}}
}

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

// lacksRoom reports whether a tunnel, as it is, cannot have what several circuits book on it.
func (w *wish) lacksRoom(t *api.Tunnel) bool {
	return len(w.users) > 1 && w.booked() > 0 && (w.err != nil || t != nil && t.State == "down" && t.ReservedKbps == w.booked())
}

// wish has a circuit want tunnels.
func (t *tunnelTable) wish(c *circuit, list []*api.Tunnel) {
	for _, m := range list {
		t.wishFor(m, c, true)
		if !slices.Contains(t.holds[c.Name], m.Name) {
			t.holds[c.Name] = append(t.holds[c.Name], m.Name)
		}
	}
}

// release has a circuit want none of the tunnels any more that it has wanted.
func (t *tunnelTable) release(c *circuit) {
	for _, name := range t.holds[c.Name] {
		t.wishFor(&api.Tunnel{Name: name}, c, false)
	}
	delete(t.holds, c.Name)
}

// wishFor has a circuit want a tunnel, or no more.
func (t *tunnelTable) wishFor(m *api.Tunnel, c *circuit, enter bool) {
	w := t.wants[m.Name]
	switch {
	case w == nil && !enter:
		return
	case w == nil:
		w = &wish{Tunnel: m, users: map[string]uint64{}}
		t.wants[m.Name] = w
	}
	t.due[m.Name] = true
	w.kbps -= w.users[c.Name]
	delete(w.users, c.Name)
	if enter {
		w.users[c.Name] = c.RateKbps
		w.kbps += c.RateKbps
	}
	if len(w.users) == 0 {
		delete(t.wants, m.Name)
	}
}

// wishesOf returns what a circuit in the store wants.
func (t *tunnelTable) wishesOf(c *circuit) (list []*wish) {
	for _, name := range t.holds[c.Name] {
		if w := t.wants[name]; w != nil {
			list = append(list, w)
		}
	}
	return list
}

// of returns the tunnels that a circuit wants, as they are; nil for those that are not there.
func (t *tunnelTable) of(c *circuit) (list []*api.Tunnel) {
	for _, w := range t.wishesOf(c) {
		list = append(list, t.known[w.Name])
	}
	return list
}

// between returns the tunnel from one end to another as it is; nil if there is
// none.
func (t *tunnelTable) between(c *circuit, from, to int) *api.Tunnel {
	a, z := c.ends[from].at.Switch.String(), c.ends[to].at.Switch.String()
	for _, name := range t.holds[c.Name] {
		w := t.wants[name]
		if w == nil || w.From != a || w.To != z {
			continue
		}
		if m := t.known[name]; carries(m) {
			return m
		}
		if m := t.standIn(c, a, z); m != nil {
			return m
		}
		return t.known[name]
	}
	return nil
}

// groupOf returns the group of the tunnel from one end to another; 0 if there is
// none, or it has never had a path.
func (t *tunnelTable) groupOf(c *circuit, from, to int) uint32 { return usable(t.between(c, from, to)) }

// update takes over a tunnel as it is, nil if it is gone, and returns what it was; changed is
// whether it is another.
func (t *tunnelTable) update(name string, now *api.Tunnel) (old *api.Tunnel, changed bool) {
	old = t.known[name]
	if proto.Equal(old, now) {
		return old, false
	}
	if t.known[name] = now; now == nil {
		delete(t.known, name)
	}
	t.due[name] = true
	return old, true
}

// book enters into tunnels that a circuit would want what would be booked on them.
func (t *tunnelTable) book(c *circuit, list []*api.Tunnel) {
	for _, m := range list {
		m.ReservedKbps, m.Circuits = c.RateKbps, 1
		if w := t.wants[m.Name]; w != nil {
			m.ReservedKbps += w.booked()
			m.Circuits += uint32(len(w.users))
			if kbps, has := w.users[c.Name]; has {
				m.ReservedKbps -= kbps
				m.Circuits--
			}
		}
		if overlaid(m.Transport) {
			m.ReservedKbps = 0
		}
	}
}

// leave returns the tunnels that a circuit has, before it changes, with those that it
// still has from before that, which are not wanted for it any more.
func (t *tunnelTable) leave(c *circuit) (list []*api.Tunnel) {
	for _, w := range t.wishesOf(c) {
		list = append(list, w.Tunnel)
	}
	for _, m := range t.former[c.Name] {
		t.wishFor(m, c, false)
	}
	list = append(list, t.former[c.Name]...)
	delete(t.former, c.Name)
	return list
}

// stay has a circuit that moves to other tunnels between the same switches keep those it has until the
// new ones carry. They book nothing more where it is not the service that moves it, for room is what the
// new ones may lack.
func (t *tunnelTable) stay(c, old *circuit, had []*api.Tunnel) {
	if old == nil || c.Type == vpls || old.Type == vpls {
		return
	}
	avoids := old.Transport == c.Transport && old.Share == c.Share && !slices.EqualFunc(old.Avoids, c.Avoids, sameLocation)
	for _, m := range had {
		if slices.Contains(t.holds[c.Name], m.Name) || !carries(t.known[m.Name]) || !slices.ContainsFunc(t.wishesOf(c), func(w *wish) bool { return w.From == m.From && w.To == m.To }) {
			continue
		}
		t.former[c.Name] = append(t.former[c.Name], m)
		if t.wishFor(m, c, true); !avoids && old.Transport == c.Transport {
			t.wants[m.Name].unbook(c)
		}
	}
}

// moved gives back the tunnels that a circuit had before, once all switches lead frames
// into the new ones, and reports whether it did.
func (t *tunnelTable) moved(c *circuit, by *confirmations) bool {
	if len(t.former[c.Name]) == 0 {
		return false
	}
	for _, w := range t.wishesOf(c) {
		if !carries(t.known[w.Name]) {
			return false
		}
	}
	for _, sw := range c.switches() {
		if !by.confirmed(sw) {
			return false
		}
	}
	for _, m := range t.former[c.Name] {
		t.wishFor(m, c, false)
	}
	delete(t.former, c.Name)
	return true
}

// standIn returns the tunnel that a circuit had before and uses for want of the new
// one; nil if there is none.
func (t *tunnelTable) standIn(c *circuit, from, to string) *api.Tunnel {
	for _, m := range t.former[c.Name] {
		if now := t.known[m.Name]; m.From == from && m.To == to && carries(now) {
			return now
		}
	}
	return nil
}

// steady reports whether the tunnels of a circuit have been as they are since before a time.
func (t *tunnelTable) steady(c *circuit, from time.Time) bool {
	return !slices.ContainsFunc(t.wishesOf(c), func(w *wish) bool {
		since, err := time.Parse(time.RFC3339, t.known[w.Name].GetSince())
		return err == nil && since.After(from)
	})
}

// carries reports whether frames that enter a tunnel get to its end.
func carries(t *api.Tunnel) bool { return usable(t) != 0 && t.GetState() != "down" }

// usable returns the group by which circuits enter a tunnel; 0 if there is none.
func usable(t *api.Tunnel) uint32 {
	if t.GetPrimary() == nil && t.GetStandby() == nil {
		return 0
	}
	return t.Group
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

func sameLocation(x, y *api.Location) bool { return x.Flow() == y.Flow() }
