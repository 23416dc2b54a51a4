package oftest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// port is a port with its counters.
type port struct {
	openflow.PortDesc
	stats openflow.PortStats
	since time.Time
}

// The bits of a port's configuration that may be changed.
const portConfigs = openflow.PortConfigDown | openflow.PortConfigNoRecv | openflow.PortConfigNoFwd | openflow.PortConfigNoPacketIn

func (ct *contents) addPort(no flow.Port) *port {
	p := &port{since: ct.now}
	p.PortDesc = openflow.PortDesc{
		No: no, HWAddr: flow.MACFrom(0x020000000000 | uint64(ct.cfg.DPID)<<16&0xffffff0000 | uint64(no)&0xffff),
		Name: fmt.Sprintf("port%d", no), State: openflow.PortStateLive,
		Curr: openflow.Port10GbFD, Supported: openflow.Port10GbFD, CurrSpeed: 10_000_000, MaxSpeed: 10_000_000,
	}
	if no == flow.PortLocal {
		p.Name = "local"
	}
	p.stats.Port = no
	ct.ports[no] = p
	return p
}

// Port returns the description of a port; false if there is none.
func (ct *contents) Port(no flow.Port) (openflow.PortDesc, bool) {
	p := ct.ports[no]
	if p == nil {
		return openflow.PortDesc{}, false
	}
	return p.PortDesc, true
}

// AddPort adds a port, up, and tells the controllers.
func (ct *contents) AddPort(no flow.Port) Effects {
	if ct.ports[no] == nil {
		ct.tellPort(openflow.PortAdded, ct.addPort(no))
	}
	return ct.take()
}

// RemovePort removes a port and tells the controllers.
func (ct *contents) RemovePort(no flow.Port) Effects {
	if p := ct.ports[no]; p != nil {
		delete(ct.ports, no)
		ct.tellPort(openflow.PortDeleted, p)
	}
	return ct.take()
}

// SetLink gives a port its link, or takes it away, and tells the controllers
// if that is a change.
func (ct *contents) SetLink(no flow.Port, up bool) Effects {
	if p := ct.ports[no]; p != nil {
		was := p.State
		p.State |= openflow.PortStateLinkDown
		if up {
			p.State &^= openflow.PortStateLinkDown
		}
		p.live()
		if p.State != was {
			ct.tellPort(openflow.PortModified, p)
		}
	}
	return ct.take()
}

// SetLive says whether a port counts as live for fast-failover groups, as a BFD session
// would, until its link changes.
func (ct *contents) SetLive(no flow.Port, live bool) Effects {
	if p := ct.ports[no]; p != nil {
		if p.State &^= openflow.PortStateLive; live {
			p.State |= openflow.PortStateLive
		}
	}
	return ct.take()
}

// live brings the bit that fast-failover groups ask for into line.
func (p *port) live() {
	p.State &^= openflow.PortStateLive
	if p.Up() {
		p.State |= openflow.PortStateLive
	}
}

// tellPort sends a port-status (§7.4.3).
func (ct *contents) tellPort(reason openflow.PortReason, p *port) {
	for _, c := range ct.listeners(func(a *openflow.Async) *[2]uint32 { return &a.PortStatus }, uint8(reason)) {
		desc := c.view(p.PortDesc)
		if msg, err := c.version.AppendPortStatus(nil, ct.nextXid(), reason, &desc); err == nil {
			ct.send(c, msg)
		}
	}
}

// view returns a port as the connection's version has it.
func (c *conn) view(p openflow.PortDesc) openflow.PortDesc {
	if c.version == openflow.V10 {
		p.State &= openflow.PortStateLinkDown
	} else {
		p.Config &^= openflow.PortConfigNoFlood
	}
	return p
}

// portMod handles a port-mod (§7.3.4.3).
func (ct *contents) portMod(c *conn, msg []byte) error {
	m, err := c.version.DecodePortMod(msg)
	if err != nil {
		return err
	}
	p := ct.ports[m.Port]
	legal := portConfigs
	if c.version == openflow.V10 {
		legal |= openflow.PortConfigNoFlood | 1<<1 | 1<<3 // no-STP, no-recv-STP
	}
	switch {
	case p == nil:
		return refuse(openflow.ErrPortModFailed, openflow.PortModFailedBadPort)
	case p.HWAddr != m.HWAddr:
		return refuse(openflow.ErrPortModFailed, openflow.PortModFailedBadHWAddr)
	case m.Mask&^legal != 0:
		return refuse(openflow.ErrPortModFailed, openflow.PortModFailedBadConfig)
	}
	was := p.PortDesc
	p.Config = p.Config&^m.Mask | m.Config&m.Mask
	if m.Advertise != 0 {
		p.Advertised = m.Advertise
	}
	p.live()
	if p.PortDesc != was {
		ct.tellPort(openflow.PortModified, p)
	}
	return nil
}

// portList returns the ports in the order of their numbers.
func (ct *contents) portList() []*port {
	list := make([]*port, 0, len(ct.ports))
	for _, no := range slices.Sorted(maps.Keys(ct.ports)) {
		list = append(list, ct.ports[no])
	}
	return list
}
