package oftest

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// add adds an entry or replaces that of the same match and priority.
func (ct *contents) add(m *flow.Mod, legacy bool) error {
	e := &entry{Entry: m.Entry.Clone(), legacy: legacy, created: ct.now, used: ct.now}
	t := &ct.tables[e.Table]
	if m.Entry.Flags&flow.FlagOverlap != 0 && t.overlaps(&e.Match, e.Priority) {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModFailedOverlap)
	}
	if old := t.find(&e.Match, e.Priority); old != nil {
		if m.Entry.Flags&flow.FlagReset == 0 && !legacy {
			e.packets, e.bytes = old.packets, old.bytes
		}
		ct.changed("entry", old.Entry, e.Entry)
		*old = *e
		return nil
	}
	if ct.cfg.MaxEntries > 0 && len(t.entries) >= ct.cfg.MaxEntries {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModFailedTableFull)
	}
	t.insert(e)
	ct.changed("entry", nil, e.Entry)
	return nil
}

// selected reports whether a modify or delete is about an entry. Output port
// and group narrow a delete only.
func selected(m *flow.Mod, e *entry) bool {
	switch m.Command {
	case flow.ModifyStrict, flow.DeleteStrict:
		if e.Priority != m.Entry.Priority || e.Match != m.Entry.Match {
			return false
		}
	default:
		if !m.Entry.Match.Covers(&e.Match) {
			return false
		}
	}
	if (e.Cookie^m.Entry.Cookie)&m.CookieMask != 0 {
		return false
	}
	return m.Command < flow.Delete || e.leadsTo(m.OutPort, m.OutGroup)
}

// modify changes the instructions of entries and nothing else of them, but in
// OpenFlow 1.0 the cookie too. It reports whether there were any.
func (ct *contents) modify(m *flow.Mod, legacy bool) (found bool) {
	for _, e := range ct.tables[m.Entry.Table].entries {
		if !selected(m, e) {
			continue
		}
		found = true
		n := m.Entry.Clone()
		n.Match, n.Priority, n.IdleTimeout, n.HardTimeout, n.Flags = e.Match, e.Priority, e.IdleTimeout, e.HardTimeout, e.Flags
		if !legacy {
			n.Cookie = e.Cookie
		}
		ct.changed("entry", e.Entry, n)
		e.Entry, e.legacy = n, legacy
		if m.Entry.Flags&flow.FlagReset != 0 {
			e.packets, e.bytes = 0, 0
		}
	}
	return found
}

// delete deletes entries.
func (ct *contents) delete(m *flow.Mod) {
	for t := range ct.tables {
		if m.Entry.Table != flow.TableAll && int(m.Entry.Table) != t {
			continue
		}
		ct.tables[t].remove(func(e *entry) bool {
			if !selected(m, e) {
				return false
			}
			ct.changed("entry", e.Entry, nil)
			ct.tellRemoved(e, openflow.RemovedDelete)
			return true
		})
	}
}
