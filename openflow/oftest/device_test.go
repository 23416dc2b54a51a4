package oftest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// peer is the controller's end of a connection.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// serve has a device dial a controller and returns the controller's end, after
// hello.
func serve(t *testing.T, d *Device) (p *peer, ended chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- d.Dial(ctx, "tcp", l.Addr().String()) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		conn.Close()
	})
	p = &peer{t, conn, bufio.NewReader(conn)}
	p.send(v13.AppendHello(nil, 1, v13), nil)
	if h := p.want(openflow.TypeHello); h[0] != byte(v13) {
		t.Errorf("hello of version %d", h[0])
	}
	return p, ended
}

func (p *peer) send(msg []byte, err error) {
	p.t.Helper()
	if err == nil {
		_, err = p.conn.Write(msg)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// read reads a message; nil if none comes in time.
func (p *peer) read(within time.Duration) []byte {
	p.t.Helper()
	if err := p.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		p.t.Fatal(err)
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(p.in, head); err != nil {
		return nil
	}
	msg := append(head, make([]byte, max(8, int(binary.BigEndian.Uint16(head[2:])))-8)...)
	if _, err := io.ReadFull(p.in, msg[8:]); err != nil {
		return nil
	}
	return msg
}

func (p *peer) want(typ openflow.Type) []byte {
	p.t.Helper()
	msg := p.read(testwait.Limit)
	if h, err := openflow.ParseHeader(msg); err != nil || h.Type != typ {
		p.t.Fatalf("got %x, want %v", msg, typ)
	}
	return msg
}

func TestDeviceServes(t *testing.T) {
	frames := make(chan Frame, 9)
	d := NewDevice(Config{DPID: 5}, func(f Frame) { frames <- f })
	p, ended := serve(t, d)
	p.send(v13.AppendFeaturesRequest(nil, 2), nil)
	if f, err := v13.DecodeFeaturesReply(p.want(openflow.TypeFeaturesReply)); err != nil || f.DPID != 5 {
		t.Errorf("%+v, %v", f, err)
	}
	p.send(add(flow.Entry{Match: flow.Match{}.WithInPort(1), Apply: out(2)}))
	p.send(add(flow.Entry{Apply: out(flow.PortController), HardTimeout: 1, Flags: flow.FlagSendRem}))
	p.send(v13.AppendBarrierRequest(nil, 3), nil)
	p.want(openflow.TypeBarrierReply)
	if n := len(d.Flows()); n != 2 || d.Connections() != 1 {
		t.Fatalf("%d entries, %d connections", n, d.Connections())
	}
	d.Receive(1, udp(1, 2))
	if f := <-frames; f.Port != 2 {
		t.Errorf("left by %v", f.Port)
	}
	d.Receive(2, udp(2, 1))
	p.want(openflow.TypePacketIn)
	d.SetLink(3, false)
	p.want(openflow.TypePortStatus)
	p.want(openflow.TypeFlowRemoved) // time passes by itself
	d.Say([]byte("nonsense"))
	if b, _ := p.in.Peek(8); string(b) != "nonsense" {
		t.Errorf("%q", b)
	}
	d.Disconnect()
	select {
	case <-ended:
	case <-time.After(testwait.Limit):
		t.Fatal("the connection does not end")
	}
	if d.Connections() != 0 {
		t.Errorf("%d connections left", d.Connections())
	}
}

func TestDeviceEndsWithContext(t *testing.T) {
	d := NewDevice(Config{}, nil)
	a, b := net.Pipe()
	defer b.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Serve(ctx, a); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDeviceRefusesHello(t *testing.T) {
	d := NewDevice(Config{}, nil)
	a, b := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(context.Background(), a) }()
	p := &peer{t, b, bufio.NewReader(b)}
	p.want(openflow.TypeHello)
	p.send([]byte{5, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 32}, nil) // OpenFlow 1.4 alone
	if e, err := v13.DecodeError(p.want(openflow.TypeError)); err != nil || e.Type != openflow.ErrHelloFailed {
		t.Errorf("%+v, %v", e, err)
	}
	<-ended
}

func TestFaults(t *testing.T) {
	d := NewDevice(Config{}, nil)
	p, _ := serve(t, d)
	echo := func() { p.send(v13.AppendEchoRequest(nil, 1, nil)) }
	echo()
	p.want(openflow.TypeEchoReply)

	d.SetFaults(Faults{Silent: true})
	echo()
	d.SetLink(1, false)
	if msg := p.read(50 * time.Millisecond); msg != nil {
		t.Errorf("silent, it says %x", msg)
	}
	d.SetFaults(Faults{BarrierDelay: 60 * time.Millisecond})
	start := time.Now()
	p.send(v13.AppendBarrierRequest(nil, 1), nil)
	echo()
	p.want(openflow.TypeBarrierReply)
	if took := time.Since(start); took < 60*time.Millisecond {
		t.Errorf("barrier after %v", took)
	}
	p.want(openflow.TypeEchoReply)

	d.SetFaults(Faults{StopReading: true})
	echo()
	if msg := p.read(50 * time.Millisecond); msg != nil {
		t.Errorf("not reading, it says %x", msg)
	}
	d.SetFaults(Faults{})
	p.want(openflow.TypeEchoReply)
}
