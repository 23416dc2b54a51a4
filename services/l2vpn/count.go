package l2vpn

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A tally is what the entries of an end have counted, of each kind.
type tally [3]amount

// amount is packets and their octets.
type amount struct{ packets, bytes uint64 }

func (n amount) plus(o amount) amount { return amount{n.packets + o.packets, n.bytes + o.bytes} }

func (t tally) plus(o tally) tally {
	for kind := range t {
		t[kind] = t[kind].plus(o[kind])
	}
	return t
}

// The kinds of what is counted, by their places in a tally: from the customer, to the
// customer, and from the customer but not carried.
const (
	received = iota
	sent
	dropped
)

// A counter is an entry, or a meter, that counts for an end.
type counter struct {
	at    end
	kind  int // received, sent or dropped
	entry flow.EntryKey
	meter uint32 // 0: it is an entry
}

// countedBy returns for which end an entry counts, and what; false if it counts for none.
func (c *circuit) countedBy(sw flow.DPID, e *flow.Entry) (at counter, ok bool) {
	for i, x := range c.ends {
		if x.at.Switch != sw {
			continue
		}
		if kind, ok := c.counts(i, e); ok {
			return counter{at: x, kind: kind, entry: e.Key()}, true
		}
	}
	return at, false
}

// counts returns what an entry counts for an end; false if it counts nothing.
func (c *circuit) counts(i int, e *flow.Entry) (kind int, ok bool) {
	switch {
	case e.Match.Key.TunnelID&(tagsAsked|secondTags) != 0:
		return dropped, e.Match.Key.TunnelID&^(tagsAsked|secondTags) == c.came(i)
	case c.Type == vpls && e.Table == flow.TableCircuits && e.Match.Key.TunnelID == uint64(c.Members[i].Label):
		return sent, true
	case (c.Type == vpls || c.ip()) && e.Match.Key.TunnelID == c.came(i):
		if e.Table == flow.TableLabels && e.Priority == flow.PriorityLANKnown {
			return received, true
		}
		return dropped, true
	case e.Table == flow.TableLabels && e.Priority == flow.PriorityCircuitLabel:
		return sent, slices.ContainsFunc(c.labelsOf(c.Members[i]), func(l *uint32) bool { return *l == e.Match.Key.MPLSLabel })
	case c.ip():
		return 0, false
	}
	var s set
	s.ingress(c.Id, c.ends[i], 0, c.Members[i].StormMeter, nil)
	return received, slices.ContainsFunc(s.entries, func(o flow.Entry) bool { return o.Cookie.ID() != 0 && o.Key() == e.Key() })
}

// keep adds to what a circuit has counted what an entry had that is gone. Where both ends
// are on one switch, what comes from one customer is what goes to the other.
func (s *status) keep(kind int, n amount) {
	s.base[kind] = s.base[kind].plus(n)
	if kind == received && s.circuit.local() {
		s.base[sent] = s.base[sent].plus(n)
	}
	s.record = ""
}

// outlive keeps what was counted for ends that are neither of the circuit nor of the one
// before, and by meters that it has no more.
func (s *status) outlive() {
	for m, n := range s.seen {
		i := slices.Index(s.circuit.ends, m.at)
		over := i < 0 && (s.before == nil || !slices.Contains(s.before.ends, m.at))
		if m.meter != 0 {
			over = i < 0 || !slices.Contains(s.circuit.metersOf(i), m.meter)
		}
		if over {
			s.keep(m.kind, n)
			delete(s.seen, m)
		}
	}
}

// countedAt returns what the entries that there are have counted for an end.
func (s *status) countedAt(i int) (n tally) {
	at, far := s.circuit.ends[i], end{}
	if s.circuit.local() {
		far = s.circuit.ends[1-i]
	}
	for m, x := range s.seen {
		if m.at == at {
			n[m.kind] = n[m.kind].plus(x)
		}
		if m.at == far && m.kind == received {
			n[sent] = n[sent].plus(x)
		}
	}
	return n
}

// counted returns what has been counted at all ends.
func (s *status) counted() tally {
	sum := s.base
	for i := range s.circuit.ends {
		sum = sum.plus(s.countedAt(i))
	}
	return sum
}

