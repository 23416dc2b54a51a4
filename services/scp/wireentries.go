package scp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// toward matches TCP to an address.
func (w *wire) toward(a netip.Addr) flow.Match {
	m := flow.Match{}.WithIPDst(netip.PrefixFrom(a, a.BitLen())).WithIPProto(flow.IPProtoTCP)
	if w.vlan == 0 {
		return m.WithNoVLAN()
	}
	return m.WithVLAN(w.vlan)
}

// want returns a switch's entries of a front without a host: what comes in by an
// edge port for the NRF, behind the gate, or for the front's own address, leads to the
// controller, and so does what claims that address.
func (w *wire) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || !w.open.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	openflow10 := info.Openflow == "1.0"
	if openflow10 && w.own.Is6() { // of which OpenFlow 1.0 knows nothing
		return nil
	}
	single := flow.ForwardTable(info.Tables, openflow10) == 0
	table, own, priority := flow.TableProxy, flow.TableTranslate, uint16(flow.PriorityProxy)
	if single {
		table, own, priority = 0, 0, flow.PrioritySingleProxy
	}
	req := &api.SetStandingRequest{}
	add := func(e flow.Entry) {
		e.Cookie = flow.NewCookie(flow.OwnerSCP, 0, 0)
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
	}
	toNRF := w.toward(w.nrf.Addr()).WithTCPDst(w.nrf.Port())
	edges, lead := w.net.PortsWith(sw, flow.RoleEdge), []flow.Action{flow.Output(flow.PortController)}
	for _, p := range edges {
		add(flow.Entry{Table: table, Priority: priority, Match: toNRF.WithInPort(p), Apply: lead})
		add(flow.Entry{Table: own, Priority: priority, Match: w.toward(w.own).WithInPort(p), Apply: lead})
	}
	if len(edges) > 0 && !single {
		add(flow.Entry{Table: table, Priority: flow.PriorityProxyRest, Match: toNRF, Goto: flow.TableForward})
		for _, e := range flow.OwnNeighbour(flow.OwnerSCP, flow.PriorityNeighbourNRF, w.vlan, w.mac, w.own) {
			req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
		}
	}
	s := w.switchOf(sw)
	s.declared, s.single = len(req.Flows), single
	return req
}

// answered takes what a switch has refused or not confirmed of the entries that it
// was declared last.
func (w *wire) answered(sw flow.DPID, _ []string, failed []*api.WantedFlow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.switches[sw]; s != nil && w.open.Load() {
		s.there = s.declared > 0 && len(failed) == 0
		object.Notify(w.gateDue)
	}
}

// inForce reports whether the switches have the entries that lead to the front.
func (w *wire) inForce() bool {
	w.mu.Lock()
	var rest []flow.DPID // switches that may want some
	some, missing := false, false
	for sw := range w.net.Switches() {
		if !sw.Is.Switch.Connected || len(w.net.PortsWith(sw.Key, flow.RoleEdge)) == 0 {
			continue
		}
		s := w.switchOf(sw.Key)
		there := s.there && (s.single || s.gated)
		some = some || there
		missing = missing || s.declared > 0 && !there
		if !there {
			rest = append(rest, sw.Key)
		}
	}
	w.mu.Unlock()
	return some && !missing && !slices.ContainsFunc(rest, w.due)
}

// networkChanged follows the switches and the roles of their ports.
func (w *wire) networkChanged(c nib.Change) {
	w.mu.Lock()
	w.net = c.Is
	for _, s := range c.Switches() {
		if s.Is != nil && (nib.Anew(s) || !s.Is.Is.Switch.Connected) {
			delete(w.switches, s.Is.Key)
		}
	}
	w.mu.Unlock()
	for _, r := range c.Roles() {
		if isEdge(r.Was) != isEdge(r.Is) {
			w.changed(cmp.Or(r.Is, r.Was).Key.Switch)
		}
	}
}

func isEdge(r *nib.Role) bool { return r != nil && r.Is.Role == flow.RoleEdge.String() }

// switchOf returns what is known of a switch. It is called with mu held.
func (w *wire) switchOf(sw flow.DPID) *wireSwitch {
	s := w.switches[sw]
	if s == nil {
		s = &wireSwitch{}
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
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, r := range w.targets {
		if s, known := hosts.Station(object.In(a, w.vlan)); known {
			r.Station = s
		}
	}
}
