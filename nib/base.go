package nib

import (
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Base makes snapshots of events. These come in order from each run of a
// publisher, and in any order from several: those of a former run may come late,
// and what a publisher retains may come again. Whatever the order, the snapshot is
// in the end what the last run of each partition says that has not ended:
//
//   - What the last run has said of a thing counts, and nothing of a former one.
//     When the last run ends and the former goes on, that is the last.
//   - What only a former run has said counts until it is withdrawn by an event, for
//     a publisher that is restarted tears nothing down. Nothing new of it counts
//     once all is heard that the last run retained.
//   - A thing that a partition says is gone is there as long as another says so:
//     it has moved.
type Base struct {
	snapshot atomic.Pointer[Snapshot]

	mu      sync.Mutex // guards what follows, and changes of snapshot
	next    Snapshot   // being made
	readers map[Parts]int
	runs    map[Parts]map[string]runs // by part and partition
	watches []*Watch

	switches    claims[flow.DPID, *api.SwitchChanged]
	roles       claims[flow.Location, *api.PortRole]
	links       claims[LinkKey, *api.Link]
	hosts       claims[HostKey, *api.Host]
	segments    claims[uint16, *api.Segment]
	nodes       claims[flow.DPID, *api.Node]
	tunnelPorts claims[TunnelKey, *api.TunnelPort]
	settled     claims[flow.DPID, *api.RolesSettled]
}

// runs are the epochs of a publisher's runs for one partition.
type runs struct {
	last    uint64   // the last one that has sent anything; 0: none, or it has ended
	full    uint64   // the last one that has sent all that it retained; 0 likewise
	settled uint64   // the last one that has sent all that its earlier runs knew, of hosts; 0 likewise
	over    []uint64 // those that have ended, at most overMost: events of theirs may still come
}

const overMost = 8

// claims are, by key, what else is said of a thing than its fact.
type claims[K comparable, M proto.Message] map[K][]claim[M]

// claim is the last word of a partition's publisher.
type claim[M any] struct {
	from Source
	is   M
	gone bool // kept until all has been heard that the run retained
}

// New returns a base of an empty network.
func New() *Base {
	b := &Base{
		readers: map[Parts]int{}, runs: map[Parts]map[string]runs{},
		switches: claims[flow.DPID, *api.SwitchChanged]{}, roles: claims[flow.Location, *api.PortRole]{},
		links: claims[LinkKey, *api.Link]{}, hosts: claims[HostKey, *api.Host]{}, segments: claims[uint16, *api.Segment]{},
		nodes: claims[flow.DPID, *api.Node]{}, tunnelPorts: claims[TunnelKey, *api.TunnelPort]{}, settled: claims[flow.DPID, *api.RolesSettled]{},
	}
	for p := Switches; p < end; p <<= 1 {
		b.reset(p)
	}
	b.snapshot.Store(&Snapshot{})
	return b
}

// Snapshot returns the present snapshot.
func (b *Base) Snapshot() Snapshot { return *b.snapshot.Load() }

// Watch is called when a part of the snapshot has changed.
type Watch struct {
	parts  Parts
	notify func()
}

// Watch calls notify whenever one of some parts has changed. Apply, Complete and Over
// call it, so it must not wait.
func (b *Base) Watch(p Parts, notify func()) *Watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &Watch{p, notify}
	b.watches = append(b.watches, w)
	return w
}

// Unwatch ends a Watch.
func (b *Base) Unwatch(w *Watch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches = slices.DeleteFunc(b.watches, func(o *Watch) bool { return o == w })
}

// Read counts a reader of some parts, and returns those that nobody read before:
// they are empty, and what is retained of them is to be applied.
func (b *Base) Read(p Parts) (first Parts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for q := Switches; q < end; q <<= 1 {
		if q&p == 0 {
			continue
		}
		if b.readers[q]++; b.readers[q] == 1 {
			first |= q
		}
	}
	if first&Ports != 0 {
		for f := range b.next.switches.all() {
			b.seed(f)
		}
		b.publish(Ports)
	}
	return first
}

// Leave ends what Read began; parts that nobody reads any more are emptied.
func (b *Base) Leave(p Parts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for q := Switches; q < end; q <<= 1 {
		if q&p == 0 {
			continue
		}
		if b.readers[q]--; b.readers[q] == 0 {
			b.reset(q)
			b.publish(q)
		}
	}
}

