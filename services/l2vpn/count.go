package l2vpn

import (
	"context"
	"strconv"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A tally is what the entries of an end have counted.
type tally struct{ rxPackets, txPackets, rxBytes, txBytes, dropped uint64 }

// add adds another to it.
func (t *tally) add(o tally) {
	t.rxPackets += o.rxPackets
	t.txPackets += o.txPackets
	t.rxBytes += o.rxBytes
	t.txBytes += o.txBytes
	t.dropped += o.dropped
}

// countedBy returns the place in the order of ends of that whose frames an entry
// counts, and what it has counted; false if it counts none.
func (c *circuit) countedBy(f *api.FlowEntry) (at int, n tally, ok bool) {
	sw, e, err := f.Entry()
	if err != nil {
		return 0, n, false
	}
	for i, x := range c.ends {
		if x.at.Switch != sw {
			continue
		}
		if e.Table == flow.TableLabels && e.Priority == flow.PriorityCircuitLabel {
			for _, l := range c.labelsOf(c.Members[i]) {
				if *l == e.Match.Key.MPLSLabel {
					return i, tally{txPackets: f.Packets, txBytes: f.Bytes}, true
				}
			}
			continue
		}
		if c.ip() {
			if n, ok := c.ipCounted(i, &e, f); ok {
				return i, n, true
			}
			continue
		}
		var s set
		if s.ingress(c.Id, x, 0, nil); s.entries[len(s.entries)-1].Key() == e.Key() {
			return i, tally{rxPackets: f.Packets, rxBytes: f.Bytes}, true
		}
	}
	return 0, n, false
}

// ipCounted returns what an entry of ipIngress has counted; false if it is none
// of an end.
func (c *circuit) ipCounted(i int, e *flow.Entry, f *api.FlowEntry) (n tally, ok bool) {
	switch {
	case e.Match.Key.TunnelID != c.came(i):
		return n, false
	case e.Table == flow.TableLabels && e.Priority == flow.PriorityLANKnown:
		return tally{rxPackets: f.Packets, rxBytes: f.Bytes}, true
	}
	return tally{dropped: f.Packets}, true
}

// keep adds to what a circuit has counted what entries had that are gone. Where both ends
// are on one switch, what comes from one customer is what goes to the other.
func (s *status) keep(n tally) {
	if s.circuit.local() {
		n.txPackets, n.txBytes = n.rxPackets, n.rxBytes
	}
	s.base.add(n)
	s.record = ""
}

// counted takes over what a switch says that the entries of circuits have counted.
func (b *store) counted(flows []*api.FlowEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	type place struct {
		s  *status
		at end
	}
	now := map[place]tally{}
	for _, f := range flows {
		if s := b.byCookie(f.Cookie); s != nil {
			if i, n, ok := s.circuit.countedBy(f); ok {
				at := place{s, s.circuit.ends[i]}
				both := now[at]
				both.add(n)
				now[at] = both
			}
		}
	}
	for at, n := range now {
		was := at.s.seen[at.at]
		var lost tally
		if n.rxPackets < was.rxPackets {
			lost.rxPackets, lost.rxBytes = was.rxPackets, was.rxBytes
		}
		if n.txPackets < was.txPackets {
			lost.txPackets, lost.txBytes = was.txPackets, was.txBytes
		}
		if n.dropped < was.dropped {
			lost.dropped = was.dropped
		}
		if lost != (tally{}) { // the switch has begun anew
			at.s.keep(lost)
			b.version++
		}
		at.s.seen[at.at] = n
	}
}

// flowRemoved handles the southbound's event: what an entry has counted in its
// life stays with its circuit.
func (b *store) flowRemoved(e *api.FlowRemoved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.byCookie(e.GetFlow().GetCookie())
	if s == nil {
		return
	}
	for _, c := range []*circuit{s.circuit, s.before} {
		if c == nil {
			continue
		}
		if i, n, ok := c.countedBy(e.Flow); ok {
			s.keep(n)
			was := s.seen[c.ends[i]]
			switch {
			case n.txPackets|n.txBytes != 0:
				was.txPackets, was.txBytes = 0, 0
			case n.dropped != 0:
				was.dropped = 0
			default:
				was.rxPackets, was.rxBytes = 0, 0
			}
			s.seen[c.ends[i]] = was
			b.version++
			return
		}
	}
}

// byCookie returns the circuit whose number an entry has; nil if it is of none.
// It is called with mu held.
func (b *store) byCookie(text string) *status {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || flow.Cookie(n).Owner() != flow.OwnerCircuits {
		return nil
	}
	return b.ids[flow.Cookie(n).ID()]
}

// A reader reads what entries have counted.
type reader func(ctx context.Context, sw flow.DPID, cookie, mask flow.Cookie) ([]*api.FlowEntry, error)

// The parts of a cookie by which entries are read.
const wholeID flow.Cookie = 1<<32 - 1

// count reads what the entries of a circuit have counted.
func (b *store) count(ctx context.Context, read reader, name string) {
	b.mu.Lock()
	s := b.status[name]
	var switches []flow.DPID
	var id uint32
	if s != nil {
		id = s.circuit.Id
		for _, sw := range s.circuit.switches() {
			if b.switches[sw].GetConnected() {
				switches = append(switches, sw)
			}
		}
	}
	b.mu.Unlock()
	b.readAll(ctx, read, switches, flow.NewCookie(flow.OwnerCircuits, 0, id), flow.OwnerMask|wholeID)
}

// countAll reads what the entries of all circuits have counted.
func (b *store) countAll(ctx context.Context, read reader) {
	b.mu.Lock()
	var switches []flow.DPID
	for sw := range b.at {
		if b.switches[sw].GetConnected() {
			switches = append(switches, sw)
		}
	}
	b.mu.Unlock()
	b.readAll(ctx, read, switches, flow.NewCookie(flow.OwnerCircuits, 0, 0), flow.OwnerMask)
}

// readAll reads entries of switches, at once.
func (b *store) readAll(ctx context.Context, read reader, switches []flow.DPID, cookie, mask flow.Cookie) {
	var work sync.WaitGroup
	for _, sw := range switches {
		work.Go(func() {
			if flows, err := read(ctx, sw, cookie, mask); err == nil {
				b.counted(flows)
			}
		})
	}
	work.Wait()
}

// records returns what is kept of circuits beside themselves, by name. It is
// called with mu held.
func (b *store) records() map[string]string {
	list := make(map[string]string, len(b.status))
	for name, s := range b.status {
		if s.record != "" {
			list[name] = s.record
			continue
		}
		text, err := protojson.Marshal(&api.CircuitHistory{States: s.history, RxPackets: s.base.rxPackets, TxPackets: s.base.txPackets, RxBytes: s.base.rxBytes, TxBytes: s.base.txBytes,
			DroppedPackets: s.base.dropped, Devices: s.devices.messages()})
		if err == nil {
			s.record = string(text)
			list[name] = s.record
		}
	}
	return list
}

// recall takes over what an earlier run has kept of a circuit.
func (b *store) recall(name, text string) {
	m := &api.CircuitHistory{}
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), m) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[name]; s != nil {
		s.base = tally{m.RxPackets, m.TxPackets, m.RxBytes, m.TxBytes, m.DroppedPackets}
		s.devices.recall(s.circuit, m.Devices)
		s.remember(m.States)
		s.record = ""
		b.assess(s) // its time may have come, or be over
	}
}