// counted takes over what a switch says that the entries of circuits have counted. Of
// entries of which it says nothing, what was known stays.
func (b *store) counted(flows []*api.FlowEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range flows {
		s := b.byCookie(f.Cookie)
		sw, e, err := f.Entry()
		if s == nil || err != nil {
			continue
		}
		m, ok := s.circuit.countedBy(sw, &e)
		if !ok {
			continue
		}
		b.saw(s, m, amount{f.Packets, f.Bytes})
	}
}

// saw takes over what an entry or a meter has counted. It is called with mu held.
func (b *store) saw(s *status, m counter, now amount) {
	if was := s.seen[m]; now.packets < was.packets { // the switch has begun anew
		s.keep(m.kind, was)
		b.version++
	}
	s.seen[m] = now
}

// flowRemoved handles the southbound's event: what an entry has counted in its
// life stays with its circuit.
func (b *store) flowRemoved(e *api.FlowRemoved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.byCookie(e.GetFlow().GetCookie())
	sw, entry, err := e.GetFlow().Entry()
	if s == nil || err != nil {
		return
	}
	for _, c := range []*circuit{s.circuit, s.before} {
		if c == nil {
			continue
		}
		if m, ok := c.countedBy(sw, &entry); ok {
			s.keep(m.kind, amount{e.Flow.Packets, e.Flow.Bytes})
			delete(s.seen, m)
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

// A reader reads what the entries and meters of a switch have counted.
type reader interface {
	entries(ctx context.Context, sw flow.DPID, cookie, mask flow.Cookie) ([]*api.FlowEntry, error)
	meters(ctx context.Context, sw flow.DPID, meter uint32) ([]*api.MeterStats, error) // flow.MeterAll: all
}

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
			if b.net.Info(sw).GetConnected() {
				switches = append(switches, sw)
			}
		}
	}
	b.mu.Unlock()
	b.readAll(ctx, read, switches, id)
}

// countAll reads what the entries of all circuits have counted.
func (b *store) countAll(ctx context.Context, read reader) {
	b.readAll(ctx, read, b.attended(), 0)
}

// attended returns the switches that have entries of circuits and are there.
func (b *store) attended() (list []flow.DPID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sw := range b.at {
		if b.net.Info(sw).GetConnected() {
			list = append(list, sw)
		}
	}
	return list
}

// readAll reads entries and meters of switches, at once: those of the circuit with a
// number, or, of 0, of all.
func (b *store) readAll(ctx context.Context, read reader, switches []flow.DPID, id uint32) {
	mask := flow.OwnerMask
	if id != 0 {
		mask |= wholeID
	}
	var work sync.WaitGroup
	for _, sw := range switches {
		work.Go(func() {
			if flows, err := read.entries(ctx, sw, flow.NewCookie(flow.OwnerCircuits, 0, id), mask); err == nil {
				b.counted(flows)
			}
			b.readMeters(ctx, read, sw, id)
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
		text, err := protojson.Marshal(&api.CircuitHistory{States: s.history, RxPackets: s.base[received].packets, TxPackets: s.base[sent].packets,
			RxBytes: s.base[received].bytes, TxBytes: s.base[sent].bytes, DroppedPackets: s.base[dropped].packets, Devices: s.devices.messages()})
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
		s.base = tally{received: {m.RxPackets, m.RxBytes}, sent: {m.TxPackets, m.TxBytes}, dropped: {packets: m.DroppedPackets}}
		s.devices.recall(s.circuit, m.Devices)
		s.remember(m.States)
		s.record = ""
		b.assess(s) // its time may have come, or be over
	}
}

// counting is how often the counters of all circuits are read for the metrics.
const counting = 30 * time.Second

// keepCounts reads what the entries of all circuits have counted, again and again until ctx
// ends, one switch after the other.
func (b *store) keepCounts(ctx context.Context, read reader) {
	tick := time.NewTicker(counting)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, sw := range b.attended() {
			b.readAll(ctx, read, []flow.DPID{sw}, 0)
		}
	}
}

// total returns what all circuits have counted, as last read, those deleted included.
func (b *store) total() tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.past
	for _, s := range b.status {
		sum = sum.plus(s.counted())
	}
	return sum
}
