package session

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

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

// portTable is the ports of a session's switch, as the switch describes them.
type portTable struct {
	*channel
	held atomic.Bool // a port event is held back

	mu    sync.Mutex // guards known
	known map[flow.Port]*port
}

// record handles a port-status message while the system does not know the switch:
// there are no events, as its ports come with it. An error ends the session.
func (t *portTable) record(reason openflow.PortReason, desc *openflow.PortDesc) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, err := t.change(reason, desc, time.Now())
	if p != nil && p.removed {
		t.deletePort(desc.No)
	}
	return err
}

// report handles a port-status message and publishes it, or holds it back. An error
// ends the session.
func (t *portTable) report(reason openflow.PortReason, desc *openflow.PortDesc) error {
	now := time.Now()
	t.mu.Lock()
	p, err := t.change(reason, desc, now)
	if p == nil {
		t.mu.Unlock()
		return err
	}
	event := t.portEvent(p, now)
	t.mu.Unlock()
	if event != nil {
		t.shared.PortChanged(event)
		return nil
	}
	t.count.portEventsHeld.Add(1)
	t.held.Store(true)
	return nil
}

// change sets the state of a port, or returns nil if it was removed before; mu is
// held.
func (t *portTable) change(reason openflow.PortReason, desc *openflow.PortDesc, now time.Time) (*port, error) {
	p := t.known[desc.No]
	if p == nil && reason == openflow.PortDeleted {
		return nil, nil
	}
	if p == nil {
		var err error
		if p, err = t.addPort(desc, now); err != nil {
			return nil, err
		}
	}
	p.desc, p.removed = *desc, reason == openflow.PortDeleted
	return p, nil
}

// PortBytes is the memory that a port takes.
const PortBytes = 256

// addPort adds a port; mu is held. An error ends the session.
func (t *portTable) addPort(desc *openflow.PortDesc, now time.Time) (*port, error) {
	if len(t.known) >= admission.PortsMost {
		return nil, admission.NewExcess(admission.BoundPorts, admission.PortsMost)
	}
	if err := t.account.Take(PortBytes); err != nil {
		return nil, err
	}
	p := &port{desc: *desc, allowance: t.burst(), filled: now}
	t.known[desc.No] = p
	return p, nil
}

// deletePort removes a known port; mu is held.
func (t *portTable) deletePort(no flow.Port) {
	delete(t.known, no)
	t.account.Give(PortBytes)
}

func (t *portTable) burst() float64 { return float64(2 * t.shared.Config.Load().PortEventsPerSecond) }

// portEvent returns the event for a port if its allowance suffices; else the event is
// held back.
func (t *portTable) portEvent(p *port, now time.Time) *api.PortChanged {
	p.allowance = min(t.burst(), p.allowance+now.Sub(p.filled).Seconds()*float64(t.shared.Config.Load().PortEventsPerSecond))
	p.filled = now
	if p.allowance < 1 {
		p.held = true
		return nil
	}
	p.allowance--
	p.held = false
	if p.removed {
		t.deletePort(p.desc.No)
	}
	return &api.PortChanged{Port: newPort(t.DPID, &p.desc), Removed: p.removed}
}

// releaseHeld sends the port events that were held back in a flood.
func (t *portTable) releaseHeld(now time.Time) {
	if !t.held.Swap(false) {
		return
	}
	var events []*api.PortChanged
	t.mu.Lock()
	for _, p := range t.known {
		if !p.held {
			continue
		}
		if e := t.portEvent(p, now); e != nil {
			events = append(events, e)
		} else {
			t.held.Store(true)
		}
	}
	t.mu.Unlock()
	for _, e := range events {
		t.shared.PortChanged(e)
	}
}

// list returns the ports in the order of their numbers.
func (t *portTable) list() []*api.Port {
	t.mu.Lock()
	list := make([]*api.Port, 0, len(t.known))
	for _, p := range t.known {
		if !p.removed {
			list = append(list, newPort(t.DPID, &p.desc))
		}
	}
	t.mu.Unlock()
	sort.Slice(list, func(i, j int) bool { return list[i].Port < list[j].Port })
	return list
}

// addPorts adds ports from the switch's description.
func (t *portTable) addPorts(list []openflow.PortDesc) error {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range list {
		if p := t.known[list[i].No]; p != nil {
			p.desc = list[i]
		} else if _, err := t.addPort(&list[i], now); err != nil {
			return err
		}
	}
	return nil
}

// size returns the number of ports.
func (t *portTable) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.known)
}

// modification returns the message that changes a port.
func (t *portTable) modification(req *api.ModifyPortRequest) (m openflow.PortMod, err error) {
	t.mu.Lock()
	p := t.known[flow.Port(req.Port)]
	if p == nil || p.removed {
		t.mu.Unlock()
		return m, api.Errorf(codes.NotFound, "switch %v has no port %d", t.DPID, req.Port)
	}
	m = openflow.PortMod{Port: p.desc.No, HWAddr: p.desc.HWAddr, Config: req.Config, Mask: req.Mask, Advertise: p.desc.Advertised}
	t.mu.Unlock()
	if req.Advertise != nil {
		m.Advertise = *req.Advertise
	}
	if req.HwAddr != nil {
		if m.HWAddr, err = flow.ParseMAC(*req.HwAddr); err != nil {
			return m, api.Errorf(codes.InvalidArgument, "hw_addr: %w", err)
		}
	}
	return m, nil
}
