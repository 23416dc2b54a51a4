package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// port is one port of a switch.
type port struct {
	desc  openflow.PortDesc
	far   End // where its link leads
	link  int // index of its link; -1 is none: hosts or nothing
	mute  bool
	rx    openflow.Counter
	tx    openflow.Counter
	drops uint64
}

func newPort(sw flow.DPID, no flow.Port) port {
	return port{link: -1, desc: openflow.PortDesc{
		No: no, HWAddr: flow.MACFrom(0x06<<40 | uint64(sw)&0xffffff<<16 | uint64(no)&0xffff), Name: "eth" + strconv.Itoa(int(no)),
		Curr: openflow.Port10GbFD | openflow.PortCopper, Supported: openflow.Port10GbFD | openflow.PortCopper,
		CurrSpeed: 10_000_000, MaxSpeed: 10_000_000, State: openflow.PortStateLive,
	}}
}

// wire puts the end of a link into the port.
func (p *port) wire(far End, link int) { p.far, p.link = far, link }

// port returns a port by its number, nil if there is none.
func (nd *node) port(no flow.Port) *port {
	if no < 1 || int64(no) > int64(len(nd.ports)) {
		return nil
	}
	return &nd.ports[no-1]
}

// What ends frames that go in circles, and storms: a packet-out leads to at
// most maxHops hops in a row and maxCopies in all.
const (
	maxHops   = 64
	maxCopies = 1 << 16
)

// packetOut sends a packet on behalf of the controller.
func (nd *node) packetOut(o *flow.PacketOut, msg []byte) {
	if o.BufferID != flow.BufferNone {
		nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBufferUnknown)
		return
	}
	for _, a := range o.Actions {
		if a.Kind == flow.ActionOutput && flow.Port(a.Arg).Physical() && nd.port(flow.Port(a.Arg)) == nil {
			nd.refuseWith(msg, openflow.ErrBadAction, openflow.BadActionBadOutPort)
			return
		}
	}
	nd.net.copies = maxCopies
	nd.apply(o.Actions, o.InPort, o.Data, maxHops, 0, flow.Cookie(^uint64(0)))
}

// apply carries out the outputs among actions. A frame that the actions would
// change is dropped: the simulation does not rewrite.
func (nd *node) apply(actions []flow.Action, in flow.Port, frame []byte, hops int, table uint8, cookie flow.Cookie) {
	for _, a := range actions {
		switch a.Kind {
		case flow.ActionOutput:
			nd.output(flow.Port(a.Arg), in, frame, hops, table, cookie)
		case flow.ActionGroup:
			nd.group(a.Arg, in, frame, hops)
		default:
			nd.net.stats.Dropped++
			return
		}
	}
}

// output sends a frame out of a port, or of those that a reserved port means.
func (nd *node) output(to, in flow.Port, frame []byte, hops int, table uint8, cookie flow.Cookie) {
	switch to {
	case flow.PortFlood, flow.PortAll, flow.PortNormal:
		for i := range nd.ports {
			p := &nd.ports[i]
			if p.desc.No == in || to == flow.PortFlood && p.desc.Config&openflow.PortConfigNoFlood != 0 {
				continue
			}
			nd.send(p, frame, hops)
		}
	case flow.PortIn:
		if p := nd.port(in); p != nil {
			nd.send(p, frame, hops)
		}
	case flow.PortTable:
		nd.process(in, frame, hops)
	case flow.PortController:
		nd.packetIn(in, frame, flow.ReasonAction, table, cookie)
	default:
		// A frame goes back out of its own port only by way of PortIn.
		if p := nd.port(to); p != nil && to != in {
			nd.send(p, frame, hops)
		}
	}
}

// send puts a frame on the wire of a port.
func (nd *node) send(p *port, frame []byte, hops int) {
	n := nd.net
	if !p.desc.Up() || p.desc.Config&openflow.PortConfigNoFwd != 0 || hops == 0 || n.copies == 0 {
		p.drops++
		n.stats.Dropped++
		return
	}
	n.copies--
	p.tx.Packets++
	p.tx.Bytes += uint64(len(frame))
	if p.link < 0 {
		n.stats.Delivered++
		return
	}
	far := n.nodes[p.far.Switch]
	q := &far.ports[p.far.Port-1]
	if p.mute || !q.desc.Up() || q.desc.Config&openflow.PortConfigNoRecv != 0 {
		n.stats.Dropped++
		return
	}
	n.stats.Carried++
	q.rx.Packets++
	q.rx.Bytes += uint64(len(frame))
	far.process(q.desc.No, frame, hops-1)
}

