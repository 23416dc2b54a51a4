package sim

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// defaultAsync is what a switch sends before the controller has said what it
// wants (OpenFlow 1.3.5 §6.3.4).
var defaultAsync = openflow.Async{
	PacketIn:    [2]uint32{1<<flow.ReasonNoMatch | 1<<flow.ReasonAction, 0},
	PortStatus:  [2]uint32{1<<openflow.PortAdded | 1<<openflow.PortDeleted | 1<<openflow.PortModified, 1<<openflow.PortAdded | 1<<openflow.PortDeleted | 1<<openflow.PortModified},
	FlowRemoved: [2]uint32{0xf, 0},
}

func durationOf(ns int64) time.Duration { return time.Duration(ns) }

// refuse answers a message with an error.
func (nd *node) refuse(e openflow.Error) {
	nd.net.stats.ErrorsSent++
	e.Data = e.Data[:min(len(e.Data), 64)]
	nd.queue(nd.version.AppendError(nd.pending, e.Xid, &e), nil)
}

// refuseWith is refuse of a whole message for a type and code.
func (nd *node) refuseWith(msg []byte, kind, code uint16) {
	e := openflow.Error{Type: kind, Code: code, Data: msg}
	if h, err := openflow.ParseHeader(msg); err == nil {
		e.Xid = h.Xid
	}
	nd.refuse(e)
}

// handle handles one message. An error ends the connection.
func (nd *node) handle(msg []byte) error {
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		return err
	}
	if nd.phase == phaseHello {
		return nd.agree(h, msg)
	}
	if h.Type == openflow.TypeHello {
		return nil // a second one changes nothing
	}
	if h.Version != nd.version {
		nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBadVersion)
		return nil
	}
	if err := nd.obey(h, msg); err != nil {
		nd.refuse(openflow.Answer(err, msg))
	}
	return nil
}

// agree takes the controller's hello (OpenFlow 1.3.5 §6.3.1).
func (nd *node) agree(h openflow.Header, msg []byte) error {
	if h.Type != openflow.TypeHello {
		return fmt.Errorf("%v before hello", h.Type)
	}
	offered, err := openflow.DecodeHello(msg)
	if err != nil {
		return err
	}
	if !offered.Has(nd.version) && h.Version < nd.version || offered != 0 && !offered.Has(nd.version) && h.Version != nd.version {
		text := fmt.Sprintf("this switch speaks %v only", nd.version)
		e := openflow.Error{Type: openflow.ErrHelloFailed, Code: openflow.HelloFailedIncompatible, Data: []byte(text), Xid: h.Xid}
		nd.refuse(e)
		return fmt.Errorf("controller offers %v: this switch speaks %v only", h.Version, nd.version)
	}
	nd.phase = phaseOpen
	return nil
}

// isRead reports whether a slave may send a message of this type
// (OpenFlow 1.3.5 §6.3.5).
func isRead(t openflow.Type) bool {
	switch t {
	case openflow.TypePacketOut, openflow.TypeFlowMod, openflow.TypeGroupMod, openflow.TypePortMod, openflow.TypeTableMod, openflow.TypeMeterMod:
		return false
	}
	return true
}

