package oftest

import (
	"maps"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// conn is the connection of one controller.
type conn struct {
	id      int
	version openflow.Version // 0 before hello
	role    openflow.Role
	async   openflow.Async
	number  uint16 // of flow.Controller, if the switch has that
}

// Connect opens a connection to a controller and sends the hello.
func (s *Switch) Connect() (id int, e Effects) {
	s.conn++
	c := &conn{id: s.conn, role: openflow.RoleEqual, async: openflow.Async{
		PacketIn:    [2]uint32{1<<flow.ReasonNoMatch | 1<<flow.ReasonAction},
		PortStatus:  [2]uint32{0b111, 0b111},
		FlowRemoved: [2]uint32{0b1111},
	}}
	s.conns[c.id] = c
	highest := openflow.VersionsOf(s.cfg.Versions...).Highest()
	if highest == openflow.V13 {
		s.send(c, highest.AppendHello(nil, s.nextXid(), s.cfg.Versions...))
	} else {
		s.send(c, highest.AppendHello(nil, s.nextXid()))
	}
	return c.id, s.take()
}

// Disconnect closes a connection.
func (s *Switch) Disconnect(id int) { delete(s.conns, id) }

// Role returns the role of a connection's controller.
func (s *Switch) Role(id int) openflow.Role {
	if c := s.conns[id]; c != nil {
		return c.role
	}
	return openflow.RoleNoChange
}

// Roles returns the roles of all controllers that are connected.
func (s *Switch) Roles() (list []openflow.Role) {
	for _, c := range s.connList() {
		list = append(list, c.role)
	}
	return list
}

// connList returns the connections in the order in which they were opened.
func (s *Switch) connList() []*conn {
	list := make([]*conn, 0, len(s.conns))
	for _, id := range slices.Sorted(maps.Keys(s.conns)) {
		list = append(list, s.conns[id])
	}
	return list
}

// listeners returns the connections that want a kind of asynchronous message
// for a reason (§6.3.6, §7.3.10).
func (s *Switch) listeners(kind func(*openflow.Async) *[2]uint32, reason uint8) (list []*conn) {
	for _, c := range s.connList() {
		as := 0
		if c.role == openflow.RoleSlave {
			as = 1
		}
		if c.version != 0 && kind(&c.async)[as]&(1<<reason) != 0 {
			list = append(list, c)
		}
	}
	return list
}

// hello agrees on a version (§6.3.1).
func (s *Switch) hello(c *conn, msg []byte) {
	h, err := openflow.ParseHeader(msg)
	var theirs openflow.Versions
	if err == nil && h.Type == openflow.TypeHello {
		theirs, err = openflow.DecodeHello(msg)
	}
	ours := openflow.VersionsOf(s.cfg.Versions...)
	if h.Version < openflow.V13 {
		theirs &= openflow.VersionsOf(h.Version) // without a bitmap it is the lower of both
	}
	c.version = (ours & theirs).Highest()
	if err == nil && h.Type == openflow.TypeHello && c.version != 0 {
		return
	}
	e := &openflow.Error{Type: openflow.ErrHelloFailed, Code: openflow.HelloFailedIncompatible, Data: []byte("no version in common")}
	s.send(c, ours.Highest().AppendError(nil, h.Xid, e))
	s.drop(c)
}

// drop closes a connection.
func (s *Switch) drop(c *conn) {
	s.effects.Closed = append(s.effects.Closed, c.id)
	delete(s.conns, c.id)
}

// experimenter handles a message of an experimenter's: of Open vSwitch's the one
// that numbers the connection, if the switch is to know it.
func (s *Switch) experimenter(c *conn, msg []byte) error {
	id, ok, err := c.version.DecodeSetControllerID(msg)
	switch {
	case err != nil:
		return err
	case !s.cfg.Nicira || !ok:
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadExperimenter)
	}
	c.number = id
	return nil
}

// roleRequest handles a role request (§6.3.6, §7.3.9).
func (s *Switch) roleRequest(c *conn, xid uint32, msg []byte) error {
	role, generation, err := c.version.DecodeRoleRequest(msg)
	if err != nil {
		return err
	}
	switch role {
	case openflow.RoleNoChange, openflow.RoleEqual:
	case openflow.RoleMaster, openflow.RoleSlave:
		if s.generated && int64(generation-s.generation) < 0 {
			return refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
		}
		s.generation, s.generated = generation, true
	default:
		return refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedBadRole)
	}
	if role == openflow.RoleMaster {
		for _, other := range s.conns {
			if other != c && other.role == openflow.RoleMaster {
				other.role = openflow.RoleSlave
			}
		}
	}
	if role != openflow.RoleNoChange {
		c.role = role
	}
	reply := ^uint64(0)
	if s.generated {
		reply = s.generation
	}
	s.send(c, must(c.version.AppendRoleReply(nil, xid, c.role, reply)))
	return nil
}
