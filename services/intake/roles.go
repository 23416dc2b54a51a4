package intake

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// roles is discovery's roles of ports, for the packets that do not pass
// discovery. A port without a role is unsettled.
type roles struct {
	used func(flow.Location) // called for the first packet by an edge port
	log  *slog.Logger

	mu       sync.Mutex // guards switches, and writes to a table
	switches map[flow.DPID]*table
}

// table is the ports of one switch.
type table struct{ ports flow.PortMap[port] }

type port struct {
	role atomic.Uint32
	used atomic.Bool // used has been called
}

func newRoles(used func(flow.Location), log *slog.Logger) *roles {
	return &roles{used: used, log: log, switches: map[flow.DPID]*table{}}
}

// of returns the table of a switch; mu is held.
func (r *roles) of(sw flow.DPID) *table {
	t := r.switches[sw]
	if t == nil {
		t = &table{}
		r.switches[sw] = t
	}
	return t
}

// networkChanged follows changes of roles.
func (r *roles) networkChanged(c nib.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range c.Roles() {
		at := cmp.Or(s.Is, s.Was).Key
		t := r.of(at.Switch)
		if s.Is == nil {
			t.ports.Delete(at.Port)
			continue
		}
		role, known := flow.ParsePortRole(s.Is.Is.Role)
		if !known {
			r.log.Error("role of a port left out", "dpid", at.Switch, "port", at.Port, "role", s.Is.Is.Role)
			continue
		}
		p := t.ports.Get(at.Port)
		if p == nil {
			p = &port{}
			t.ports.Put(at.Port, p)
		}
		p.role.Store(uint32(role))
		p.used.Store(false)
	}
}

// open returns a function that sets the role of the ingress port of a switch's
// packet.
func (r *roles) open(sw flow.DPID) func(*flow.PacketIn) {
	r.mu.Lock()
	t := r.of(sw)
	r.mu.Unlock()
	return func(in *flow.PacketIn) {
		p := t.ports.Get(in.Key.InPort)
		if p == nil {
			in.Role = flow.RoleUnsettled
			return
		}
		in.Role = flow.PortRole(p.role.Load())
		if in.Role == flow.RoleEdge && !p.used.Load() && p.used.CompareAndSwap(false, true) {
			r.used(flow.Location{Switch: sw, Port: in.Key.InPort})
		}
	}
}
