package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/secure"
)

// missSendLen asks for whole packets (OFPCML_NO_BUFFER; the largest number in
// OpenFlow 1.0).
const missSendLen = 0xffff

// handshake is how a connection becomes a switch, and what the switch has said of
// itself in it. Only the reading goroutine changes it.
type handshake struct {
	*channel
	role         *roleState
	ports        *portTable
	secrets      *secure.Secrets // nil, as the next: without TLS
	secured      *secure.Secured
	takeIdentity func(dpid) error // gives the session its switch

	feature openflow.Features
	desc    openflow.Desc
	tables  tables
	usable  uint32               // tables from table 0 on without a gap
	gapped  []uint32             // the numbers of all if there are gaps
	setRole func(*flow.PacketIn) // of a receiver: sets the role of a packet's port; nil: no packets
	async   asyncMessages
}

// run turns a connection into a switch: TLS if configured, version,
// identity, role, then which messages the switch sends on its own, its
// description and its ports (OpenFlow 1.3.5 §6.3). Before the identity is known
// to be free it sends nothing but the version, and it asks the switch nothing
// before the switch has confirmed the role.
func (hs *handshake) run() error {
	if err := hs.Conn.SetDeadline(time.Now().Add(hs.shared.Config.Load().HandshakeTimeout)); err != nil {
		return err
	}
	if !hs.secrets.Plain() {
		if err := hs.secrets.Handshake(hs.secured); err != nil {
			hs.counted.Store(true)
			return err
		}
	}
	if err := hs.hello(); err != nil {
		return err
	}
	if err := hs.identify(); err != nil {
		return err
	}
	if hs.shared.Receiver != nil {
		return hs.enroll()
	}
	if hs.Version == openflow.V13 {
		if err := hs.takeRole(); err != nil {
			return err
		}
	}
	return hs.configure()
}

// hello agrees on a version: the highest that both bitmaps have, without
// bitmaps the lower of the two (§6.3.1).
func (hs *handshake) hello() error {
	if err := hs.out.put(openflow.V13.AppendHello(nil, hs.xid.Add(1), openflow.V10, openflow.V13)); err != nil {
		return err
	}
	msg, err := hs.in.next()
	if err != nil {
		return hs.helloError(err)
	}
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		return err
	}
	if h.Type != openflow.TypeHello {
		return &HandshakeError{Remedy: remedyNoSwitch, err: fmt.Errorf("%v came before hello", h.Type)}
	}
	theirs, err := openflow.DecodeHello(msg)
	if err != nil {
		return err
	}
	both := theirs & openflow.VersionsOf(openflow.V10, openflow.V13)
	if h.Version < openflow.V13 {
		both &= openflow.VersionsOf(h.Version) // no bitmap: the lower version, which we may not speak
	}
	if hs.Version = both.Highest(); hs.Version == 0 {
		e := &openflow.Error{
			Type: openflow.ErrHelloFailed, Code: openflow.HelloFailedIncompatible, Xid: h.Xid,
			Data: []byte("this controller speaks OpenFlow 1.0 and 1.3"),
		}
		_ = hs.out.put(openflow.V13.AppendError(nil, h.Xid, e))
		return &HandshakeError{Remedy: remedyVersion, err: fmt.Errorf("no common version: the switch speaks up to %v, this controller OpenFlow 1.0 and 1.3", theirs.Highest())}
	}
	return nil
}

