package sim

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// entry is a flow entry of a simulated switch.
type entry struct {
	flow.Entry
	since   int64 // nanoseconds of the network's clock
	packets uint64
	bytes   uint64
}

// table is the flow tables and the groups of a switch, found by key and of
// bounded size. Entries time out a sweep late at most.
type table struct {
	entries    map[flow.EntryKey]*entry
	groups     map[uint32]*flow.Group
	maxEntries int
	maxGroups  int
	mortal     int // entries with a timeout
	lookups    uint64
	matched    uint64
}

func (t *table) init(entries, groups int) {
	*t = table{entries: map[flow.EntryKey]*entry{}, groups: map[uint32]*flow.Group{}, maxEntries: entries, maxGroups: groups}
}

// lookup returns the entry of the highest priority that matches, nil if none.
func (t *table) lookup(id uint8, k *flow.Key) *entry {
	t.lookups++
	var best *entry
	for _, e := range t.entries {
		if e.Table == id && (best == nil || e.Priority > best.Priority) && e.Match.Matches(k) {
			best = e
		}
	}
	if best != nil {
		t.matched++
	}
	return best
}

// flowMod changes the flow tables (OpenFlow 1.3.5 §6.4).
func (nd *node) flowMod(m *flow.Mod, msg []byte) {
	if m.BufferID != flow.BufferNone && m.Command <= flow.ModifyStrict {
		// The entry is installed all the same, as by a switch that has sent
		// the packet on in the meantime.
		defer nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBufferUnknown)
	}
	t := &nd.table
	e := &m.Entry
	deletes := m.Command == flow.Delete || m.Command == flow.DeleteStrict
	if e.Table >= tables && !(deletes && e.Table == flow.TableAll) {
		nd.refuseWith(msg, openflow.ErrFlowModFailed, openflow.FlowModFailedBadTableID)
		return
	}
	switch m.Command {
	case flow.Add:
		nd.add(m, msg)
	case flow.Modify, flow.ModifyStrict:
		found := false
		for _, old := range t.selected(m, m.Command == flow.ModifyStrict) {
			c := e.Clone()
			old.Apply, old.Write, old.HasWrite, old.Clear, old.Goto = c.Apply, c.Write, c.HasWrite, c.Clear, c.Goto
			old.Meter, old.Metadata, old.MetaMask = c.Meter, c.Metadata, c.MetaMask
			found = true
		}
		if !found && nd.version == openflow.V10 { // there modify adds (OpenFlow 1.0.1 §4.6)
			nd.add(m, msg)
		}
	case flow.Delete, flow.DeleteStrict:
		for _, old := range t.selected(m, m.Command == flow.DeleteStrict) {
			nd.remove(old, openflow.RemovedDelete)
		}
	default:
		nd.refuseWith(msg, openflow.ErrFlowModFailed, openflow.FlowModFailedBadCommand)
	}
}

// add adds an entry or replaces the one with its key.
func (nd *node) add(m *flow.Mod, msg []byte) {
	t := &nd.table
	key := m.Entry.Key()
	old := t.entries[key]
	if m.Entry.Flags&flow.FlagOverlap != 0 && old == nil {
		for _, o := range t.entries {
			if o.Table == key.Table && o.Priority == key.Priority && o.Match.Overlaps(&key.Match) {
				nd.refuseWith(msg, openflow.ErrFlowModFailed, openflow.FlowModFailedOverlap)
				return
			}
		}
	}
	if old == nil && len(t.entries) >= t.maxEntries {
		nd.refuseWith(msg, openflow.ErrFlowModFailed, openflow.FlowModFailedTableFull)
		return
	}
	e := &entry{Entry: m.Entry.Clone(), since: nd.net.now}
	if old != nil {
		t.forget(old)
		if m.Entry.Flags&flow.FlagReset == 0 {
			e.packets, e.bytes = old.packets, old.bytes
		}
	}
	t.entries[key] = e
	if e.IdleTimeout|e.HardTimeout != 0 {
		t.mortal++
	}
}