// obey does what a message of the agreed version asks for. An error is sent
// back as openflow.Answer has it.
func (nd *node) obey(h openflow.Header, msg []byte) error {
	v := nd.version
	if nd.role == openflow.RoleSlave && !isRead(h.Type) {
		nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestIsSlave)
		return nil
	}
	switch h.Type {
	case openflow.TypeEchoRequest:
		nd.queue(v.AppendEchoReply(nd.pending, h.Xid, msg[openflow.HeaderLen:]))
		if nd.net.beats != nil {
			nd.net.beats.asked(nd.net.arrived)
		}
	case openflow.TypeEchoReply:
		if nd.net.beats != nil {
			nd.net.beats.answered(nd, msg[openflow.HeaderLen:], nd.net.arrived)
		}
	case openflow.TypeError:
	case openflow.TypeFeaturesRequest:
		nd.queue(v.AppendFeaturesReply(nd.pending, h.Xid, nd.features()))
		if nd.phase != phaseUp {
			nd.phase = phaseUp
			nd.losses = 0
			nd.net.stats.Up++
			if nd.net.load != nil {
				nd.net.load.join(nd)
			}
		}
	case openflow.TypeGetConfigRequest:
		nd.queue(v.AppendGetConfigReply(nd.pending, h.Xid, nd.flags, nd.missLen), nil)
	case openflow.TypeSetConfig:
		flags, missLen, err := v.DecodeConfig(msg)
		if err != nil {
			return err
		}
		nd.flags, nd.missLen = flags, missLen
	case openflow.TypeBarrierRequest:
		nd.queue(v.AppendBarrierReply(nd.pending, h.Xid), nil)
	case openflow.TypeRoleRequest:
		return nd.takeRole(h, msg)
	case openflow.TypeSetAsync:
		a, err := v.DecodeSetAsync(msg)
		if err != nil {
			return err
		}
		nd.async = a
	case openflow.TypeGetAsyncRequest:
		nd.queue(v.AppendGetAsyncReply(nd.pending, h.Xid, &nd.async))
	case openflow.TypeFlowMod:
		nd.net.stats.FlowMods++
		m := &nd.net.mod
		if err := v.DecodeFlowMod(msg, m); err != nil {
			return err
		}
		nd.flowMod(m, msg)
	case openflow.TypeGroupMod:
		m := &nd.net.groups
		if err := v.DecodeGroupMod(msg, m); err != nil {
			return err
		}
		if code, ok := nd.table.groupMod(m); !ok {
			nd.refuseWith(msg, openflow.ErrGroupModFailed, code)
		}
	case openflow.TypePacketOut:
		nd.net.stats.PacketOuts++
		o := &nd.net.out
		if err := v.DecodePacketOut(msg, o); err != nil {
			return err
		}
		nd.packetOut(o, msg)
	case openflow.TypePortMod:
		m, err := v.DecodePortMod(msg)
		if err != nil {
			return err
		}
		return nd.portMod(m, msg)
	case openflow.TypeMultipartRequest:
		return nd.multipart(h, msg)
	case openflow.TypeQueueGetConfigRequest:
		p, err := v.DecodeQueueGetConfigRequest(msg)
		if err != nil {
			return err
		}
		nd.queue(v.AppendQueueGetConfigReply(nd.pending, h.Xid, p, nil))
	case openflow.TypeExperimenter:
		nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBadExperimenter)
	default:
		nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBadType)
	}
	return nil
}

// Tables that a switch of OpenFlow 1.3 has; one of 1.0 has one.
const tables = 4

// features describes the switch.
func (nd *node) features() *openflow.Features {
	f := &openflow.Features{
		DPID: nd.dpid, Buffers: MaxWindow, Tables: tables,
		Capabilities: openflow.CapFlowStats | openflow.CapTableStats | openflow.CapPortStats,
	}
	if nd.version == openflow.V10 {
		f.Tables, f.Actions = 1, 1<<0 // output
		for i := range nd.ports {
			f.Ports = append(f.Ports, nd.ports[i].desc)
		}
		return f
	}
	f.Capabilities |= openflow.CapGroupStats
	return f
}

// takeRole changes the controller's role (OpenFlow 1.3.5 §6.3.5).
func (nd *node) takeRole(h openflow.Header, msg []byte) error {
	r, generation, err := nd.version.DecodeRoleRequest(msg)
	if err != nil {
		return err
	}
	switch r {
	case openflow.RoleNoChange:
	case openflow.RoleEqual:
		nd.role = r
	case openflow.RoleMaster, openflow.RoleSlave:
		if nd.generations && int64(generation-nd.generation) < 0 {
			nd.refuseWith(msg, openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
			return nil
		}
		nd.role, nd.generation, nd.generations = r, generation, true
	default:
		nd.refuseWith(msg, openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedBadRole)
		return nil
	}
	generation = nd.generation
	if !nd.generations {
		generation = ^uint64(0)
	}
	nd.queue(nd.version.AppendRoleReply(nd.pending, h.Xid, nd.role, generation))
	return nil
}

// wants reports whether the controller wants an asynchronous message of this
// reason; masks is the part of nd.async for its type.
func (nd *node) wants(masks [2]uint32, reason uint8) bool {
	as := 0
	if nd.role == openflow.RoleSlave {
		as = 1
	}
	return nd.phase == phaseUp && masks[as]>>reason&1 != 0
}

// portMod changes a port's configuration.
func (nd *node) portMod(m openflow.PortMod, msg []byte) error {
	p := nd.port(m.Port)
	switch {
	case p == nil:
		nd.refuseWith(msg, openflow.ErrPortModFailed, openflow.PortModFailedBadPort)
	case m.HWAddr != p.desc.HWAddr:
		nd.refuseWith(msg, openflow.ErrPortModFailed, openflow.PortModFailedBadHWAddr)
	default:
		p.desc.Config = p.desc.Config&^m.Mask | m.Config&m.Mask
		nd.announce(p)
	}
	return nil
}
