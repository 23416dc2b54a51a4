package forwarding

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// leaveAfter is how long packets may still reach the table of a former version:
// until the switch has confirmed the entries that lead elsewhere.
const leaveAfter = 5 * time.Second

// copyFormer copies route entries from the table of a former version to the
// current one, and schedules the removal of the old ones for when packets no
// longer reach them.
func (o *adopter) copyFormer(sw flow.DPID, old, copies []flow.Entry, now time.Time) {
	if len(old) == 0 {
		return
	}
	o.adoption.mu.Lock()
	_, again := o.adoption.former[sw]
	if !again {
		o.adoption.former[sw] = formerEntries{old, now}
	}
	o.adoption.mu.Unlock()
	if again || len(copies) == 0 {
		return // the copies may lead another way by now
	}
	d := &flow.Decision{}
	for i := range copies {
		m := d.AddFlow(sw)
		m.Entry = copies[i]
		m.Entry.Table = o.table(sw)
	}
	if err := o.execute(o.send, d); err != nil {
		o.log.Warn("entries of a former version not moved", "dpid", sw, "error", err)
	}
}

// dropFormer removes entries in tables of a former version.
func (o *adopter) dropFormer(now time.Time) {
	d := &flow.Decision{}
	o.adoption.mu.Lock()
	for sw, l := range o.adoption.former {
		if now.Sub(l.since) < leaveAfter {
			continue
		}
		delete(o.adoption.former, sw)
		for i := range l.entries {
			m, old := d.AddFlow(sw), &l.entries[i]
			m.Command = flow.DeleteStrict
			m.Entry.Table, m.Entry.Priority, m.Entry.Cookie, m.Entry.Match = old.Table, old.Priority, old.Cookie, old.Match
		}
	}
	o.adoption.mu.Unlock()
	if d.Empty() {
		return
	}
	if err := o.execute(o.send, d); err != nil {
		o.log.Warn("entries of a former version not removed", "error", err)
	}
}
