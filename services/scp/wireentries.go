package scp

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// want returns a switch's entries of a front without a host: what comes in by an
// edge port for the NRF, or for the front's own address, leads to the controller, and
// so does what claims that address.
func (w *wire) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || !w.open.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.switches[sw]
	if s == nil || s.openflow10 && w.own.Is6() { // of which OpenFlow 1.0 knows nothing
		return nil
	}
	table, priority := flow.TableTranslate, uint16(flow.PriorityProxy)
	if s.single {
		table, priority = 0, flow.PrioritySingleProxy
	}
	to := func(a netip.Addr) flow.Match {
		m := flow.Match{}.WithIPDst(netip.PrefixFrom(a, a.BitLen())).WithIPProto(flow.IPProtoTCP)
		if w.vlan == 0 {
			return m.WithNoVLAN()
		}
		return m.WithVLAN(w.vlan)
	}
	req := &api.SetStandingRequest{}
	for p := range s.edges {
		for _, m := range []flow.Match{to(w.nrf.Addr()).WithTCPDst(w.nrf.Port()), to(w.own)} {
			e := flow.Entry{
				Table: table, Priority: priority, Match: m.WithInPort(p), Apply: []flow.Action{flow.Output(flow.PortController)},
				Cookie: flow.NewCookie(flow.OwnerSCP, 0, 0),
			}
			req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
		}
	}
	if len(s.edges) > 0 && !s.single {
		for _, e := range flow.OwnNeighbour(flow.OwnerSCP, flow.PriorityNeighbourNRF, w.vlan, w.mac, w.own) {
			req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
		}
	}
	s.declared = len(req.Flows)
	return req
}

// answered takes what a switch has refused or not confirmed of the entries that it
// was declared last.
func (w *wire) answered(sw flow.DPID, _ []string, failed []*api.WantedFlow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.switches[sw]; s != nil && w.open.Load() {
		s.there = s.declared > 0 && len(failed) == 0
	}
}

// inForce reports whether the switches have the entries that lead to the front.
func (w *wire) inForce() bool {
	w.mu.Lock()
	var rest []flow.DPID // switches that may want some
	some, missing := false, false
	for sw, s := range w.switches {
		if !s.connected || len(s.edges) == 0 {
			continue
		}
		some = some || s.there
		missing = missing || s.declared > 0 && !s.there
		if !s.there {
			rest = append(rest, sw)
		}
	}
	w.mu.Unlock()
	return some && !missing && !slices.ContainsFunc(rest, w.due)
}

// switchChanged and roleChanged handle the events of switches and their ports.
func (w *wire) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.switchOf(sw)
	if s.connected = e.Switch.GetConnected(); !s.connected {
		s.declared, s.there = 0, false
	} else {
		s.openflow10 = e.Switch.GetOpenflow() == "1.0"
		s.single = flow.ForwardTable(e.Switch.GetTables(), s.openflow10) == 0
	}
}

func (w *wire) roleChanged(e *api.PortRoleChanged) {
	at := e.GetPort().GetAt().Flow()
	w.mu.Lock()
	s := w.switchOf(at.Switch)
	was := s.edges[at.Port]
	if e.Port.GetRole() == flow.RoleEdge.String() {
		s.edges[at.Port] = true
	} else {
		delete(s.edges, at.Port)
	}
	changed := was != s.edges[at.Port]
	w.mu.Unlock()
	if changed {
		w.changed(at.Switch)
	}
}

// switchOf returns what is known of a switch. It is called with mu held.
func (w *wire) switchOf(sw flow.DPID) *wireSwitch {
	s := w.switches[sw]
	if s == nil {
		s = &wireSwitch{edges: map[flow.Port]bool{}}
		w.switches[sw] = s
	}
	return s
}

// hostsChanged takes where the NRF is, if that is known. It is called with the
// proxy's mu held.
func (w *wire) hostsChanged(hosts *object.Hosts) {
	if s, known := hosts.Station(object.In(w.nrf.Addr(), w.vlan)); known {
		w.there.Store(&s)
	}
}
