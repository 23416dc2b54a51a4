package tunnels

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// bookings is the bandwidth that tunnels hold on links, by the port that they leave
// by and holding priority. It follows from the stored tunnels: each books its
// bandwidth once on each link of its paths that are whole, those that it is
// moving away from included unless it has lost the bandwidth there.
type bookings map[flow.Location]*[8]uint64

func (k bookings) add(at flow.Location, hold uint32, kbps uint64) {
	if k[at] == nil {
		k[at] = &[8]uint64{}
	}
	k[at][hold] += kbps
}

func (k bookings) sub(at flow.Location, hold uint32, kbps uint64) {
	if k[at][hold] -= kbps; *k[at] == [8]uint64{} {
		delete(k, at)
	}
}

func (k bookings) sum(at flow.Location) (kbps uint64) {
	if k[at] != nil {
		for _, n := range k[at] {
			kbps += n
		}
	}
	return kbps
}

// messages returns the bookings as paths is told them.
func (k bookings) messages(list []*api.LinkBooking) []*api.LinkBooking {
	for at, by := range k {
		for hold, kbps := range by {
			if kbps > 0 {
				list = append(list, &api.LinkBooking{Src: api.NewLocation(at), Kbps: kbps, Priority: uint32(hold)})
			}
		}
	}
	return list
}

// room returns an error if a link of another path of a tunnel lacks bandwidth.
func (k bookings) room(links *linkTable, s *status, path lsp) error {
	for _, at := range path.via() {
		if most, sum := links.capacity(at), k.sum(at); !slices.Contains(s.books, at) && sum+s.kbps > most {
			return fmt.Errorf("the link from switch %v port %v has %d kbit/s, and %d are booked meanwhile", at.Switch, at.Port, most, sum)
		}
	}
	return nil
}

// remove takes the bookings of a tunnel away.
func (k bookings) remove(s *status) {
	for _, at := range s.books {
		k.sub(at, s.hold, s.kbps)
	}
	s.books = nil
}

// book brings the bookings of a tunnel up to date. It is called with mu held.
func (b *store) book(s *status) {
	had, was := slices.Clone(s.books), s.kbps
	defer func() {
		if gone := func(at flow.Location) bool { return !slices.Contains(s.books, at) }; s.displaced == "" && (slices.ContainsFunc(had, gone) || len(had) > 0 && s.kbps < was) {
			freed(b)
		}
	}()
	b.booked.remove(s)
	kbps := s.tunnel.wanted.ReservedKbps
	if kbps == 0 || s.displaced != "" {
		return
	}
	_, hold := priorities(s.tunnel.wanted)
	paths := s.tunnel.paths(onPrimary)
	if !s.yields {
		paths = append(paths, s.entered.paths(onPrimary)...)
	}
	for _, p := range paths {
		if !b.whole(p) {
			continue
		}
		for _, at := range p.via() {
			if !slices.Contains(s.books, at) {
				s.books = append(s.books, at)
				b.booked.add(at, hold, kbps)
			}
		}
	}
	s.kbps, s.hold = kbps, hold
	for _, at := range slices.Clone(s.books) {
		b.crowded(at)
	}
}

// freed has those tunnels seen to that lack a path for want of room, since something is booked no
// more. It is called with mu held.
func freed(b *store) {
	if !b.room {
		b.room = true
		b.kick()
	}
}

// crowded has the least important tunnels leave a link on which more is booked than
// it has: another has taken their bandwidth, or it has less than before. It is
// called with mu held.
func (b *store) crowded(at flow.Location) {
	most := b.links.capacity(at)
	for sum := b.booked.sum(at); most > 0 && sum > most; sum = b.booked.sum(at) {
		s := b.victim(at, sum-most, 8)
		s.displaced = fmt.Sprintf("its %d kbit/s on the link from switch %v port %v are taken by tunnels that are more important, or the link has less than before", s.kbps, at.Switch, at.Port)
		b.booked.remove(s)
		s.yields = true
		b.need(s, b.now())
		b.kick()
	}
}

// victim returns the tunnel that leaves a link that lacks so much bandwidth: of the
// least important that hold it below a priority, the smallest that frees enough,
// else the largest. It is nil if there is none. It is called with mu held.
func (b *store) victim(at flow.Location, lacks uint64, below uint32) (found *status) {
	order := func(x, y *status) int {
		enough := func(s *status) int {
			if s.kbps >= lacks {
				return 0
			}
			return 1
		}
		size := cmp.Compare(x.kbps, y.kbps)
		if enough(x) == 1 {
			size = -size
		}
		return cmp.Or(-cmp.Compare(x.hold, y.hold), cmp.Compare(enough(x), enough(y)), size, cmp.Compare(y.tunnel.name, x.tunnel.name))
	}
	for name := range b.over[at] {
		if s := b.status[name]; s.hold < below && slices.Contains(s.books, at) && (found == nil || order(s, found) < 0) {
			found = s
		}
	}
	return found
}