// selected returns the entries that a modify or delete is about.
func (t *table) selected(m *flow.Mod, strict bool) []*entry {
	var list []*entry
	take := func(e *entry) {
		if (e.Cookie^m.Entry.Cookie)&m.CookieMask != 0 {
			return
		}
		if m.Command >= flow.Delete && !e.leadsTo(m.OutPort, m.OutGroup) {
			return
		}
		list = append(list, e)
	}
	if strict && m.Entry.Table != flow.TableAll {
		if e := t.entries[m.Entry.Key()]; e != nil {
			take(e)
		}
		return list
	}
	for _, e := range t.entries {
		if m.Entry.Table != flow.TableAll && e.Table != m.Entry.Table {
			continue
		}
		if strict && (e.Priority != m.Entry.Priority || e.Match != m.Entry.Match) {
			continue
		}
		if m.Entry.Match.Covers(&e.Match) {
			take(e)
		}
	}
	return list
}

// leadsTo reports whether an entry has an output to the port and the group;
// PortAny and GroupAny ask for nothing.
func (e *entry) leadsTo(p flow.Port, group uint32) bool {
	port, grp := p == flow.PortAny, group == flow.GroupAny
	for _, list := range [2][]flow.Action{e.Apply, e.Write} {
		for _, a := range list {
			port = port || a.Kind == flow.ActionOutput && flow.Port(a.Arg) == p
			grp = grp || a.Kind == flow.ActionGroup && a.Arg == group
		}
	}
	return port && grp
}

// forget takes an entry out.
func (t *table) forget(e *entry) {
	delete(t.entries, e.Key())
	if e.IdleTimeout|e.HardTimeout != 0 {
		t.mortal--
	}
}

// remove takes an entry out and reports it if the entry asks for that.
func (nd *node) remove(e *entry, why openflow.RemovedReason) {
	nd.table.forget(e)
	if e.Flags&flow.FlagSendRem == 0 || !nd.wants(nd.async.FlowRemoved, uint8(why)) {
		return
	}
	s, ns := nd.net.age(e.since)
	r := openflow.FlowRemoved{
		Reason: why, Table: e.Table, Priority: e.Priority, IdleTimeout: e.IdleTimeout, HardTimeout: e.HardTimeout,
		Cookie: e.Cookie, DurationSec: s, DurationNsec: ns, Packets: e.packets, Bytes: e.bytes, Match: e.Match,
	}
	nd.queue(nd.version.AppendFlowRemoved(nd.pending, nd.newXid(), &r))
}

// age returns how long ago a time was.
func (n *Network) age(since int64) (sec, nsec uint32) {
	d := n.now - since
	return uint32(d / 1e9), uint32(d % 1e9)
}

// age removes entries whose time is up. Hosts do not send through the entries
// of a simulated switch, so the idle timeout runs from the installation.
func (t *table) age(nd *node, now int64) {
	if t.mortal == 0 {
		return
	}
	for _, e := range t.entries {
		switch old := now - e.since; {
		case e.HardTimeout != 0 && old >= int64(e.HardTimeout)*1e9:
			nd.remove(e, openflow.RemovedHardTimeout)
		case e.IdleTimeout != 0 && old >= int64(e.IdleTimeout)*1e9:
			nd.remove(e, openflow.RemovedIdleTimeout)
		}
	}
}

// groupMod changes the groups; false with the error code if it is refused.
func (t *table) groupMod(m *flow.GroupMod) (code uint16, ok bool) {
	id := m.Group.ID
	old := t.groups[id]
	switch m.Command {
	case flow.Add:
		if old != nil {
			return openflow.GroupModFailedGroupExists, false
		}
		if id > 0xffffff00 {
			return openflow.GroupModFailedInvalidGroup, false
		}
		if len(t.groups) >= t.maxGroups {
			return openflow.GroupModFailedOutOfGroups, false
		}
	case flow.Modify:
		if old == nil {
			return openflow.GroupModFailedUnknownGroup, false
		}
	case flow.Delete:
		if id == flow.GroupAll {
			clear(t.groups)
		}
		delete(t.groups, id)
		return 0, true
	default:
		return openflow.GroupModFailedBadCommand, false
	}
	g := m.Group
	g.Buckets = append([]flow.Bucket(nil), g.Buckets...)
	for i := range g.Buckets {
		g.Buckets[i].Actions = append([]flow.Action(nil), g.Buckets[i].Actions...)
	}
	t.groups[id] = &g
	return 0, true
}
