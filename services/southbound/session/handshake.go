package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// missSendLen asks for whole packets (OFPCML_NO_BUFFER; the largest number in
// OpenFlow 1.0).
const missSendLen = 0xffff

// handshake turns a connection into a switch: TLS if configured, version,
// identity, role, then which messages the switch sends on its own, its
// description and its ports (OpenFlow 1.3.5 §6.3). Before the identity is known
// to be free it sends nothing but the version, and it asks the switch nothing
// before the switch has confirmed the role.
func (s *Session) handshake() error {
	if err := s.Conn.SetDeadline(time.Now().Add(s.shared.Config.Load().HandshakeTimeout)); err != nil {
		return err
	}
	if !s.secrets.Plain() {
		if err := s.secrets.Handshake(s.secured); err != nil {
			s.counted.Store(true)
			return err
		}
	}
	if err := s.hello(); err != nil {
		return err
	}
	if err := s.identify(); err != nil {
		return err
	}
	if s.shared.Receiver != nil {
		if err := s.enroll(); err != nil {
			return err
		}
	} else {
		if s.Version == openflow.V13 {
			if err := s.takeRole(); err != nil {
				return err
			}
		}
		if err := s.configure(); err != nil {
			return err
		}
	}
	if err := s.shared.owner.Claim(s); err != nil {
		return err
	}
	return s.Conn.SetDeadline(time.Time{})
}

