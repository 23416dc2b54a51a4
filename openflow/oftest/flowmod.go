package oftest

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// flowMod handles a flow-mod (§6.4, §7.3.4.1).
func (s *Switch) flowMod(c *conn, msg []byte) error {
	var m flow.Mod
	if err := c.version.DecodeFlowMod(msg, &m); err != nil {
		return err
	}
	legacy := c.version == openflow.V10
	if legacy {
		// What has no wildcards has the highest priority (OpenFlow 1.0.1 §3.4).
		if binary.BigEndian.Uint32(msg[8:])&(1<<22-1) == 0 {
			m.Entry.Priority = flow.PriorityMax
		}
	} else if hasBitsOutsideMask(msg) {
		return refuse(openflow.ErrBadMatch, openflow.BadMatchBadWildcards)
	}
	if err := s.checkMod(&m, legacy); err != nil {
		return err
	}
	if s.cfg.Refuse != nil {
		if e := s.cfg.Refuse(&m); e != nil {
			return e
		}
	}
	if m.Command == flow.Add && s.cfg.Ignore != nil && s.cfg.Ignore(&m) {
		return nil
	}
	switch m.Command {
	case flow.Add:
		if err := s.add(&m, legacy); err != nil {
			return err
		}
	case flow.Modify, flow.ModifyStrict:
		changed := s.modify(&m, legacy)
		if legacy && !changed { // OpenFlow 1.0.1 §4.6
			if err := s.add(&m, legacy); err != nil {
				return err
			}
		}
	default:
		s.delete(&m)
		return nil
	}
	if m.BufferID == flow.BufferNone {
		return nil
	}
	kept, err := s.buffers.release(m.BufferID)
	if err != nil {
		return err
	}
	s.begin(&kept)
	return nil
}

// hasBitsOutsideMask reports whether a value of the match of a flow-mod has a
// one where its mask has a zero (§7.2.3.5). The message has been decoded: its
// lengths are right.
func hasBitsOutsideMask(msg []byte) bool {
	const match = 48
	end := match + int(binary.BigEndian.Uint16(msg[match+2:]))
	for off := match + 4; off < end; {
		n := int(msg[off+3])
		if msg[off+2]&1 != 0 {
			value, mask := msg[off+4:off+4+n/2], msg[off+4+n/2:off+4+n]
			for i := range value {
				if value[i]&^mask[i] != 0 {
					return true
				}
			}
		}
		off += 4 + n
	}
	return false
}

// add adds an entry or replaces that of the same match and priority.
func (s *Switch) add(m *flow.Mod, legacy bool) error {
	e := &entry{Entry: m.Entry.Clone(), legacy: legacy, created: s.now, used: s.now}
	t := &s.tables[e.Table]
	if m.Entry.Flags&flow.FlagOverlap != 0 && t.overlaps(&e.Match, e.Priority) {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModFailedOverlap)
	}
	if old := t.find(&e.Match, e.Priority); old != nil {
		if m.Entry.Flags&flow.FlagReset == 0 && !legacy {
			e.packets, e.bytes = old.packets, old.bytes
		}
		s.changed("entry", old.Entry, e.Entry)
		*old = *e
		return nil
	}
	if s.cfg.MaxEntries > 0 && len(t.entries) >= s.cfg.MaxEntries {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModFailedTableFull)
	}
	t.insert(e)
	s.changed("entry", nil, e.Entry)
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

// leadsTo reports whether the entry has an output to a port and one to a
// group; PortAny and GroupAny are always true.
func (e *entry) leadsTo(p flow.Port, group uint32) bool {
	has := func(kind flow.ActionKind, arg uint32) bool {
		for _, list := range [][]flow.Action{e.Apply, e.Write} {
			for i := range list {
				if list[i].Kind == kind && list[i].Arg == arg {
					return true
				}
			}
		}
		return false
	}
	return (p == flow.PortAny || has(flow.ActionOutput, uint32(p))) && (group == flow.GroupAny || has(flow.ActionGroup, group))
}

// modify changes the instructions of entries and nothing else of them, but in
// OpenFlow 1.0 the cookie too. It reports whether there were any.
func (s *Switch) modify(m *flow.Mod, legacy bool) (found bool) {
	for _, e := range s.tables[m.Entry.Table].entries {
		if !selected(m, e) {
			continue
		}
		found = true
		n := m.Entry.Clone()
		n.Match, n.Priority, n.IdleTimeout, n.HardTimeout, n.Flags = e.Match, e.Priority, e.IdleTimeout, e.HardTimeout, e.Flags
		if !legacy {
			n.Cookie = e.Cookie
		}
		s.changed("entry", e.Entry, n)
		e.Entry, e.legacy = n, legacy
		if m.Entry.Flags&flow.FlagReset != 0 {
			e.packets, e.bytes = 0, 0
		}
	}
	return found
}

// delete deletes entries.
func (s *Switch) delete(m *flow.Mod) {
	for t := range s.tables {
		if m.Entry.Table != flow.TableAll && int(m.Entry.Table) != t {
			continue
		}
		s.tables[t].remove(func(e *entry) bool {
			if !selected(m, e) {
				return false
			}
			s.changed("entry", e.Entry, nil)
			s.tellRemoved(e, openflow.RemovedDelete)
			return true
		})
	}
}
