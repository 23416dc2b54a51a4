package oftest

import (
	"encoding/binary"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Message handles one whole message of a controller's, as openflow.Next cuts
// it from a stream. What it causes may concern other connections too.
func (s *Switch) Message(id int, msg []byte) Effects {
	c := s.conns[id]
	if c == nil {
		return Effects{}
	}
	if c.version == 0 {
		s.hello(c, msg)
		return s.take()
	}
	h, err := openflow.ParseHeader(msg)
	if err == nil {
		err = s.handle(c, h, msg)
	}
	if err != nil {
		s.refused(c, h.Xid, msg, err)
	}
	return s.take()
}

// writes are the messages that a slave may not send (§6.3.6).
var writes = []openflow.Type{
	openflow.TypePacketOut, openflow.TypeFlowMod, openflow.TypeGroupMod, openflow.TypePortMod,
	openflow.TypeTableMod, openflow.TypeMeterMod, openflow.TypeSetConfig,
}

// bare are the messages that have no body.
var bare = []openflow.Type{
	openflow.TypeFeaturesRequest, openflow.TypeGetConfigRequest, openflow.TypeBarrierRequest, openflow.TypeGetAsyncRequest,
}

// handle handles a message after hello.
func (s *Switch) handle(c *conn, h openflow.Header, msg []byte) error {
	switch {
	case h.Type == openflow.TypeHello:
		return nil // another hello changes nothing
	case h.Version != c.version:
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadVersion)
	case c.role == openflow.RoleSlave && slices.Contains(writes, h.Type):
		return refuse(openflow.ErrBadRequest, openflow.BadRequestIsSlave)
	case slices.Contains(bare, h.Type) && len(msg) != openflow.HeaderLen:
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadLen)
	}
	v := c.version
	switch h.Type {
	case openflow.TypeError, openflow.TypeEchoReply:
		return nil
	case openflow.TypeEchoRequest:
		s.send(c, must(v.AppendEchoReply(nil, h.Xid, msg[openflow.HeaderLen:])))
		return nil
	case openflow.TypeFeaturesRequest:
		return s.features(c, h.Xid)
	case openflow.TypeGetConfigRequest:
		s.send(c, v.AppendGetConfigReply(nil, h.Xid, s.flags, s.missLen))
		return nil
	case openflow.TypeSetConfig:
		return s.setConfig(v, msg)
	case openflow.TypePacketOut:
		return s.packetOut(c, msg)
	case openflow.TypeFlowMod:
		return s.flowMod(c, msg)
	case openflow.TypeGroupMod:
		return s.groupMod(c, msg)
	case openflow.TypeMeterMod:
		return s.meterMod(c, msg)
	case openflow.TypePortMod:
		return s.portMod(c, msg)
	case openflow.TypeTableMod:
		return s.tableMod(v, msg)
	case openflow.TypeMultipartRequest:
		return s.multipart(c, h.Xid, msg)
	case openflow.TypeBarrierRequest:
		s.send(c, v.AppendBarrierReply(nil, h.Xid))
		return nil
	case openflow.TypeQueueGetConfigRequest:
		return s.queueConfig(c, h.Xid, msg)
	case openflow.TypeRoleRequest:
		return s.roleRequest(c, h.Xid, msg)
	case openflow.TypeGetAsyncRequest:
		s.send(c, must(v.AppendGetAsyncReply(nil, h.Xid, &c.async)))
		return nil
	case openflow.TypeSetAsync:
		a, err := v.DecodeSetAsync(msg)
		if err == nil {
			c.async = a
		}
		return err
	case openflow.TypeExperimenter:
		return s.experimenter(c, msg)
	}
	return refuse(openflow.ErrBadRequest, openflow.BadRequestBadType)
}

// features answers a features request (§7.3.1).
func (s *Switch) features(c *conn, xid uint32) error {
	f := openflow.Features{
		DPID: s.cfg.DPID, Buffers: uint32(s.cfg.Buffers), Tables: uint8(s.cfg.Tables),
		Capabilities: openflow.CapFlowStats | openflow.CapTableStats | openflow.CapPortStats | openflow.CapGroupStats | openflow.CapQueueStats,
		Actions:      1<<12 - 1, // of OpenFlow 1.0: all
	}
	if c.version == openflow.V10 {
		f.Capabilities |= openflow.CapARPMatchIP
		for _, p := range s.portList() {
			f.Ports = append(f.Ports, c.view(p.PortDesc))
		}
	}
	s.send(c, must(c.version.AppendFeaturesReply(nil, xid, &f)))
	return nil
}

