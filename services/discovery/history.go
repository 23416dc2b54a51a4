package discovery

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A history has what ports were: in an earlier run, and as ends of links that are gone.
type history struct {
	*registry
	known  map[flow.Location]flow.Location // the far end of the link that a port has, or had
	past   map[flow.Location]memory        // of an earlier run, until its switch connects
	pastOf map[flow.DPID][]flow.Location   // the keys of past by switch, until it connects
	fresh  int64                           // past is trusted until then
	views  map[flow.Location]*portView     // of ports in past, for the stage
}

func newHistory(r *registry) *history {
	return &history{registry: r, known: map[flow.Location]flow.Location{}, past: map[flow.Location]memory{},
		pastOf: map[flow.DPID][]flow.Location{}, views: map[flow.Location]*portView{}}
}

// trustFor is how long after the last sign of life of an earlier run its memory
// is reliable. The sign comes every aliveEvery, and the runtime makes all
// services forget after ten seconds what is not published again.
const trustFor = int64(15 * time.Second)

// doubtFor bounds how long links stay up if their switch may have gone with the
// southbound: after ten seconds the runtime reports that it is gone. Ports of links stay
// so for as long after a restart of our own: switches return within eight seconds.
const doubtFor = int64(15 * time.Second)

// remember restores what a port was in an earlier run.
func (h *history) remember(at flow.Location, m memory) {
	h.past[at] = m
	h.pastOf[at.Switch] = append(h.pastOf[at.Switch], at)
	if m.role != flow.RoleEdge {
		h.known[at] = m.far
	}
}

// trust sets until when the restored state is trusted. The stage uses it at
// once: packets may arrive before the event about their switch.
func (h *history) trust(now, until int64) {
	h.fresh = until
	if now > until {
		return
	}
	ports := map[flow.DPID][]*port{}
	for at, m := range h.past {
		v := &portView{}
		v.role.Store(uint32(m.role))
		v.host.Store(m.host)
		h.views[at] = v
		ports[at.Switch] = append(ports[at.Switch], &port{at: at, view: v})
	}
	for id, list := range ports {
		h.datapath(id).view.set(list)
	}
}

// giveUp publishes that a remembered port no longer has its link.
func (h *history) giveUp(at flow.Location, cause string) {
	m := h.past[at]
	delete(h.past, at)
	if m.role != flow.RoleLink {
		return
	}
	back, ok := h.past[m.far]
	mutual := ok && back.far == at
	if mutual {
		delete(h.past, m.far)
	}
	if m.out {
		h.events = append(h.events, event{link: &api.LinkChanged{Link: m.link(at), Removed: true, Cause: cause}})
	}
	if mutual && back.out {
		h.events = append(h.events, event{link: &api.LinkChanged{Link: back.link(m.far), Removed: true, Cause: cause}})
	}
}

// forgetFormerRole drops the role of a port in an earlier run, because the port has
// a link now. It must not get that role again when its switch reconnects.
func (h *history) forgetFormerRole(p *port, far flow.Location) {
	if m, ok := h.past[p.at]; ok && m.role == flow.RoleLink && m.far != far {
		h.giveUp(p.at, "port_status")
	}
	delete(h.past, p.at)
}

// recallMissing gives up the links of ports that a switch no longer has.
func (h *history) recallMissing(now int64, dp *datapath) {
	for _, at := range h.pastOf[dp.id] {
		if _, there := h.past[at]; there && dp.port(at.Port) == nil {
			if now <= h.fresh {
				h.giveUp(at, "port_status")
			}
			delete(h.past, at)
		}
	}
	delete(h.pastOf, dp.id)
}

// memories returns what to save of the ports of a switch; false if the saved
// state must stay, because the switch is away.
func (h *history) memories(now int64, id flow.DPID) (map[flow.Port]memory, bool) {
	ports := map[flow.Port]memory{}
	dp := h.switches[id]
	if dp == nil {
		return ports, true
	}
	if !dp.connected {
		return nil, false
	}
	for _, p := range dp.ports {
		far, known := h.known[p.at]
		switch {
		case p.out != nil:
			m := memory{role: flow.RoleLink, far: p.out.dst.at, trial: !p.judged, out: true, latency: p.out.latency, since: p.out.since}
			if p.out.flaps.until > now {
				m.held = p.out.flaps.until
			}
			ports[p.at.Port] = m
		case p.in != nil:
			ports[p.at.Port] = memory{role: flow.RoleLink, far: p.in.src.at, trial: !p.judged}
		case known:
			m := memory{role: flow.RoleUnsettled, far: far, trial: !p.judged}
			if !p.up {
				m.since = p.changed
			}
			ports[p.at.Port] = m
		case p.role == flow.RoleEdge:
			p.saved = p.view.host.Load()
			ports[p.at.Port] = memory{role: flow.RoleEdge, since: p.hosts, host: p.saved, quiet: p.quiet > now || !p.isProbed()}
		}
	}
	return ports, true
}

// forgetNeighbour forgets the earlier neighbour of a port.
func (h *history) forgetNeighbour(p *port) {
	if p.was != (flow.Location{}) {
		p.was = flow.Location{}
		delete(h.known, p.at)
		h.dirty[p.at.Switch] = struct{}{}
	}
}

// forget clears the past of a port.
func (h *history) forget(p *port) {
	h.forgetNeighbour(p)
	p.hosts = 0
	p.view.host.Store(false)
}

// forgetPorts forgets the ports of a switch that has gone, except those with a link
// or a host to remember.
func (h *history) forgetPorts(dp *datapath) {
	kept := dp.ports[:0]
	for _, p := range dp.ports {
		_, linked := h.known[p.at]
		if linked || p.was != (flow.Location{}) || p.view.host.Load() {
			kept = append(kept, p)
			continue
		}
		p.up, p.removed = false, true // whoever has it still is to leave it alone
		dp.put(p.at.Port, nil)
		dp.view.ports.Delete(p.at.Port)
	}
	clear(dp.ports[len(kept):])
	dp.ports = slices.Clip(slices.Clone(kept))
}

// link returns the link of an earlier run that left a port.
func (m memory) link(at flow.Location) *api.Link {
	return &api.Link{Src: api.NewLocation(at), Dst: api.NewLocation(m.far), State: oneWay.String(), Since: rfc3339(m.since)}
}

// forgetLinks drops what was known of the links and the ports of a switch.
func (h *history) forgetLinks(id flow.DPID) {
	for at, far := range h.known {
		if at.Switch == id || far.Switch == id {
			delete(h.known, at)
			delete(h.past, at)
			h.dirty[at.Switch] = struct{}{}
		}
	}
	for at := range h.past {
		if at.Switch == id {
			delete(h.past, at)
		}
	}
}