// reply waits for the answer to xid, of what people call what. Meanwhile it answers echoes and keeps the
// messages that a switch may send at any time. It returns an error message that
// answers xid as an error.
func (hs *handshake) reply(xid uint32, want openflow.Type, what string) ([]byte, error) {
	for {
		msg, err := hs.in.next()
		if err != nil {
			return nil, hs.handshakeError(what, err)
		}
		h, err := openflow.ParseHeader(msg)
		if err != nil {
			return nil, err
		}
		switch {
		case hs.handleTables(h, msg):
		case h.Version != hs.Version && h.Type != openflow.TypeError:
			return nil, fmt.Errorf("message of version %d after %v was agreed on", h.Version, hs.Version)
		case h.Type == openflow.TypeEchoRequest:
			echo, err := hs.Version.AppendEchoReply(nil, h.Xid, msg[openflow.HeaderLen:])
			if err == nil {
				err = hs.out.put(echo)
			}
			if err != nil {
				return nil, err
			}
		case h.Type == openflow.TypeError:
			e, err := hs.Version.DecodeError(msg)
			if err != nil {
				return nil, err
			}
			if h.Xid == xid {
				return nil, &e
			}
			if err := hs.keepAsync(h.Type, msg); err != nil {
				return nil, err
			}
		case h.Xid == xid && h.Type == want:
			return msg, nil
		default:
			if err := hs.keepAsync(h.Type, msg); err != nil {
				return nil, err
			}
		}
	}
}

// identify reads the switch's identity. It refuses a switch that its
// certificate does not name, that belongs to another partition, or that is
// already connected.
func (hs *handshake) identify() error {
	xid := hs.xid.Add(1)
	if err := hs.out.put(hs.Version.AppendFeaturesRequest(nil, xid)); err != nil {
		return err
	}
	msg, err := hs.reply(xid, openflow.TypeFeaturesReply, "features reply")
	if err != nil {
		return err
	}
	if hs.feature, err = hs.Version.DecodeFeaturesReply(msg); err != nil {
		return err
	}
	hs.usable = uint32(hs.feature.Tables)
	if hs.feature.AuxiliaryID != 0 {
		return fmt.Errorf("switch %v: auxiliary connection %d refused: all messages go over the main connection", hs.feature.DPID, hs.feature.AuxiliaryID)
	}
	if !hs.secrets.Plain() {
		if err := hs.secrets.Proves(hs.secured, hs.feature.DPID); err != nil {
			hs.counted.Store(true)
			return err
		}
	}
	return hs.takeIdentity(hs.feature.DPID)
}

// configure sets which messages the switch sends on its own, and reads its
// description.
func (hs *handshake) configure() error {
	b := hs.Version.AppendSetConfig(nil, hs.xid.Add(1), 0, missSendLen)
	if hs.Version == openflow.V13 {
		async := openflow.Async{
			PacketIn:    [2]uint32{1<<flow.ReasonNoMatch | 1<<flow.ReasonAction | 1<<flow.ReasonInvalidTTL},
			PortStatus:  [2]uint32{0b111, 0b111},
			FlowRemoved: [2]uint32{0b1111},
		}
		var err error
		if b, err = hs.Version.AppendSetAsync(b, hs.xid.Add(1), &async); err != nil {
			return err
		}
	}
	if err := hs.out.put(b); err != nil {
		return err
	}
	if hs.Version == openflow.V13 {
		if err := hs.askTables(openflow.MultipartTable); err != nil {
			return err
		}
	}
	err := hs.ask(openflow.MultipartDesc, func(body []byte) error {
		d, err := hs.Version.DecodeDesc(body)
		hs.desc = PrintableDesc(d)
		return err
	})
	if err != nil {
		return err
	}
	if hs.desc.Hardware == api.OpenVSwitch {
		// Otherwise entries with ports do not meet first fragments, and what they
		// deny gets to its host in two fragments.
		if err := hs.out.put(hs.Version.AppendSetConfig(nil, hs.xid.Add(1), openflow.FragNXMatch, missSendLen)); err != nil {
			return err
		}
	}
	if hs.tables.refused {
		if err := hs.askTables(openflow.MultipartTableFeatures); err != nil {
			return err
		}
	}
	if err := hs.describePorts(); err != nil {
		return err
	}
	if err := hs.checkTables(); err != nil {
		return err
	}
	return hs.handleAsyncPorts()
}