// setConfig handles a set-config (§7.3.2): fragments may be handled normally
// or dropped, or as Open vSwitch can; the switch does not reassemble them.
func (s *Switch) setConfig(v openflow.Version, msg []byte) error {
	flags, missLen, err := v.DecodeConfig(msg)
	if err != nil {
		return err
	}
	if flags != openflow.FragNormal && flags != openflow.FragDrop && (flags != openflow.FragNXMatch || !s.cfg.Nicira) {
		return refuse(openflow.ErrSwitchConfigFailed, openflow.SwitchConfigFailedBadFlags)
	}
	s.flags, s.missLen = flags, missLen
	return nil
}

// tableMod handles a table-mod (§7.3.3), whose two bits of configuration are
// deprecated and mean nothing.
func (s *Switch) tableMod(v openflow.Version, msg []byte) error {
	m, err := v.DecodeTableMod(msg)
	switch {
	case err != nil:
		return err
	case m.Table != flow.TableAll && int(m.Table) >= len(s.tables):
		return refuse(openflow.ErrTableModFailed, openflow.TableModFailedBadTable)
	case m.Config > 3:
		return refuse(openflow.ErrTableModFailed, openflow.TableModFailedBadConfig)
	}
	return nil
}

// queueConfig answers a request for queues: there are none (§7.3.6).
func (s *Switch) queueConfig(c *conn, xid uint32, msg []byte) error {
	p, err := c.version.DecodeQueueGetConfigRequest(msg)
	if err != nil {
		return err
	}
	if s.ports[p] == nil && (p != flow.PortAny || c.version == openflow.V10) {
		return refuse(openflow.ErrQueueOpFailed, openflow.QueueOpFailedBadPort)
	}
	s.send(c, must(c.version.AppendQueueGetConfigReply(nil, xid, p, nil)))
	return nil
}

// flowMod handles a flow-mod (§6.4, §7.3.4.1).
func (s *Switch) flowMod(c *conn, msg []byte) error {
	var m flow.Mod
	if err := c.version.DecodeFlowMod(msg, &m); err != nil {
		return err
	}
	legacy := c.version == openflow.V10
	if legacy {
		// What has no wildcards has the highest priority (OpenFlow 1.0.1 §3.4).
		if binary.BigEndian.Uint32(msg[8:])&(1<<22-1) == 0 {
			m.Entry.Priority = flow.PriorityMax
		}
	} else if hasBitsOutsideMask(msg) {
		return refuse(openflow.ErrBadMatch, openflow.BadMatchBadWildcards)
	}
	if err := s.checkMod(&m, legacy); err != nil {
		return err
	}
	if s.cfg.Refuse != nil {
		if e := s.cfg.Refuse(&m); e != nil {
			return e
		}
	}
	if m.Command == flow.Add && s.cfg.Ignore != nil && s.cfg.Ignore(&m) {
		return nil
	}
	switch m.Command {
	case flow.Add:
		if err := s.add(&m, legacy); err != nil {
			return err
		}
	case flow.Modify, flow.ModifyStrict:
		changed := s.modify(&m, legacy)
		if legacy && !changed { // OpenFlow 1.0.1 §4.6
			if err := s.add(&m, legacy); err != nil {
				return err
			}
		}
	default:
		s.delete(&m)
		return nil
	}
	if m.BufferID == flow.BufferNone {
		return nil
	}
	kept, err := s.buffers.release(m.BufferID)
	if err != nil {
		return err
	}
	s.begin(&kept)
	return nil
}

// hasBitsOutsideMask reports whether a value of the match of a flow-mod has a
// one where its mask has a zero (§7.2.3.5). The message has been decoded: its
// lengths are right.
func hasBitsOutsideMask(msg []byte) bool {
	const match = 48
	end := match + int(binary.BigEndian.Uint16(msg[match+2:]))
	for off := match + 4; off < end; {
		n := int(msg[off+3])
		if msg[off+2]&1 != 0 {
			value, mask := msg[off+4:off+4+n/2], msg[off+4+n/2:off+4+n]
			for i := range value {
				if value[i]&^mask[i] != 0 {
					return true
				}
			}
		}
		off += 4 + n
	}
	return false
}