// reset empties a part. It is called with mu held.
func (b *Base) reset(p Parts) {
	b.next = b.next.Only(^p)
	b.runs[p] = map[string]runs{}
	b.claimsOf(p).clear()
}

// claimsOf returns the claims of a part. Ports have none: what counts is the run that says
// that their switch is there. Nor has settledHosts.
func (b *Base) claimsOf(p Parts) interface {
	forget(b *Base, p Parts, partition string)
	clear()
} {
	switch p {
	case Switches:
		return b.switches
	case Roles:
		return b.roles
	case Links:
		return b.links
	case Hosts:
		return b.hosts
	case Segments:
		return b.segments
	case Nodes:
		return b.nodes
	case TunnelPorts:
		return b.tunnelPorts
	case Settled:
		return b.settled
	}
	return claims[flow.Location, *api.Port](nil)
}

// publish makes next the present snapshot and notifies the watches of the parts that
// have changed. It is called with mu held.
func (b *Base) publish(changed Parts) {
	if changed == 0 {
		return
	}
	done := b.next
	b.snapshot.Store(&done)
	for _, w := range b.watches {
		if w.parts&changed != 0 {
			w.notify()
		}
	}
}

// Complete says that all has been heard that a run of a publisher retained of a
// part when it was first heard of.
func (b *Base) Complete(p Parts, from Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[p][from.Partition]
	if slices.Contains(r.over, from.Epoch) {
		return
	}
	r.last, r.full = max(r.last, from.Epoch), max(r.full, from.Epoch)
	b.runs[p][from.Partition] = r
	b.claimsOf(p).forget(b, p, from.Partition)
	if b.listen(p) {
		b.next.rev++
		b.publish(p)
	}
}

// Over says that a run of a publisher has ended. Anything that another says from
// now on counts instead of what this one has said, which remains until then.
func (b *Base) Over(p Parts, from Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[p][from.Partition]
	if r.over = append(slices.Clone(r.over), from.Epoch); len(r.over) > overMost {
		r.over = r.over[1:]
	}
	if r.last == from.Epoch {
		r.last, r.full, r.settled = 0, 0, 0
	}
	b.runs[p][from.Partition] = r
	if b.listen(p) {
		b.next.rev++
		b.publish(p)
	}
}

// late reports whether what one run says is outdated, since another of its
// partition has said something else of the thing. It is called with mu held.
func (b *Base) late(p Parts, other, from Source) bool {
	switch b.runs[p][from.Partition].last {
	case from.Epoch:
		return false
	case other.Epoch:
		return true
	}
	return other.Epoch > from.Epoch
}

// forget drops what is only kept until a run has been heard in full. It is called
// with the base's mu held.
func (c claims[K, M]) forget(b *Base, p Parts, partition string) {
	for k, list := range c {
		c.put(k, slices.DeleteFunc(slices.Clone(list), func(o claim[M]) bool {
			return o.gone && o.from.Partition == partition && !b.keeps(p, o.from)
		}))
	}
}

// keeps reports whether to remember of a run that it has said a thing is gone: what
// a former run says that comes late is then known to be outdated. It is called with
// mu held.
func (b *Base) keeps(p Parts, from Source) bool {
	r := b.runs[p][from.Partition]
	return from.Epoch > r.full && !r.outlived(from.Epoch)
}

// outlived reports whether a run has ended, and another goes on.
func (r runs) outlived(epoch uint64) bool { return r.last != 0 && slices.Contains(r.over, epoch) }

func (c claims[K, M]) clear() { clear(c) }

func (c claims[K, M]) put(k K, list []claim[M]) {
	if len(list) == 0 {
		delete(c, k)
	} else {
		c[k] = list
	}
}

// listen brings up to date which parts have been heard in full, and reports
// whether that has changed. It is called with mu held.
func (b *Base) listen(p Parts) bool {
	was := b.next.heard
	known, heard := false, true
	for _, r := range b.runs[p] {
		known, heard = known || r.last != 0, heard && r.last <= r.full && (p != Hosts || r.last <= r.settled)
	}
	if !known {
		return false
	}
	if b.next.heard &^= p; heard {
		b.next.heard |= p
	}
	return was != b.next.heard
}

