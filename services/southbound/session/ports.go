package session

import (
	"sort"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// port is a session's state of one port of its switch.
type port struct {
	desc    openflow.PortDesc
	removed bool
	// Events use up an allowance. What exceeds it in a flood is held back, and
	// the latest state is sent later.
	allowance float64
	filled    time.Time
	held      bool
}

func newPort(sw dpid, p *openflow.PortDesc) *api.Port {
	return &api.Port{
		Dpid: sw.String(), Port: uint32(p.No), Name: Printable(p.Name), Mac: p.HWAddr.String(), Up: p.Up(),
		SpeedKbps: p.CurrSpeed, Config: p.Config, State: p.State,
	}
}

// portStatus handles a port-status message (OpenFlow 1.3.5 §7.4.3). Before the
// system knows the switch there are no events: its ports come with it. An error
// ends the session.
func (s *Session) portStatus(reason openflow.PortReason, desc *openflow.PortDesc) error {
	now := time.Now()
	s.mu.Lock()
	p := s.ports[desc.No]
	if p == nil && reason == openflow.PortDeleted {
		s.mu.Unlock()
		return nil
	}
	if p == nil {
		var err error
		if p, err = s.addPort(desc, now); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	p.desc, p.removed = *desc, reason == openflow.PortDeleted
	if !s.active {
		if p.removed {
			s.deletePort(desc.No)
		}
		s.mu.Unlock()
		return nil
	}
	event := s.portEvent(p, now)
	s.mu.Unlock()
	if event != nil {
		s.shared.PortChanged(event)
		return nil
	}
	s.count.portEventsHeld.Add(1)
	s.held.Store(true)
	return nil
}

// PortBytes is the memory that a port takes.
const PortBytes = 256

// addPort adds a port; mu is held. An error ends the session.
func (s *Session) addPort(desc *openflow.PortDesc, now time.Time) (*port, error) {
	if len(s.ports) >= admission.PortsMost {
		return nil, admission.NewExcess(admission.BoundPorts, admission.PortsMost)
	}
	if err := s.account.Take(PortBytes); err != nil {
		return nil, err
	}
	p := &port{desc: *desc, allowance: s.burst(), filled: now}
	s.ports[desc.No] = p
	return p, nil
}

// deletePort removes a known port; mu is held.
func (s *Session) deletePort(no flow.Port) {
	delete(s.ports, no)
	s.account.Give(PortBytes)
}

func (s *Session) burst() float64 { return float64(2 * s.shared.Config.Load().PortEventsPerSecond) }

// portEvent returns the event for a port if its allowance suffices; else the event is
// held back.
func (s *Session) portEvent(p *port, now time.Time) *api.PortChanged {
	p.allowance = min(s.burst(), p.allowance+now.Sub(p.filled).Seconds()*float64(s.shared.Config.Load().PortEventsPerSecond))
	p.filled = now
	if p.allowance < 1 {
		p.held = true
		return nil
	}
	p.allowance--
	p.held = false
	if p.removed {
		s.deletePort(p.desc.No)
	}
	return &api.PortChanged{Port: newPort(s.DPID, &p.desc), Removed: p.removed}
}

// releaseHeld sends the port events that were held back in a flood.
func (s *Session) releaseHeld(now time.Time) {
	if !s.held.Swap(false) {
		return
	}
	var events []*api.PortChanged
	s.mu.Lock()
	for _, p := range s.ports {
		if !p.held {
			continue
		}
		if e := s.portEvent(p, now); e != nil {
			events = append(events, e)
		} else {
			s.held.Store(true)
		}
	}
	s.mu.Unlock()
	for _, e := range events {
		s.shared.PortChanged(e)
	}
}

// PortList returns the ports in the order of their numbers.
func (s *Session) PortList() []*api.Port {
	s.mu.Lock()
	list := make([]*api.Port, 0, len(s.ports))
	for _, p := range s.ports {
		if !p.removed {
			list = append(list, newPort(s.DPID, &p.desc))
		}
	}
	s.mu.Unlock()
	sort.Slice(list, func(i, j int) bool { return list[i].Port < list[j].Port })
	return list
}

// addPorts adds ports from the switch's description.
func (s *Session) addPorts(list []openflow.PortDesc) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		if p := s.ports[list[i].No]; p != nil {
			p.desc = list[i]
		} else if _, err := s.addPort(&list[i], now); err != nil {
			return err
		}
	}
	return nil
}
