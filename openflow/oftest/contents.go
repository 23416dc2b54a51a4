package oftest

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// contents are what a switch has: its entries, groups, meters and ports.
type contents struct {
	*controllers
	now    time.Time
	tables []table
	groups map[uint32]*group
	meters map[uint32]*meter
	ports  map[flow.Port]*port
}

// removeUsing removes the entries that refer to a group or meter which is
// deleted (§6.5, §6.6).
func (ct *contents) removeUsing(uses func(*entry) bool, reason openflow.RemovedReason) {
	for t := range ct.tables {
		ct.tables[t].remove(func(e *entry) bool {
			if !uses(e) {
				return false
			}
			ct.changed("entry", e.Entry, nil)
			ct.tellRemoved(e, reason)
			return true
		})
	}
}

// tellRemoved sends a flow-removed where the entry asks for it (§7.4.2).
func (ct *contents) tellRemoved(e *entry, reason openflow.RemovedReason) {
	if e.Flags&flow.FlagSendRem == 0 {
		return
	}
	r := openflow.FlowRemoved{
		Reason: reason, Table: e.Table, Priority: e.Priority, IdleTimeout: e.IdleTimeout, HardTimeout: e.HardTimeout,
		Cookie: e.Cookie, Packets: e.packets, Bytes: e.bytes, Match: e.Match,
	}
	r.DurationSec, r.DurationNsec = ct.sinceParts(e.created)
	for _, c := range ct.listeners(func(a *openflow.Async) *[2]uint32 { return &a.FlowRemoved }, uint8(reason)) {
		r := r
		if c.version == openflow.V10 && reason == openflow.RemovedGroupDelete {
			r.Reason = openflow.RemovedDelete
		}
		if msg, err := c.version.AppendFlowRemoved(nil, ct.nextXid(), &r); err == nil {
			ct.send(c, msg)
		}
	}
}

// expire removes the entries whose time is up (§5.5).
func (ct *contents) expire() {
	over := func(since time.Time, seconds uint16) bool {
		return seconds > 0 && !ct.now.Before(since.Add(time.Duration(seconds)*time.Second))
	}
	for t := range ct.tables {
		ct.tables[t].remove(func(e *entry) bool {
			switch {
			case over(e.created, e.HardTimeout):
				ct.tellRemoved(e, openflow.RemovedHardTimeout)
			case over(e.used, e.IdleTimeout):
				ct.tellRemoved(e, openflow.RemovedIdleTimeout)
			default:
				return false
			}
			return true
		})
	}
}

// count counts a packet on an entry.
func (ct *contents) count(e *entry, octets int) {
	e.used = ct.now
	if e.Flags&flow.FlagNoPackets == 0 {
		e.packets++
	}
	if e.Flags&flow.FlagNoBytes == 0 {
		e.bytes += uint64(octets)
	}
}

// stats returns an entry with its counters.
func (ct *contents) stats(e *entry) openflow.FlowStats {
	st := openflow.FlowStats{Entry: e.Clone(), Packets: e.packets, Bytes: e.bytes}
	st.DurationSec, st.DurationNsec = ct.sinceParts(e.created)
	return st
}

// Flows returns the flow entries with their counters, by table, then from
// the highest priority to the lowest, then in the order in which they were added.
func (ct *contents) Flows() []openflow.FlowStats {
	var list []openflow.FlowStats
	for t := range ct.tables {
		for _, e := range ct.tables[t].entries {
			list = append(list, ct.stats(e))
		}
	}
	return list
}

// Groups returns the groups in the order of their numbers.
func (ct *contents) Groups() []flow.Group {
	var list []flow.Group
	for _, id := range slices.Sorted(maps.Keys(ct.groups)) {
		list = append(list, ct.groups[id].Group)
	}
	return list
}

// Meters returns the meters in the order of their numbers.
func (ct *contents) Meters() []flow.Meter {
	var list []flow.Meter
	for _, id := range slices.Sorted(maps.Keys(ct.meters)) {
		list = append(list, ct.meters[id].Meter)
	}
	return list
}

// sinceParts returns a duration as statistics give it.
func (ct *contents) sinceParts(t time.Time) (sec, nsec uint32) {
	d := ct.now.Sub(t)
	return uint32(d / time.Second), uint32(d % time.Second)
}

func (ct *contents) groupList() []*group {
	list := make([]*group, 0, len(ct.groups))
	for _, id := range slices.Sorted(maps.Keys(ct.groups)) {
		list = append(list, ct.groups[id])
	}
	return list
}

// references counts the entries and groups that lead to a group.
func (ct *contents) references(id uint32) (n uint32) {
	for t := range ct.tables {
		for _, e := range ct.tables[t].entries {
			if e.leadsTo(flow.PortAny, id) {
				n++
			}
		}
	}
	for _, g := range ct.groups {
		if g.refers(id) {
			n++
		}
	}
	return n
}

// maxEntries is what is said of the size of a table.
func (ct *contents) maxEntries() uint32 {
	if ct.cfg.MaxEntries > 0 {
		return uint32(ct.cfg.MaxEntries)
	}
	return 1_000_000
}