// Apply takes an event of a run of its publisher; one that takes back what a run
// has said, because it is no more, is of that run.
func (b *Base) Apply(from Source, event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next.rev++
	changed := b.apply(from, event)
	if changed == 0 {
		b.next.rev--
	}
	b.publish(changed)
}

// begin takes the run of an event down. It is called with mu held.
func (b *Base) begin(p Parts, from Source) (changed Parts) {
	r := b.runs[p][from.Partition]
	if r.last >= from.Epoch || slices.Contains(r.over, from.Epoch) {
		return 0
	}
	r.last = from.Epoch
	b.runs[p][from.Partition] = r
	if b.listen(p) {
		return p
	}
	return 0
}

// settleHosts takes it that a run has said of each host that its earlier runs knew where it
// is, or that it is gone. It is called with mu held.
func (b *Base) settleHosts(from Source) (changed Parts) {
	changed = b.begin(Hosts, from)
	r := b.runs[Hosts][from.Partition]
	if slices.Contains(r.over, from.Epoch) {
		return changed
	}
	r.settled = max(r.settled, from.Epoch)
	b.runs[Hosts][from.Partition] = r
	return changed | when(Hosts, b.listen(Hosts))
}

// apply returns the parts that have changed. It is called with mu held.
func (b *Base) apply(from Source, event any) (changed Parts) {
	s := &b.next
	switch e := event.(type) {
	case *api.SwitchChanged:
		if sw, err := flow.ParseDPID(e.GetSwitch().GetDpid()); err == nil {
			return b.begin(Switches, from) | b.switchChanged(from, sw, e)
		}
	case *api.PortChanged:
		if sw, err := flow.ParseDPID(e.GetPort().GetDpid()); err == nil {
			return b.begin(Switches, from) | b.begin(Ports, from) | b.portChanged(from, flow.Location{Switch: sw, Port: flow.Port(e.Port.Port)}, e)
		}
	case *api.PortRoleChanged:
		at := e.GetPort().GetAt().Flow()
		return b.begin(Roles, from) | when(Roles, change(b, Roles, b.roles, &s.roles, at.Switch, at, word(from, e.GetPort(), e.GetGone())))
	case *api.LinkChanged:
		k := LinkKey{e.GetLink().GetSrc().Flow(), e.GetLink().GetDst().Flow()}
		return b.begin(Links, from) | when(Links, change(b, Links, b.links, &s.links, k.Src.Switch, k, word(from, e.GetLink(), e.GetRemoved())))
	case *api.HostChanged:
		if mac, err := flow.ParseMAC(e.GetHost().GetMac()); err == nil && e.Host.Vlan <= 4095 {
			k := HostKey{uint16(e.Host.Vlan), mac}
			return b.begin(Hosts, from) | when(Hosts, change(b, Hosts, b.hosts, &s.hosts, k.VLAN, k, word(from, e.Host, e.EventGone())))
		}
	case *api.SegmentChanged:
		if k := e.GetSegment().GetVlan(); k <= 4095 {
			return b.begin(Segments, from) | when(Segments, change(b, Segments, b.segments, &s.segments, none{}, uint16(k), word(from, e.GetSegment(), e.GetRemoved())))
		}
	case *api.NodeChanged:
		if sw, err := flow.ParseDPID(e.GetNode().GetReport().GetDpid()); err == nil {
			return b.begin(Nodes, from) | when(Nodes, change(b, Nodes, b.nodes, &s.nodes, none{}, sw, word(from, e.GetNode(), e.GetGone())))
		}
	case *api.TunnelPortChanged:
		k := TunnelKey{e.GetPort().GetKind(), e.GetPort().GetA().Flow(), e.GetPort().GetB().Flow()}
		return b.begin(TunnelPorts, from) | when(TunnelPorts, change(b, TunnelPorts, b.tunnelPorts, &s.tunnelPorts, none{}, k, word(from, e.GetPort(), e.GetGone())))
	case *api.RolesSettled:
		if sw, err := flow.ParseDPID(e.GetDpid()); err == nil {
			return b.begin(Settled, from) | when(Settled, change(b, Settled, b.settled, &s.settled, none{}, sw, word(from, e, e.GetGone())))
		}
	case *api.HostsSettled:
		return b.settleHosts(from)
	}
	return 0
}

func when(p Parts, changed bool) Parts {
	if changed {
		return p
	}
	return 0
}

func word[M any](from Source, is M, gone bool) claim[M] { return claim[M]{from, is, gone} }
