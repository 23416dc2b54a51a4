package oftest

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// removeUsing removes the entries that refer to a group or meter which is
// deleted (§6.5, §6.6).
func (s *Switch) removeUsing(uses func(*entry) bool, reason openflow.RemovedReason) {
	for t := range s.tables {
		s.tables[t].remove(func(e *entry) bool {
			if !uses(e) {
				return false
			}
			s.changed("entry", e.Entry, nil)
			s.tellRemoved(e, reason)
			return true
		})
	}
}

// tellRemoved sends a flow-removed where the entry asks for it (§7.4.2).
func (s *Switch) tellRemoved(e *entry, reason openflow.RemovedReason) {
	if e.Flags&flow.FlagSendRem == 0 {
		return
	}
	r := openflow.FlowRemoved{
		Reason: reason, Table: e.Table, Priority: e.Priority, IdleTimeout: e.IdleTimeout, HardTimeout: e.HardTimeout,
		Cookie: e.Cookie, Packets: e.packets, Bytes: e.bytes, Match: e.Match,
	}
	r.DurationSec, r.DurationNsec = s.sinceParts(e.created)
	for _, c := range s.listeners(func(a *openflow.Async) *[2]uint32 { return &a.FlowRemoved }, uint8(reason)) {
		r := r
		if c.version == openflow.V10 && reason == openflow.RemovedGroupDelete {
			r.Reason = openflow.RemovedDelete
		}
		if msg, err := c.version.AppendFlowRemoved(nil, s.nextXid(), &r); err == nil {
			s.send(c, msg)
		}
	}
}

// expire removes the entries whose time is up (§5.5).
func (s *Switch) expire() {
	over := func(since time.Time, seconds uint16) bool {
		return seconds > 0 && !s.now.Before(since.Add(time.Duration(seconds)*time.Second))
	}
	for t := range s.tables {
		s.tables[t].remove(func(e *entry) bool {
			switch {
			case over(e.created, e.HardTimeout):
				s.tellRemoved(e, openflow.RemovedHardTimeout)
			case over(e.used, e.IdleTimeout):
				s.tellRemoved(e, openflow.RemovedIdleTimeout)
			default:
				return false
			}
			return true
		})
	}
}

// count counts a packet on an entry.
func (s *Switch) count(e *entry, octets int) {
	e.used = s.now
	if e.Flags&flow.FlagNoPackets == 0 {
		e.packets++
	}
	if e.Flags&flow.FlagNoBytes == 0 {
		e.bytes += uint64(octets)
	}
}

// stats returns an entry with its counters.
func (s *Switch) stats(e *entry) openflow.FlowStats {
	st := openflow.FlowStats{Entry: e.Clone(), Packets: e.packets, Bytes: e.bytes}
	st.DurationSec, st.DurationNsec = s.sinceParts(e.created)
	return st
}

// Flows returns the flow entries with their counters, by table, then from
// the highest priority to the lowest, then in the order in which they were added.
func (s *Switch) Flows() []openflow.FlowStats {
	var list []openflow.FlowStats
	for t := range s.tables {
		for _, e := range s.tables[t].entries {
			list = append(list, s.stats(e))
		}
	}
	return list
}

// Groups returns the groups in the order of their numbers.
func (s *Switch) Groups() []flow.Group {
	var list []flow.Group
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		list = append(list, s.groups[id].Group)
	}
	return list
}

// Meters returns the meters in the order of their numbers.
func (s *Switch) Meters() []flow.Meter {
	var list []flow.Meter
	for _, id := range slices.Sorted(maps.Keys(s.meters)) {
		list = append(list, s.meters[id].Meter)
	}
	return list
}

// sinceParts returns a duration as statistics give it.
func (s *Switch) sinceParts(t time.Time) (sec, nsec uint32) {
	d := s.now.Sub(t)
	return uint32(d / time.Second), uint32(d % time.Second)
}

func (s *Switch) groupList() []*group {
	list := make([]*group, 0, len(s.groups))
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		list = append(list, s.groups[id])
	}
	return list
}

// references counts the entries and groups that lead to a group.
func (s *Switch) references(id uint32) (n uint32) {
	for t := range s.tables {
		for _, e := range s.tables[t].entries {
			if e.leadsTo(flow.PortAny, id) {
				n++
			}
		}
	}
	for _, g := range s.groups {
		if g.refers(id) {
			n++
		}
	}
	return n
}

// maxEntries is what is said of the size of a table.
func (s *Switch) maxEntries() uint32 {
	if s.cfg.MaxEntries > 0 {
		return uint32(s.cfg.MaxEntries)
	}
	return 1_000_000
}
