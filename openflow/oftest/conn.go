package oftest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// controllers are the connections of a switch's controllers, and what the switch sends.
type controllers struct {
	cfg   Config
	conns map[int]*conn
	conn  int // number of the connection opened last
	xid   uint32

	// The greatest generation id that a master or slave has given (§6.3.6).
	generation uint64
	generated  bool

	effects Effects
}

// conn is the connection of one controller.
type conn struct {
	id      int
	version openflow.Version // 0 before hello
	role    openflow.Role
	async   openflow.Async
	number  uint16 // of flow.Controller, if the switch has that
}

// Connect opens a connection to a controller and sends the hello.
func (cs *controllers) Connect() (id int, e Effects) {
	cs.conn++
	c := &conn{id: cs.conn, role: openflow.RoleEqual, async: openflow.Async{
		PacketIn:    [2]uint32{1<<flow.ReasonNoMatch | 1<<flow.ReasonAction},
		PortStatus:  [2]uint32{0b111, 0b111},
		FlowRemoved: [2]uint32{0b1111},
	}}
	cs.conns[c.id] = c
	highest := openflow.VersionsOf(cs.cfg.Versions...).Highest()
	if highest == openflow.V13 {
		cs.send(c, highest.AppendHello(nil, cs.nextXid(), cs.cfg.Versions...))
	} else {
		cs.send(c, highest.AppendHello(nil, cs.nextXid()))
	}
	return c.id, cs.take()
}

// Disconnect closes a connection.
func (cs *controllers) Disconnect(id int) { delete(cs.conns, id) }

// Role returns the role of a connection's controller.
func (cs *controllers) Role(id int) openflow.Role {
	if c := cs.conns[id]; c != nil {
		return c.role
	}
	return openflow.RoleNoChange
}

// Roles returns the roles of all controllers that are connected.
func (cs *controllers) Roles() (list []openflow.Role) {
	for _, c := range cs.connList() {
		list = append(list, c.role)
	}
	return list
}

// connList returns the connections in the order in which they were opened.
func (cs *controllers) connList() []*conn {
	list := make([]*conn, 0, len(cs.conns))
	for _, id := range slices.Sorted(maps.Keys(cs.conns)) {
		list = append(list, cs.conns[id])
	}
	return list
}

// listeners returns the connections that want a kind of asynchronous message
// for a reason (§6.3.6, §7.3.10).
func (cs *controllers) listeners(kind func(*openflow.Async) *[2]uint32, reason uint8) (list []*conn) {
	for _, c := range cs.connList() {
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
func (cs *controllers) hello(c *conn, msg []byte) {
	h, err := openflow.ParseHeader(msg)
	var theirs openflow.Versions
	if err == nil && h.Type == openflow.TypeHello {
		theirs, err = openflow.DecodeHello(msg)
	}
	ours := openflow.VersionsOf(cs.cfg.Versions...)
	if h.Version < openflow.V13 {
		theirs &= openflow.VersionsOf(h.Version) // without a bitmap it is the lower of both
	}
	c.version = (ours & theirs).Highest()
	if err == nil && h.Type == openflow.TypeHello && c.version != 0 {
		return
	}
	e := &openflow.Error{Type: openflow.ErrHelloFailed, Code: openflow.HelloFailedIncompatible, Data: []byte("no version in common")}
	cs.send(c, ours.Highest().AppendError(nil, h.Xid, e))
	cs.drop(c)
}

// drop closes a connection.
func (cs *controllers) drop(c *conn) {
	cs.effects.Closed = append(cs.effects.Closed, c.id)
	delete(cs.conns, c.id)
}

// experimenter handles a message of an experimenter's: of Open vSwitch's the one
// that numbers the connection, if the switch is to know it.
func (cs *controllers) experimenter(c *conn, msg []byte) error {
	id, ok, err := c.version.DecodeSetControllerID(msg)
	switch {
	case err != nil:
		return err
	case !cs.cfg.Nicira || !ok:
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadExperimenter)
	}
	c.number = id
	return nil
}

// roleRequest handles a role request (§6.3.6, §7.3.9).
func (cs *controllers) roleRequest(c *conn, xid uint32, msg []byte) error {
	role, generation, err := c.version.DecodeRoleRequest(msg)
	if err != nil {
		return err
	}
	switch role {
	case openflow.RoleNoChange, openflow.RoleEqual:
	case openflow.RoleMaster, openflow.RoleSlave:
		if cs.generated && int64(generation-cs.generation) < 0 {
			return refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
		}
		cs.generation, cs.generated = generation, true
	default:
		return refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedBadRole)
	}
	if role == openflow.RoleMaster {
		for _, other := range cs.conns {
			if other != c && other.role == openflow.RoleMaster {
				other.role = openflow.RoleSlave
			}
		}
	}
	if role != openflow.RoleNoChange {
		c.role = role
	}
	reply := ^uint64(0)
	if cs.generated {
		reply = cs.generation
	}
	cs.send(c, must(c.version.AppendRoleReply(nil, xid, c.role, reply)))
	return nil
}

// must is for messages that every version has a form for.
func must(msg []byte, err error) []byte {
	if err != nil {
		panic("oftest: " + err.Error())
	}
	return msg
}

// refuse is the error of a switch.
func refuse(typ, code uint16) error { return &openflow.Error{Type: typ, Code: code} }

// refusedData is how much of a refused message goes along with the error: the
// least that §7.4.4 promises, so that nobody relies on more.
const refusedData = 64

// send queues a message to a controller.
func (cs *controllers) send(c *conn, msg []byte) {
	cs.effects.Messages = append(cs.effects.Messages, Message{c.id, msg})
}

// nextXid numbers the messages that the switch sends of its own accord.
func (cs *controllers) nextXid() uint32 {
	cs.xid++
	return cs.xid
}

// take returns the effects so far and forgets them.
func (cs *controllers) take() Effects {
	e := cs.effects
	cs.effects = Effects{}
	return e
}

// changed reports that a message has changed what the switch has; was or is is nil if it
// had, or has, nothing.
func (cs *controllers) changed(what string, was, is any) {
	if cs.cfg.Changed != nil && !reflect.DeepEqual(was, is) {
		cs.cfg.Changed(fmt.Sprintf("%s %+v, was %+v", what, is, was))
	}
}

// refused sends an error message.
func (cs *controllers) refused(c *conn, xid uint32, msg []byte, err error) {
	var e *openflow.Error
	if !errors.As(err, &e) {
		answer := openflow.Answer(err, msg)
		e = &answer
	}
	out := *e
	out.Data = msg[:min(len(msg), refusedData)]
	cs.send(c, c.version.AppendError(nil, xid, &out))
}
