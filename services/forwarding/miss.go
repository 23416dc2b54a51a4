package forwarding

import (
	"log/slog"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// missEntry is the table-miss entry: packets that match no other entry go to
// the controller (OpenFlow 1.3.5 §5.4).
func missEntry(d *flow.Decision) flow.Entry {
	return flow.Entry{
		Priority: flow.PriorityMiss, Cookie: flow.NewCookie(flow.OwnerForwarding, 0, 0),
		Apply: d.Actions(flow.Output(flow.PortController)),
	}
}

// missing gives switches their table-miss entry in the learning mode. With
// several instances the first does so. It belongs to the goroutine of the
// events.
type missing struct {
	replicas replicas
	switches map[flow.DPID]bool // the connected switches
	send     func(*flow.Decision) error
	log      *slog.Logger
}

func (m *missing) switchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.Switch.Dpid)
	if err != nil {
		return
	}
	if h, _ := flow.ParseHybrid(ev.Switch.Description); !ev.Switch.Connected || h != nil {
		delete(m.switches, sw)
		return
	}
	m.switches[sw] = true
	if m.replicas.isLeader() {
		m.install(sw)
	}
}

// regroup takes over what an instance that is gone may have left undone.
func (m *missing) regroup(index, count int) {
	if old, _ := m.replicas.set(index, count); old == 0 || index != 0 {
		return
	}
	for sw := range m.switches {
		m.install(sw)
	}
}

func (m *missing) install(sw flow.DPID) {
	d := &flow.Decision{}
	d.AddFlow(sw).Entry = missEntry(d)
	if err := m.send(d); err != nil {
		m.log.Warn("table miss not installed", "dpid", sw, "error", err)
	}
}