// hello agrees on a version: the highest that both bitmaps have, without
// bitmaps the lower of the two (§6.3.1).
func (s *Session) hello() error {
	if err := s.out.put(openflow.V13.AppendHello(nil, s.xid.Add(1), openflow.V10, openflow.V13)); err != nil {
		return err
	}
	msg, err := s.in.next()
	if err != nil {
		return s.helloError(err)
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
	if s.Version = both.Highest(); s.Version == 0 {
		e := &openflow.Error{
			Type: openflow.ErrHelloFailed, Code: openflow.HelloFailedIncompatible, Xid: h.Xid,
			Data: []byte("this controller speaks OpenFlow 1.0 and 1.3"),
		}
		_ = s.out.put(openflow.V13.AppendError(nil, h.Xid, e))
		return &HandshakeError{Remedy: remedyVersion, err: fmt.Errorf("no common version: the switch speaks up to %v, this controller OpenFlow 1.0 and 1.3", theirs.Highest())}
	}
	return nil
}

// reply waits for the answer to xid, of what people call what. Meanwhile it answers echoes and keeps the
// messages that a switch may send at any time. It returns an error message that
// answers xid as an error.
func (s *Session) reply(xid uint32, want openflow.Type, what string) ([]byte, error) {
	for {
		msg, err := s.in.next()
		if err != nil {
			return nil, s.handshakeError(what, err)
		}
		h, err := openflow.ParseHeader(msg)
		if err != nil {
			return nil, err
		}
		switch {
		case s.handleTables(h, msg):
		case h.Version != s.Version && h.Type != openflow.TypeError:
			return nil, fmt.Errorf("message of version %d after %v was agreed on", h.Version, s.Version)
		case h.Type == openflow.TypeEchoRequest:
			echo, err := s.Version.AppendEchoReply(nil, h.Xid, msg[openflow.HeaderLen:])
			if err == nil {
				err = s.out.put(echo)
			}
			if err != nil {
				return nil, err
			}
		case h.Type == openflow.TypeError:
			e, err := s.Version.DecodeError(msg)
			if err != nil {
				return nil, err
			}
			if h.Xid == xid {
				return nil, &e
			}
			if err := s.keepAsync(h.Type, msg); err != nil {
				return nil, err
			}
		case h.Xid == xid && h.Type == want:
			return msg, nil
		default:
			if err := s.keepAsync(h.Type, msg); err != nil {
				return nil, err
			}
		}
	}
}

// identify reads the switch's identity. It refuses a switch that its
// certificate does not name, that belongs to another partition, or that is
// already connected.
func (s *Session) identify() error {
	xid := s.xid.Add(1)
	if err := s.out.put(s.Version.AppendFeaturesRequest(nil, xid)); err != nil {
		return err
	}
	msg, err := s.reply(xid, openflow.TypeFeaturesReply, "features reply")
	if err != nil {
		return err
	}
	if s.feature, err = s.Version.DecodeFeaturesReply(msg); err != nil {
		return err
	}
	s.usable = uint32(s.feature.Tables)
	if s.feature.AuxiliaryID != 0 {
		return fmt.Errorf("switch %v: auxiliary connection %d refused: all messages go over the main connection", s.feature.DPID, s.feature.AuxiliaryID)
	}
	if !s.secrets.Plain() {
		if err := s.secrets.Proves(s.secured, s.feature.DPID); err != nil {
			s.counted.Store(true)
			return err
		}
	}
	return s.shared.owner.Identify(s, s.feature.DPID)
}

// configure sets which messages the switch sends on its own, and reads its
// description.
func (s *Session) configure() error {
	b := s.Version.AppendSetConfig(nil, s.xid.Add(1), 0, missSendLen)
	if s.Version == openflow.V13 {
		async := openflow.Async{
			PacketIn:    [2]uint32{1<<flow.ReasonNoMatch | 1<<flow.ReasonAction | 1<<flow.ReasonInvalidTTL},
			PortStatus:  [2]uint32{0b111, 0b111},
			FlowRemoved: [2]uint32{0b1111},
		}
		var err error
		if b, err = s.Version.AppendSetAsync(b, s.xid.Add(1), &async); err != nil {
			return err
		}
	}
	if err := s.out.put(b); err != nil {
		return err
	}
	if s.Version == openflow.V13 {
		if err := s.askTables(openflow.MultipartTable); err != nil {
			return err
		}
	}
	err := s.ask(openflow.MultipartDesc, func(body []byte) error {
		d, err := s.Version.DecodeDesc(body)
		s.desc = PrintableDesc(d)
		return err
	})
	if err != nil {
		return err
	}
	if s.desc.Hardware == api.OpenVSwitch {
		// Otherwise entries with ports do not meet first fragments, and what they
		// deny gets to its host in two fragments.
		if err := s.out.put(s.Version.AppendSetConfig(nil, s.xid.Add(1), openflow.FragNXMatch, missSendLen)); err != nil {
			return err
		}
	}
	if s.tables.refused {
		if err := s.askTables(openflow.MultipartTableFeatures); err != nil {
			return err
		}
	}
	if err := s.describePorts(); err != nil {
		return err
	}
	if err := s.checkTables(); err != nil {
		return err
	}
	return s.handleAsyncPorts()
}

// describePorts reads the ports of the switch.
func (s *Session) describePorts() error {
	ports := s.feature.Ports
	if s.Version == openflow.V10 {
		s.feature.Ports = nil
		return s.ports.addPorts(ports)
	}
	return s.ask(openflow.MultipartPortDesc, func(body []byte) (err error) {
		if ports, err = s.Version.DecodePortDesc(body, ports[:0]); err != nil {
			return err
		}
		return s.ports.addPorts(ports)
	})
}

// ask is multipart for a session that has no reader loop yet.
func (s *Session) ask(t openflow.MultipartType, each func(body []byte) error) error {
	xid := s.xid.Add(1)
	msg, err := s.Version.AppendMultipartRequest(nil, xid, &openflow.MultipartRequest{Type: t})
	if err == nil {
		err = s.out.put(msg)
	}
	for more := true; more && err == nil; {
		if msg, err = s.reply(xid, openflow.TypeMultipartReply, asked(t)); err != nil {
			break
		}
		var r openflow.MultipartReply
		if r, err = s.Version.DecodeMultipartReply(msg); err != nil {
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
