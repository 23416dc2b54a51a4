package discovery

import (
	"math"
	"math/rand/v2"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// An event is a change to be published or logged: one of the fields is set.
type event struct {
	link    *api.LinkChanged
	role    *api.PortRoleChanged
	settled *api.RolesSettled
	damped  *damping
}

// A damping reports that a link is dampened for a time, in nanoseconds, from
// when it last went down, or, with 0, no longer.
type damping struct {
	pair pair
	hold int64
}

// An outbox has what is to be published, and which switches are to be saved.
type outbox struct {
	events []event
	dirty  map[flow.DPID]struct{} // switches with unsaved memories
}

// An agenda says when there is timed work.
type agenda struct {
	deadline int64 // no timed work is due before this time
}

// A registry has the switches with their ports, and collects what comes of changes to
// them. Every part of a topology uses it.
type registry struct {
	cfg       *Config
	rand      *rand.Rand
	switches  map[flow.DPID]*datapath
	customers map[flow.DPID]map[flow.Port]customer
	order     []*datapath // the same, in the order of their probes
	moved     bool        // links or switches have come or gone since the order was made
	outbox
	agenda
}

func newRegistry(cfg *Config, seed uint64) *registry {
	return &registry{cfg: cfg, rand: rand.New(rand.NewPCG(seed, 0)), switches: map[flow.DPID]*datapath{}, customers: map[flow.DPID]map[flow.Port]customer{},
		agenda: agenda{deadline: math.MaxInt64}}
}

// datapath returns the record of a switch; it makes one if there is none.
func (r *registry) datapath(id flow.DPID) *datapath {
	dp := r.switches[id]
	if dp == nil {
		dp = &datapath{id: id, high: map[flow.Port]*port{}, view: &view{}, customers: r.customers[id], checkAt: math.MaxInt64, settle: math.MaxInt64}
		dp.phase = r.rand.Float64()
		r.switches[id] = dp
		r.order = append(r.order, dp)
		r.moved = true
	}
	return dp
}

// at returns a port, nil if there is none.
func (r *registry) at(l flow.Location) *port {
	if dp := r.switches[l.Switch]; dp != nil {
		return dp.port(l.Port)
	}
	return nil
}

// schedule schedules timed work at a time.
func (a *agenda) schedule(at int64) { a.deadline = min(a.deadline, at) }

// countPorts counts the ports of connected switches with a role.
func (r *registry) countPorts(role flow.PortRole) (n int) {
	for _, dp := range r.switches {
		if !dp.connected {
			continue
		}
		for _, p := range dp.ports {
			if p.role == role && !p.removed {
				n++
			}
		}
	}
	return n
}

// mark schedules saving the switches where more ports now have hosts.
func (r *registry) mark() {
	for id, dp := range r.switches {
		for _, p := range dp.ports {
			if p.role == flow.RoleEdge && !p.saved && p.view.host.Load() {
				r.dirty[id] = struct{}{}
			}
		}
	}
}
