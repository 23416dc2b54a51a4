package testbed

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// agent is the OpenFlow 1.3 end of a simulated switch without tables: it says
// who it is, agrees to everything, has no flow entries when asked, and hands
// packet-outs on.
type agent struct {
	dpid  flow.DPID
	ports int
	conn  net.Conn

	mu     sync.Mutex  // guards writing, and what follows
	cookie flow.Cookie // of the table-miss entry, which packet-ins name
	up     bool        // the controller knows the ports
}

const version = openflow.V13

func (a *agent) write(b []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.conn.Write(b)
	return err
}

func (a *agent) hello() error { return a.write(version.AppendHello(nil, 1, version)) }

// packetIn appends a packet-in of a frame that no entry matches.
func (a *agent) packetIn(b []byte, port flow.Port, frame []byte) ([]byte, error) {
	a.mu.Lock()
	cookie := a.cookie
	a.mu.Unlock()
	return version.AppendPacketIn(b, 0, &flow.PacketIn{
		BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Reason: flow.ReasonNoMatch,
		Cookie: cookie, Key: flow.Key{InPort: port}, Data: frame,
	})
}

// serve reads messages until the connection ends; nil if the controller ended
// it. It calls up once, when the controller has asked for the ports, and out
// with every packet-out.
func (a *agent) serve(up func(), out func(*flow.PacketOut)) error {
	buf := make([]byte, 0, 256<<10)
	var packet flow.PacketOut
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := a.conn.Read(buf[len(buf):cap(buf)])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("simulated switch: %w", err)
		}
		buf = buf[:len(buf)+n]
		rest := buf
		for {
			msg, after, err := openflow.Next(rest)
			if err != nil {
				return fmt.Errorf("simulated switch: %w", err)
			}
			if msg == nil {
				break
			}
			rest = after
			h, err := openflow.ParseHeader(msg)
			if err != nil {
				return fmt.Errorf("simulated switch: %w", err)
			}
			if h.Type == openflow.TypePacketOut {
				if err := version.DecodePacketOut(msg, &packet); err != nil {
					return fmt.Errorf("simulated switch: %w", err)
				}
				out(&packet)
				continue
			}
			if err := a.obey(h, msg, up); err != nil {
				return fmt.Errorf("simulated switch: %v: %w", h.Type, err)
			}
		}
		buf = buf[:copy(buf, rest)]
	}
}

// obey answers one message.
func (a *agent) obey(h openflow.Header, msg []byte, up func()) error {
	var b []byte
	var err error
	switch h.Type {
	case openflow.TypeEchoRequest:
		b, err = version.AppendEchoReply(nil, h.Xid, msg[openflow.HeaderLen:])
	case openflow.TypeFeaturesRequest:
		b, err = version.AppendFeaturesReply(nil, h.Xid, &openflow.Features{
			DPID: a.dpid, Tables: 1, Capabilities: openflow.CapFlowStats | openflow.CapTableStats | openflow.CapPortStats,
		})
	case openflow.TypeGetConfigRequest:
		b = version.AppendGetConfigReply(nil, h.Xid, 0, 0xffff)
	case openflow.TypeBarrierRequest:
		b = version.AppendBarrierReply(nil, h.Xid)
	case openflow.TypeRoleRequest:
		var role openflow.Role
		var generation uint64
		if role, generation, err = version.DecodeRoleRequest(msg); err == nil {
			b, err = version.AppendRoleReply(nil, h.Xid, role, generation)
		}
	case openflow.TypeFlowMod:
		var m flow.Mod
		if err = version.DecodeFlowMod(msg, &m); err == nil && m.Entry.Priority == 0 && m.Entry.Table == 0 {
			a.mu.Lock()
			a.cookie = m.Entry.Cookie
			a.mu.Unlock()
		}
	case openflow.TypeMultipartRequest:
		return a.multipart(h, msg, up)
	}
	if err != nil || b == nil {
		return err
	}
	return a.write(b)
}

// multipart answers a request for statistics or descriptions: ports there are,
// and one description; of everything else there is none.
func (a *agent) multipart(h openflow.Header, msg []byte, up func()) error {
	var r openflow.MultipartRequest
	if err := version.DecodeMultipartRequest(msg, &r); err != nil {
		return err
	}
	var body []byte
	var err error
	switch r.Type {
	case openflow.MultipartDesc:
		body = version.AppendDesc(nil, &openflow.Desc{Manufacturer: "Weft", Hardware: "simulated", Software: "source of packet-ins"})
	case openflow.MultipartPortDesc:
		for p := range a.ports {
			body, err = version.AppendPortDesc(body, &openflow.PortDesc{
				No: flow.Port(p + 1), HWAddr: flow.MAC{0x02, 0x5d, byte(a.dpid >> 8), byte(a.dpid), 0, byte(p + 1)},
				Name: fmt.Sprintf("p%d", p+1), State: openflow.PortStateLive,
			})
			if err != nil {
				return err
			}
		}
	case openflow.MultipartAggregate:
		body = version.AppendAggregate(nil, &openflow.Aggregate{})
	case openflow.MultipartGroupFeatures:
		body = version.AppendGroupFeatures(nil, &openflow.GroupFeatures{})
	case openflow.MultipartMeterFeatures:
		body = version.AppendMeterFeatures(nil, &openflow.MeterFeatures{})
	}
	b, err := version.AppendMultipartReply(nil, h.Xid, r.Type, false, body)
	if err != nil {
		return err
	}
	if err := a.write(b); err != nil {
		return err
	}
	if r.Type == openflow.MultipartPortDesc && !a.up {
		a.up = true
		up()
	}
	return nil
}
