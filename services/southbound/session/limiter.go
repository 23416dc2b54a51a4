package session

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// When flood limiters are written.
const (
	limiterAfter   = int64(200 * time.Millisecond) // after the limit of a port began
	limiterRefresh = int64(4 * time.Second)
)

// writeLimiter maintains the flood limiter of a port: it writes the limiter when the
// flood has lasted a while, and again before it times out if the flood goes on.
// The limiter affects only what would go to the controller; packets that match
// other entries pass.
func (f *floods) writeLimiter(l *admission.PortLimit, now int64) {
	traps, misses := l.Class == admission.ClassNeighbours, l.Class != admission.ClassNeighbours
	g := &l.Limiter
	lasting := g.Pushed != 0 && now-g.Pushed < int64(admission.LimiterTimeout)*1e9
	if !lasting {
		g.Pushed = 0
	}
	table := flow.ForwardTable(f.handshake.usable, f.Version == openflow.V10)
	switch {
	case !f.shared.Config.Load().FloodMeters || f.Version == openflow.V10 || f.without:
		return
	case l.Table != table && (table == 0 || l.Table != flow.TableNeighbours):
		return // policies send it
	case l.Calm > 0 || now-l.Since < limiterAfter || !l.Port.Physical() || l.Port > 0xffff:
		return
	case lasting && (g.Traps || !traps) && (g.Misses || !misses) && now-g.Pushed < limiterRefresh:
		return
	}
	g.Traps, g.Misses = traps || lasting && g.Traps, misses || lasting && g.Misses
	g.LLC = f.handshake.desc.Hardware == api.OpenVSwitch
	g.Rate = uint32(l.Rate + l.Rate/4) // above the limit: shows whether the flood lasts
	g.Pushed = now
	d := &flow.Decision{}
	meter := flow.Meter{ID: flow.GuardMeters + uint32(l.Port), Flags: openflow.MeterFlagPktps | openflow.MeterFlagBurst,
		Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: g.Rate, BurstSize: max(1, g.Rate/4)}}}
	if !lasting {
		d.Meter(f.DPID, flow.MeterMod{Command: flow.Delete, Meter: flow.Meter{ID: meter.ID}}) // from an earlier run
		d.Meter(f.DPID, flow.MeterMod{Command: flow.Add, Meter: meter})
	} else {
		d.Meter(f.DPID, flow.MeterMod{Command: flow.Modify, Meter: meter})
	}
	for _, e := range admission.LimiterEntries(g, table, l.Port, l.MAC) {
		m := d.AddFlow(f.DPID)
		m.Entry = e
		if e.Goto != 0 {
			continue
		}
		m.Entry.Meter = meter.ID
		m.Entry.Apply = d.Actions(flow.ToController(f.shared.number(), flow.ReasonAction))
	}
	f.send(d)
}

// removeLimiter removes the flood limiter of a port whose flood is over. With the
// meter the switch removes the entries that use it (OpenFlow 1.3.5 §6.5).
func (f *floods) removeLimiter(l *admission.PortLimit) {
	if l.Limiter.Pushed == 0 || f.without {
		return
	}
	l.Limiter.Pushed = 0
	d := &flow.Decision{}
	d.Meter(f.DPID, flow.MeterMod{Command: flow.Delete, Meter: flow.Meter{ID: flow.GuardMeters + uint32(l.Port)}})
	f.send(d)
}

// refused handles the switch's refusal of a flood limiter's message, and
// reports whether it was one. From then on floods are shed on arrival.
func (f *floods) refused(e openflow.Error) bool {
	if !slices.Contains(f.xids, e.Xid) {
		return false
	}
	if !f.without {
		f.without = true
		f.shared.Log.Warn("switch takes no meters: floods are shed on arrival only", "dpid", f.DPID, "error", e.Error())
	}
	for _, l := range f.filter.Limited {
		l.Limiter.Pushed = 0
	}
	return true
}
