package oftest

import (
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
