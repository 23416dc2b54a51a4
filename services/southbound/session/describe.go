package session

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Describe returns the API's description of a session's switch.
func (s *Session) Describe() *api.Switch {
	s.mu.Lock()
	since := s.since
	s.mu.Unlock()
	d := &api.Switch{
		Dpid: s.DPID.String(), Connected: true, Address: s.Conn.RemoteAddr().String(), Local: s.Conn.LocalAddr().String(),
		Openflow:     map[openflow.Version]string{openflow.V10: "1.0", openflow.V13: "1.3"}[s.Version],
		Manufacturer: s.handshake.desc.Manufacturer, Hardware: s.handshake.desc.Hardware, Software: s.handshake.desc.Software,
		Serial: s.handshake.desc.Serial, Description: s.handshake.desc.Datapath,
		Tables: s.handshake.usable, TableIds: s.handshake.gapped, Buffers: s.handshake.feature.Buffers, Ports: uint32(s.ports.size()),
		Since:     since.UTC().Format(time.RFC3339),
		PacketIns: s.count.packetIns.Load(), PacketOuts: s.count.packetOuts.Load(), FlowMods: s.count.flowMods.Load(),
		Errors: s.count.errors.Load(), Shed: s.count.shed.Load(), EchoUs: uint64(s.alive.echo.Load() / 1000),
	}
	if s.Role.role != openflow.RoleNoChange {
		d.Role = s.Role.role.String()
	}
	return d
}

// removedEntry returns the message for an entry that a switch has removed.
func removedEntry(sw dpid, r *openflow.FlowRemoved) *api.FlowEntry {
	e := flow.Entry{
		Table: r.Table, Priority: r.Priority, IdleTimeout: r.IdleTimeout, HardTimeout: r.HardTimeout,
		Cookie: r.Cookie, Match: r.Match,
	}
	f := api.NewFlowEntry(sw, &e)
	f.Packets, f.Bytes = r.Packets, r.Bytes
	f.Duration = float64(r.DurationSec) + float64(r.DurationNsec)/1e9
	return f
}

// removedReason names the reason why a switch removed an entry.
func removedReason(r openflow.RemovedReason) string {
	names := [...]string{"idle_timeout", "hard_timeout", "delete", "group_delete"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason_%d", r)
}
