package southbound

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

const v13 = openflow.V13

// world is the service with switches of the test's.
type world struct {
	t       *testing.T
	h       *wefttest.Harness
	network string
	address string
}

// newWorld configures the service to listen on a socket of the test's own and
// starts it.
func newWorld(t *testing.T, h *wefttest.Harness, config string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") // a socket's path has 107 octets at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t, h, "unix", filepath.Join(dir, "s")}
	h.Configure("listen: [\"unix:" + w.address + "\"]\n" + endless(config))
	h.Start()
	return w
}

// endless adds to a configuration the limits of time that it does not set, each longer
// than a test waits for anything: what a test waits for is not the end of one of them.
func endless(config string) string {
	for _, key := range []string{"handshake_timeout", "dead_after", "confirm_timeout"} {
		if !strings.Contains(config, key) {
			config += "\n" + key + ": 1h"
		}
	}
	return config
}

// inAllModes runs a test body in all modes, with the service up.
func inAllModes(t *testing.T, config string, body func(*testing.T, *world)) {
	t.Helper()
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) { body(t, newWorld(t, h, config)) })
}

// device connects a fake switch that forwards and waits until it is up.
func (w *world) device(cfg oftest.Config) *oftest.Device {
	w.t.Helper()
	d := oftest.NewDevice(cfg, nil)
	w.dial(d)
	w.up(cfg.DPID)
	return d
}

// dial has a fake switch connect; the channel tells when the connection ends.
func (w *world) dial(d *oftest.Device) <-chan error {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Dial(ctx, w.network, w.address) }()
	w.t.Cleanup(cancel)
	return ended
}

// up waits until a switch has connected.
func (w *world) up(sw flow.DPID) *api.SwitchChanged {
	w.t.Helper()
	return wefttest.Await(w.h, api.SwitchChangedEvent, func(e *api.SwitchChanged) bool {
		return e.Switch.Dpid == sw.String() && e.Switch.Connected
	})
}

// down waits until a switch has gone and returns why.
func (w *world) down(sw flow.DPID) string {
	w.t.Helper()
	return wefttest.Await(w.h, api.SwitchChangedEvent, func(e *api.SwitchChanged) bool {
		return e.Switch.Dpid == sw.String() && !e.Switch.Connected
	}).Switch.Reason
}

// apply applies a decision, which must not fail as a call.
func (w *world) apply(d *flow.Decision) *api.ApplyResult {
	w.t.Helper()
	r, err := wefttest.Call(w.h, api.Apply, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// works checks that a switch is programmed.
func (w *world) works(sw flow.DPID) {
	w.t.Helper()
	d := &flow.Decision{}
	addFlow(d, sw, 77)
	if r := w.apply(d); len(r.Failures) > 0 {
		w.t.Fatalf("switch %v, which has done nothing wrong, is not programmed: %v", sw, r.Failures)
	}
}

func addFlow(d *flow.Decision, sw flow.DPID, priority uint16) {
	m := d.AddFlow(sw)
	m.Entry.Priority = priority
	m.Entry.Apply = d.Actions(flow.Output(1))
}

// info returns what ListSwitches says of a switch; nil if it does not know it.
func (w *world) info(sw flow.DPID) *api.Switch {
	w.t.Helper()
	r, err := wefttest.Call(w.h, api.ListSwitches, &api.ListSwitchesRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range r.Switches {
		if s.Dpid == sw.String() {
			return s
		}
	}
	return nil
}

// eventually waits until something is so.
func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(testwait.Limit); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it is not so within %v that %s", testwait.Limit, what)
		}
	}
}

// wire is a connection to the service on which the test plays the switch.
type wire struct {
	tables []uint8 // that it says it has; none: it says nothing of them that makes sense

	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	v    openflow.Version
}

