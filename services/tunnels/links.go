package tunnels

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// A link is one direction of a link, as discovery says.
type link struct {
	dst      flow.Location
	up       bool
	drained  bool
	capacity uint64 // kilobits per second that may be booked; 0: it is not known
	delay    uint64 // microseconds
	metric   uint32
	declared uint64 // the delay that an operator says, microseconds; 0: none
	colours  []string
	risks    []string
}

// A linkTable is what is known of links. The store's mu guards it.
type linkTable struct {
	by     map[flow.Location]map[flow.Location]*link // by the port that they leave by
	drains map[flow.Location]bool                    // those that are drained
}

func newLinkTable() linkTable {
	return linkTable{by: map[flow.Location]map[flow.Location]*link{}, drains: map[flow.Location]bool{}}
}

// set takes over a link, and returns what it was; nil if nothing was known of it.
func (t *linkTable) set(src, dst flow.Location, now *link) (was *link) {
	if t.by[src] == nil {
		t.by[src] = map[flow.Location]*link{}
	}
	was, t.by[src][dst] = t.by[src][dst], now
	if delete(t.drains, src); now.up && now.drained {
		t.drains[src] = true
	}
	return was
}

// linkOf returns the link between two hops of a path; nil if nothing is known of
// it.
func (t *linkTable) linkOf(p lsp, i int) *link {
	return t.by[flow.Location{Switch: p[i].sw, Port: p[i].out}][flow.Location{Switch: p[i+1].sw, Port: p[i+1].in}]
}

// drained reports whether a link of a path is.
func (t *linkTable) drained(p lsp) bool {
	for i := range max(len(p)-1, 0) {
		if l := t.linkOf(p, i); l != nil && l.drained {
			return true
		}
	}
	return false
}

// delay returns what a path takes, microseconds.
func (t *linkTable) delay(p lsp) (us uint64) {
	for i := range max(len(p)-1, 0) {
		if l := t.linkOf(p, i); l != nil {
			us += l.delay
		}
	}
	return us
}

// capacity returns what may be booked on the link that leaves by a port; 0 if that
// is not known, or the link is down.
func (t *linkTable) capacity(at flow.Location) (kbps uint64) {
	for _, l := range t.by[at] {
		if l.up {
			kbps = max(kbps, l.capacity)
		}
	}
	return kbps
}

// risks returns the risk groups of a link.
func (t *linkTable) risks(c crossing) (list []string) {
	for far, l := range t.by[c.at] {
		if far.Switch == c.to && l != nil {
			list = append(list, l.risks...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// linkChanged follows a link. One that is no more stays, as down: a link that is not
// known counts as up until discovery has said that it is absent. It is called with mu held.
func (b *store) linkChanged(s nib.Step[nib.Link]) {
	k, m := cmp.Or(s.Is, s.Was).Key, cmp.Or(s.Is, s.Was).Is
	set := m.GetSettings()
	now := &link{
		dst: k.Dst, up: s.Is != nil && m.Usable(), drained: set.GetDrained(),
		capacity: m.GetCapacityKbps(), delay: uint64(m.GetLatencyUs()), metric: set.GetMetric(),
		declared: uint64(set.GetDelayUs()), colours: set.GetColours(), risks: set.GetRiskGroups(),
	}
	if now.declared > 0 {
		now.delay = now.declared
	}
	b.learn(k.Src, k.Dst, now)
}

// learn takes what is known of a link now. It is called with mu held.
func (b *store) learn(src, dst flow.Location, now *link) {
	was := b.links.set(src, dst, now)
	if was != nil && was.up == now.up && was.drained == now.drained && was.capacity == now.capacity && was.metric == now.metric && slices.Equal(was.risks, now.risks) {
		return
	}
	if now.up && (was == nil || !was.up || was.drained && !now.drained || was.metric != now.metric || was.capacity < now.capacity) {
		b.improved.last = b.now()
		seekAgain(b, func(*status) bool { return true })
	}
	if s := b.status[bypassName(src)]; s != nil && was != nil && !slices.Equal(was.risks, now.risks) {
		s.reroute = true
		b.need(s, time.Time{})
		b.kick()
	}
	for _, name := range sorted(b.over[src]) {
		b.judge(b.status[name])
	}
	b.crowded(src)
}

// whole reports whether all links of a path are up, which they are while its
// switches may be away. It is called with mu held.
func (b *store) whole(p lsp) bool {
	if p.overlay() {
		return b.carries(p)
	}
	for i := range len(p) - 1 {
		if b.dead[flow.Location{Switch: p[i].sw, Port: p[i].out}] || b.dead[flow.Location{Switch: p[i+1].sw, Port: p[i+1].in}] {
			return false
		}
		if l := b.links.linkOf(p, i); l != nil && !l.up || l == nil && absent(b.net, flow.Location{Switch: p[i].sw, Port: p[i].out}, flow.Location{Switch: p[i+1].sw, Port: p[i+1].in}) {
			return false
		}
	}
	return len(p) > 1
}

// ofLinks are the parts of the network that say which links there are.
const ofLinks = nib.Links | nib.Roles

// absent reports whether there is no link between two ports, none being known: discovery
// has said all of both switches, or of one of them that its port is not a link's. Until
// then the link is as it was before a restart.
func absent(net nib.Snapshot, src, dst flow.Location) bool {
	a, z := net.Settled(src.Switch), net.Settled(dst.Switch)
	return net.Heard(ofLinks) && (a && z || a && !net.Has(src, flow.RoleLink) || z && !net.Has(dst, flow.RoleLink))
}
