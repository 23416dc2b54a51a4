package oftest

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// output carries out an output action (§4.5, §5.12).
func (pl *pipeline) output(t *transit, to flow.Port, maxLen uint16) {
	if t.typ != flow.PacketEthernet {
		return // ports, and controllers, take frames of Ethernet
	}
	switch to {
	case flow.PortIn:
		pl.transmit(t, pl.ports[t.in])
	case flow.PortAll, flow.PortFlood:
		for _, p := range pl.portList() {
			if p.No != t.in && (to == flow.PortAll || p.Config&openflow.PortConfigNoFlood == 0) {
				pl.transmit(t, p)
			}
		}
	case flow.PortController:
		in := *t
		in.maxLen = maxLen
		pl.packetIn(&in, nil)
	case flow.PortTable:
		again := t.branch()
		pl.process(again)
	default:
		if to != t.in { // never back without being told so
			pl.transmit(t, pl.ports[to])
		}
	}
}

// toController carries out Open vSwitch's action controller.
func (pl *pipeline) toController(t *transit, a flow.Action) {
	c, _ := flow.ParseController(a)
	in := *t
	in.maxLen, in.number, in.reason = c.MaxLen, c.ID, c.Reason
	pl.packetIn(&in, nil)
}

// transmit sends the packet out of a port, if there is one and it is up.
func (pl *pipeline) transmit(t *transit, p *port) {
	if p == nil {
		return
	}
	if !p.Up() || p.Config&openflow.PortConfigNoFwd != 0 {
		p.stats.TxDropped++
		return
	}
	p.stats.TxPackets++
	p.stats.TxBytes += uint64(len(t.frame))
	pl.effects.Frames = append(pl.effects.Frames, Frame{p.No, slices.Clone(t.frame)})
}

// packetIn sends the packet to the controllers that want it and that only,
// unless it is nil, lets pass (§7.4.1).
func (pl *pipeline) packetIn(t *transit, only func(*conn) bool) {
	if p := pl.ports[t.in]; p != nil && p.Config&openflow.PortConfigNoPacketIn != 0 {
		return
	}
	for _, c := range pl.listeners(func(a *openflow.Async) *[2]uint32 { return &a.PacketIn }, uint8(t.reason)) {
		if c.number != t.number || only != nil && !only(c) {
			continue
		}
		in := flow.PacketIn{
			BufferID: flow.BufferNone, TotalLen: uint16(len(t.frame)), Reason: t.reason, Table: t.table, Cookie: t.cookie, Data: t.frame,
			Key: flow.Key{InPort: t.in, Metadata: t.key.Metadata, TunnelID: t.key.TunnelID},
		}
		if t.maxLen != flow.NoBuffer {
			if id, ok := pl.buffers.keep(pl.cfg.Buffers, t); ok {
				in.BufferID = id
				in.Data = in.Data[:min(len(in.Data), int(t.maxLen))]
			}
		}
		if msg, err := c.version.AppendPacketIn(nil, 0, &in); err == nil {
			pl.send(c, msg)
		}
	}
}

// packetOut handles a packet-out (§7.3.7).
func (pl *pipeline) packetOut(c *conn, msg []byte) error {
	var o flow.PacketOut
	if err := c.version.DecodePacketOut(msg, &o); err != nil {
		return err
	}
	if !o.InPort.Physical() && o.InPort != flow.PortController && o.InPort != flow.PortLocal {
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadPort)
	}
	t := &transit{frame: slices.Clone(o.Data), in: o.InPort, trip: pl.depart()}
	if o.BufferID != flow.BufferNone {
		kept, err := pl.buffers.release(o.BufferID)
		if err != nil {
			return err
		}
		t.frame = kept.frame
	}
	if len(t.frame) < 14 {
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadPacket)
	}
	t.legacy = c.version == openflow.V10
	var known *headers
	pl.parse(t)
	if !t.legacy {
		known = carriedHeaders(&t.key)
	}
	if err := pl.checkActions(o.Actions, known, true); err != nil {
		return err
	}
	t.cookie, t.reason = noCookie, flow.ReasonAction
	pl.apply(t, o.Actions)
	pl.arrive(t.trip)
	return nil
}