// wire connects.
func (w *world) wire() *wire {
	w.t.Helper()
	conn, err := net.Dial(w.network, w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	return &wire{t: w.t, conn: conn, in: bufio.NewReaderSize(conn, 1<<17), v: v13}
}

// send sends octets as they are; that the service has closed is no error.
func (c *wire) send(b []byte, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	_, _ = c.conn.Write(b)
}

// read returns the next message; an error if there is none in time.
func (c *wire) read(within time.Duration) ([]byte, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	head, err := c.in.Peek(openflow.HeaderLen)
	if err != nil {
		return nil, err
	}
	msg := make([]byte, max(openflow.HeaderLen, int(binary.BigEndian.Uint16(head[2:]))))
	_, err = io.ReadFull(c.in, msg)
	return msg, err
}

// want returns the next message, which must be of a type.
func (c *wire) want(typ openflow.Type) []byte {
	c.t.Helper()
	msg, err := c.read(testwait.Limit)
	if err != nil {
		c.t.Fatalf("no %v: %v", typ, err)
	}
	if h, _ := openflow.ParseHeader(msg); h.Type != typ {
		c.t.Fatalf("%v instead of %v", h.Type, typ)
	}
	return msg
}

// quiet checks that nothing comes for a while.
func (c *wire) quiet() {
	c.t.Helper()
	msg, err := c.read(30 * time.Millisecond)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		h, _ := openflow.ParseHeader(msg)
		c.t.Fatalf("%v comes, %v, where nothing should", h.Type, err)
	}
}

// closed checks that the service closes the connection; what it sends until then
// is passed over.
func (c *wire) closed() {
	c.t.Helper()
	for end := time.Now().Add(testwait.Limit); ; {
		if _, err := c.read(time.Until(end)); errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Fatalf("the connection is open after %v", testwait.Limit)
		} else if err != nil {
			return
		}
	}
}

func xidOf(msg []byte) uint32 { return binary.BigEndian.Uint32(msg[4:]) }

// join plays a well-behaved switch until it is up.
func (c *wire) join(sw flow.DPID) {
	c.t.Helper()
	c.send(c.v.AppendHello(nil, 1), nil)
	for {
		msg, err := c.read(testwait.Limit)
		if err != nil {
			c.t.Fatalf("the handshake ends with %v", err)
		}
		if c.answer(sw, msg) {
			return
		}
	}
}

// answer answers a message of the handshake; true is that it was the last.
func (c *wire) answer(sw flow.DPID, msg []byte) bool {
	c.t.Helper()
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		c.t.Fatal(err)
	}
	ports := []openflow.PortDesc{portDesc(1, true), portDesc(2, true)}
	switch h.Type {
	case openflow.TypeFeaturesRequest:
		c.send(c.v.AppendFeaturesReply(nil, h.Xid, &openflow.Features{DPID: sw, Tables: 254, Ports: ports}))
	case openflow.TypeRoleRequest:
		role, generation, _ := c.v.DecodeRoleRequest(msg)
		c.send(c.v.AppendRoleReply(nil, h.Xid, role, generation))
	case openflow.TypeMultipartRequest:
		var r openflow.MultipartRequest
		if err := c.v.DecodeMultipartRequest(msg, &r); err != nil {
			c.t.Fatal(err)
		}
		var body []byte
		switch {
		case r.Type == openflow.MultipartTable && len(c.tables) > 0:
			for _, id := range c.tables {
				body = c.v.AppendTableStats(body, &openflow.TableStats{Table: id})
			}
		case r.Type == openflow.MultipartDesc:
			body = c.v.AppendDesc(nil, &openflow.Desc{Manufacturer: "test"})
		default:
			for i := range ports {
				body, _ = c.v.AppendPortDesc(body, &ports[i])
			}
		}
		c.send(c.v.AppendMultipartReply(nil, h.Xid, r.Type, false, body))
		return r.Type == openflow.MultipartPortDesc || c.v == openflow.V10
	}
	return false
}

// refused plays a switch that the service closes the connection of.
func (c *wire) refused(sw flow.DPID) {
	c.t.Helper()
	c.send(c.v.AppendHello(nil, 1), nil)
	for {
		msg, err := c.read(testwait.Limit)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Fatalf("switch %v is not refused", sw)
		} else if err != nil {
			return
		}
		if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypeMultipartRequest {
			c.t.Fatalf("switch %v is received", sw)
		}
		c.answer(sw, msg)
	}
}

func portDesc(no flow.Port, up bool) openflow.PortDesc {
	p := openflow.PortDesc{No: no, HWAddr: flow.MAC{2, 0, 0, 0, 0, byte(no)}, Name: fmt.Sprintf("p%d", no)}
	if !up {
		p.State = openflow.PortStateLinkDown
	}
	return p
}

// joined connects a switch that the test plays and waits until it is up.
func (w *world) joined(sw flow.DPID) *wire {
	w.t.Helper()
	c := w.wire()
	c.join(sw)
	w.up(sw)
	return c
}