// describePorts reads the ports of the switch.
func (hs *handshake) describePorts() error {
	ports := hs.feature.Ports
	if hs.Version == openflow.V10 {
		hs.feature.Ports = nil
		return hs.ports.addPorts(ports)
	}
	return hs.ask(openflow.MultipartPortDesc, func(body []byte) (err error) {
		if ports, err = hs.Version.DecodePortDesc(body, ports[:0]); err != nil {
			return err
		}
		return hs.ports.addPorts(ports)
	})
}

// ask is multipart for a session that has no reader loop yet.
func (hs *handshake) ask(t openflow.MultipartType, each func(body []byte) error) error {
	xid := hs.xid.Add(1)
	msg, err := hs.Version.AppendMultipartRequest(nil, xid, &openflow.MultipartRequest{Type: t})
	if err == nil {
		err = hs.out.put(msg)
	}
	for more := true; more && err == nil; {
		if msg, err = hs.reply(xid, openflow.TypeMultipartReply, asked(t)); err != nil {
			break
		}
		var r openflow.MultipartReply
		if r, err = hs.Version.DecodeMultipartReply(msg); err != nil {
			break
		}
		more = r.More
		err = each(r.Body)
	}
	var refused *openflow.Error
	if errors.As(err, &refused) && t == openflow.MultipartDesc {
		return nil // a switch need not give a description
	}
	return err
}

// requestRole asks for a role and waits for the answer, during the handshake.
func (hs *handshake) requestRole(role openflow.Role, generation uint64) (openflow.Role, uint64, error) {
	xid := hs.xid.Add(1)
	msg, err := hs.Version.AppendRoleRequest(nil, xid, role, generation)
	if err == nil {
		err = hs.out.put(msg)
	}
	if err == nil {
		msg, err = hs.reply(xid, openflow.TypeRoleReply, "role reply")
	}
	if err != nil {
		return 0, 0, err
	}
	return hs.Version.DecodeRoleReply(msg)
}

// takeRole becomes master under this run's epoch, or slave while another
// process is master. It uses a switch without roles as it is.
func (hs *handshake) takeRole() error {
	epoch, master := hs.shared.owner.IsOwner(hs.DPID)
	if !master {
		return hs.takeSlave(epoch)
	}
	role, _, err := hs.requestRole(openflow.RoleMaster, epoch)
	var refused *openflow.Error
	switch {
	case err == nil && role == openflow.RoleMaster:
		hs.role.role, hs.role.Mastered = role, true
		return nil
	case err == nil:
		return fmt.Errorf("switch %v answered the request for master with %v", hs.DPID, role)
	case errors.As(err, &refused) && staleRole(refused):
		_, theirs, _ := hs.requestRole(openflow.RoleNoChange, 0)
		if hs.shared.owner.HandleHigherGeneration(theirs) {
			return hs.takeSlave(theirs) // until the epoch is higher
		}
		return hs.role.laterMaster(theirs)
	case errors.As(err, &refused):
		hs.role.role, hs.role.Mastered = openflow.RoleEqual, true
		hs.shared.Log.Info("switch has no roles, used as it is", "dpid", hs.DPID, "error", refused)
		return nil
	}
	return err
}

// takeSlave becomes slave. If the switch knows a higher generation than this
// process, takeSlave asks for it and uses that. It keeps a switch without roles
// as it is.
func (hs *handshake) takeSlave(generation uint64) error {
	role, _, err := hs.requestRole(openflow.RoleSlave, generation)
	var refused *openflow.Error
	if errors.As(err, &refused) && staleRole(refused) {
		if _, generation, err = hs.requestRole(openflow.RoleNoChange, 0); err == nil {
			role, _, err = hs.requestRole(openflow.RoleSlave, generation)
		}
	}
	switch {
	case errors.As(err, &refused) && !staleRole(refused):
		hs.role.role = openflow.RoleEqual
		return nil
	case err != nil:
		return err
	}
	hs.role.role = role
	return nil
}
