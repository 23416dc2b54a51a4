package l2vpn

import (
	"slices"
	"strconv"

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
	case e.Table == flow.TableCircuits && e.Match.Key.TunnelID == uint64(c.Members[i].Label):
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
	s := set{}
	in := c.inlet(i)
	in.storm, in.acts = c.Members[i].StormMeter, []flow.Action{flow.Output(flow.PortIn)}
	s.ingress(in)
	if c.ends[i].whole() { // also while other ends have VLANs of its port
		s.besides = besides{c.ends[i]: "1"}
		s.ingress(in)
	}
	at := slices.IndexFunc(s.entries, func(o flow.Entry) bool { return o.Cookie.ID() != 0 && o.Key() == e.Key() })
	if at >= 0 && len(s.entries[at].Apply) == 0 {
		return dropped, true
	}
	return received, at >= 0
}

// circuitCounters are the counters of a circuit.
type circuitCounters struct {
	circuit *circuit
	before  *circuit           // as it was before its last change; nil: it was not
	seen    map[counter]amount // counted by the entries that there are
	base    tally              // counted by entries that are gone
	record  string             // what records returns of the circuit; empty: it has changed
}

// keep adds to what a circuit has counted what an entry had that is gone. Where both ends
// are on one switch, what comes from one customer is what goes to the other.
func (s *circuitCounters) keep(kind int, n amount) {
	s.base[kind] = s.base[kind].plus(n)
	if kind == received && s.circuit.local() {
		s.base[sent] = s.base[sent].plus(n)
	}
	s.record = ""
}

// outlive keeps what was counted for ends that are neither of the circuit nor of the one
// before, and by meters that it has no more.
func (s *circuitCounters) outlive() {
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
func (s *circuitCounters) countedAt(i int) (n tally) {
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
func (s *circuitCounters) counted() tally {
	sum := s.base
	for i := range s.circuit.ends {
		sum = sum.plus(s.countedAt(i))
	}
	return sum
}

// metersOf returns the meters of an end.
func (c *circuit) metersOf(i int) []uint32 {
	return slices.DeleteFunc([]uint32{c.Members[i].Meter, c.Members[i].StormMeter, c.Members[i].YellowMeter}, func(m uint32) bool { return m == 0 })
}

// A counterTable has the counters of all circuits. The store's mu guards it.
type counterTable struct {
	of      map[uint32]*circuitCounters // by the numbers of circuits
	past    tally                       // counted by circuits that are deleted
	version uint64                      // counts changes of what is counted by entries that are gone
}

func newCounterTable() counterTable { return counterTable{of: map[uint32]*circuitCounters{}} }

// drop takes out a circuit that is deleted: what it has counted stays in the total.
func (t *counterTable) drop(s *circuitCounters) {
	t.past = t.past.plus(s.counted())
	delete(t.of, s.circuit.Id)
}

// count takes over what a switch says that the entries of circuits have counted. Of
// entries of which it says nothing, what was known stays.
func (t *counterTable) count(flows []*api.FlowEntry) {
	for _, f := range flows {
		s := t.byCookie(f.Cookie)
		sw, e, err := f.Entry()
		if s == nil || err != nil {
			continue
		}
		m, ok := s.circuit.countedBy(sw, &e)
		if !ok {
			continue
		}
		t.saw(s, m, amount{f.Packets, f.Bytes})
	}
}

// saw takes over what an entry or a meter has counted.
func (t *counterTable) saw(s *circuitCounters, m counter, now amount) {
	if was := s.seen[m]; now.packets < was.packets { // the switch has begun anew
		s.keep(m.kind, was)
		t.version++
	}
	s.seen[m] = now
}

// flowRemoved follows the southbound's event: what an entry has counted in its
// life stays with its circuit.
func (t *counterTable) flowRemoved(e *api.FlowRemoved) {
	s := t.byCookie(e.GetFlow().GetCookie())
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
			t.version++
			return
		}
	}
}

// byCookie returns the circuit whose number an entry has; nil if it is of none.
func (t *counterTable) byCookie(text string) *circuitCounters {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || flow.Cookie(n).Owner() != flow.OwnerCircuits {
		return nil
	}
	return t.of[flow.Cookie(n).ID()]
}

// total returns what all circuits have counted, as last read, those deleted included.
func (t *counterTable) total() tally {
	sum := t.past
	for _, s := range t.of {
		sum = sum.plus(s.counted())
	}
	return sum
}
