package southbound

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/openflow"
)

// judge is a switch that implements roles and generation ids, and logs every
// message that would program it, with the epoch of who sent it.
type judge struct {
	t    *testing.T
	dpid flow.DPID

	mu         sync.Mutex // guards what follows
	conns      map[*judged]bool
	generation uint64
	generated  bool
	writes     []judgedWrite
	highest    uint64 // epoch of a write that was taken
	outs       int    // packet-outs that have come, taken or not
}

// judged is a connection of a controller.
type judged struct {
	conn  net.Conn
	from  string
	role  openflow.Role
	epoch uint64 // of its last role request that was granted
}

type judgedWrite struct {
	from  string
	epoch uint64
	taken bool
}

// connect keeps a connection to a controller until ctx ends.
func (j *judge) connect(ctx context.Context, address string) {
	for ctx.Err() == nil {
		conn, err := net.Dial("unix", address)
		if err == nil {
			c := &judged{conn: conn, from: address, role: openflow.RoleEqual}
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			j.mu.Lock()
			j.conns[c] = true
			j.mu.Unlock()
			j.serve(c)
			stop()
			conn.Close()
			j.mu.Lock()
			delete(j.conns, c)
			j.mu.Unlock()
		}
		_ = backoff.Sleep(ctx, 10*time.Millisecond)
	}
}

func (j *judge) serve(c *judged) {
	send := func(b []byte, err error) {
		if err != nil {
			j.t.Error(err)
		}
		_, _ = c.conn.Write(b)
	}
	send(v13.AppendHello(nil, 1, v13), nil)
	in := bufio.NewReader(c.conn)
	for {
		head, err := in.Peek(openflow.HeaderLen)
		if err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(in, msg); err != nil {
			return
		}
		h, err := openflow.ParseHeader(msg)
		if err != nil {
			j.t.Errorf("switch %v is sent nonsense: %v", j.dpid, err)
			return
		}
		refuse := func(typ, code uint16) {
			e := &openflow.Error{Type: typ, Code: code, Xid: h.Xid, Data: msg[:min(len(msg), 64)]}
			send(v13.AppendError(nil, h.Xid, e), nil)
		}
		switch h.Type {
		case openflow.TypeEchoRequest:
			send(v13.AppendEchoReply(nil, h.Xid, nil))
		case openflow.TypeFeaturesRequest:
			send(v13.AppendFeaturesReply(nil, h.Xid, &openflow.Features{DPID: j.dpid, Tables: 254}))
		case openflow.TypeBarrierRequest:
			send(v13.AppendBarrierReply(nil, h.Xid), nil)
		case openflow.TypeRoleRequest:
			if reply, ok := j.ask(c, msg); ok {
				send(reply, nil)
			} else {
				refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
			}
		case openflow.TypeMultipartRequest:
			var r openflow.MultipartRequest
			if err := v13.DecodeMultipartRequest(msg, &r); err != nil {
				j.t.Error(err)
			}
			var body []byte
			if r.Type == openflow.MultipartDesc {
				body = v13.AppendDesc(nil, &openflow.Desc{})
			}
			send(v13.AppendMultipartReply(nil, h.Xid, r.Type, false, body))
		case openflow.TypeHello, openflow.TypeSetConfig, openflow.TypeSetAsync, openflow.TypeEchoReply:
		default:
			if h.Type == openflow.TypePacketOut {
				j.mu.Lock()
				j.outs++
				j.mu.Unlock()
			}
			if !j.program(c) {
				refuse(openflow.ErrBadRequest, openflow.BadRequestIsSlave)
			}
		}
	}
}

// ask deals with a role request (OpenFlow 1.3.5 §6.3.6).
func (j *judge) ask(c *judged, msg []byte) (reply []byte, ok bool) {
	role, generation, err := v13.DecodeRoleRequest(msg)
	if err != nil {
		j.t.Error(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if role == openflow.RoleMaster || role == openflow.RoleSlave {
		if j.generated && int64(generation-j.generation) < 0 {
			return nil, false
		}
		j.generation, j.generated = generation, true
		c.epoch = generation
	}
	if role == openflow.RoleMaster {
		for other := range j.conns {
			if other != c && other.role == openflow.RoleMaster {
				other.role = openflow.RoleSlave
			}
		}
	}
	if role != openflow.RoleNoChange {
		c.role = role
	}
	reply, err = v13.AppendRoleReply(nil, binary.BigEndian.Uint32(msg[4:]), c.role, j.generation)
	return reply, err == nil
}

// program logs a message that programs the switch; it reports whether the switch
// takes it. Nothing may be taken from an epoch below one that it has taken
// something from.
func (j *judge) program(c *judged) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	taken := c.role != openflow.RoleSlave
	j.writes = append(j.writes, judgedWrite{c.from, c.epoch, taken})
	switch {
	case !taken:
	case c.role != openflow.RoleMaster:
		j.t.Errorf("switch %v is programmed by %s, which is %v there", j.dpid, c.from, c.role)
	case c.epoch < j.highest:
		j.t.Errorf("switch %v takes a write of epoch %d after one of %d", j.dpid, c.epoch, j.highest)
	default:
		j.highest = c.epoch
	}
	return taken
}

// send sends its master, if it has one, some packet-ins.
func (j *judge) send(n int) {
	frame := make([]byte, 60)
	frame[0], frame[6] = 2, 2
	var b []byte
	for range n {
		var err error
		if b, err = v13.AppendPacketIn(b, 0, &flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 60, Key: flow.Key{InPort: 1}, Data: frame}); err != nil {
			j.t.Error(err)
		}
	}
	j.mu.Lock()
	var to net.Conn
	for c := range j.conns {
		if c.role == openflow.RoleMaster {
			to = c.conn
		}
	}
	j.mu.Unlock()
	if to != nil {
		_, _ = to.Write(b) // what is cut off there was not read
	}
}

// masters is how many connections are master, and from where one of them is.
func (j *judge) masters() (n int, from string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for c := range j.conns {
		if c.role == openflow.RoleMaster {
			n++
			from = c.from
		}
	}
	return n, from
}

func (j *judge) highestWrite() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.highest
}