// process takes a frame through the flow tables of the switch.
func (nd *node) process(in flow.Port, frame []byte, hops int) {
	var k flow.Key
	k.InPort = in
	packet.Parse(frame, &k)
	for t := uint8(0); ; {
		e := nd.table.lookup(t, &k)
		if e == nil {
			if nd.version == openflow.V10 { // a miss goes to the controller
				nd.packetIn(in, frame, flow.ReasonNoMatch, 0, 0)
			} else {
				nd.net.stats.Dropped++
			}
			return
		}
		e.packets++
		e.bytes += uint64(len(frame))
		reason := flow.ReasonAction
		if e.Priority == 0 && e.Match.Set == 0 && nd.version != openflow.V10 {
			reason = flow.ReasonNoMatch
		}
		for _, list := range [2][]flow.Action{e.Apply, e.Write} {
			for _, a := range list {
				if a.Kind == flow.ActionOutput && flow.Port(a.Arg) == flow.PortController {
					nd.packetIn(in, frame, reason, t, e.Cookie)
				} else {
					nd.apply([]flow.Action{a}, in, frame, hops, t, e.Cookie)
				}
			}
		}
		if e.Goto <= t {
			return
		}
		t = e.Goto
	}
}

// group sends a frame through a group: all buckets, or the first that is live.
func (nd *node) group(id uint32, in flow.Port, frame []byte, hops int) {
	g := nd.table.groups[id]
	if g == nil || hops == 0 || nd.net.copies == 0 {
		nd.net.stats.Dropped++
		return
	}
	for _, b := range g.Buckets {
		if g.Kind == flow.GroupKindFastFailover {
			if p := nd.port(b.WatchPort); (p == nil || !p.desc.Up()) && !nd.liveGroup(b.WatchGroup) {
				continue
			}
		}
		nd.apply(b.Actions, in, frame, hops-1, 0, 0)
		if g.Kind != flow.GroupKindAll {
			return
		}
	}
}

// liveGroup reports whether a group has a bucket that watches nothing, or a port that is up.
func (nd *node) liveGroup(id uint32) bool {
	g := nd.table.groups[id]
	return g != nil && slices.ContainsFunc(g.Buckets, func(b flow.Bucket) bool {
		p := nd.port(b.WatchPort)
		return b.WatchPort == flow.PortAny && b.WatchGroup == flow.GroupAny || p != nil && p.desc.Up()
	})
}

// packetIn sends a frame to the controller, whole.
func (nd *node) packetIn(in flow.Port, frame []byte, reason flow.Reason, table uint8, cookie flow.Cookie) {
	if !nd.wants(nd.async.PacketIn, uint8(reason)) || len(nd.pending) > maxPending {
		nd.net.stats.Dropped++
		return
	}
	if p := nd.port(in); p != nil && p.desc.Config&openflow.PortConfigNoPacketIn != 0 {
		return
	}
	nd.net.stats.PacketIns++
	pi := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Reason: reason, Table: table, Cookie: cookie, Data: frame}
	pi.Key.InPort = in
	nd.queue(nd.version.AppendPacketIn(nd.pending, nd.newXid(), &pi))
}

// announce tells the controller that a port has changed.
func (nd *node) announce(p *port) {
	if p.desc.State&openflow.PortStateLinkDown == 0 {
		p.desc.State |= openflow.PortStateLive
	} else {
		p.desc.State &^= openflow.PortStateLive
	}
	if nd.wants(nd.async.PortStatus, uint8(openflow.PortModified)) {
		nd.queue(nd.version.AppendPortStatus(nd.pending, nd.newXid(), openflow.PortModified, &p.desc))
	}
}

// SetPort takes a port's link away or brings it back; the switch reports it,
// and so does that at the far end, which loses its link, too.
func (n *Network) SetPort(ctx context.Context, at End, up bool) error {
	bad := error(nil)
	err := n.call(ctx, func() {
		if at.Switch < 0 || at.Switch >= len(n.nodes) || n.nodes[at.Switch].port(at.Port) == nil {
			bad = fmt.Errorf("simulated network: switch %d has no port %v", at.Switch, at.Port)
			return
		}
		nd := n.nodes[at.Switch]
		p := nd.port(at.Port)
		nd.setLink(p, up)
		if p.link >= 0 {
			far := n.nodes[p.far.Switch]
			far.setLink(far.port(p.far.Port), up)
		}
	})
	if err == nil {
		err = bad
	}
	return err
}

// setLink sets the physical state of a port.
func (nd *node) setLink(p *port, up bool) {
	was := p.desc.State
	if up {
		p.desc.State &^= openflow.PortStateLinkDown
	} else {
		p.desc.State |= openflow.PortStateLinkDown
	}
	if was&openflow.PortStateLinkDown != p.desc.State&openflow.PortStateLinkDown {
		nd.announce(p)
	}
}

// SetLink takes a link down at both ends, or brings it up.
func (n *Network) SetLink(ctx context.Context, link int, up bool) error {
	if link < 0 || link >= len(n.cfg.Topology.Links) {
		return fmt.Errorf("simulated network: there is no link %d", link)
	}
	return n.SetPort(ctx, n.cfg.Topology.Links[link].A, up)
}

// MuteLink makes a link lose all frames without either end noticing, or ends
// that.
func (n *Network) MuteLink(ctx context.Context, link int, mute bool) error {
	if link < 0 || link >= len(n.cfg.Topology.Links) {
		return fmt.Errorf("simulated network: there is no link %d", link)
	}
	return n.call(ctx, func() {
		for _, e := range [2]End{n.cfg.Topology.Links[link].A, n.cfg.Topology.Links[link].B} {
			n.nodes[e.Switch].ports[e.Port-1].mute = mute
		}
	})
}
