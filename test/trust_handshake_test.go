package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// handshakePlan has all that a switch deals with in one process.
const handshakePlan = "name: handshake\nworkers: {all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}}\n"

// player is a connection to the controller on which the test plays a switch, of
// OpenFlow 1.3.
type player struct {
	net.Conn
	in *bufio.Reader
}

// play connects and says hello.
func (d *deployment) play(t *testing.T) *player {
	t.Helper()
	conn, err := net.Dial("tcp", d.openflow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &player{conn, bufio.NewReader(conn)}
	p.send(openflow.V13.AppendHello(nil, 1), nil)
	return p
}

// send sends messages; that the controller has hung up is no error.
func (p *player) send(b []byte, err error) {
	if err != nil {
		panic(err) // the test sends what cannot be encoded
	}
	_, _ = p.Write(b)
}

// next returns the next message, or why there is none.
func (p *player) next() (openflow.Header, []byte, error) {
	_ = p.SetReadDeadline(time.Now().Add(testwait.Limit))
	head, err := p.in.Peek(openflow.HeaderLen)
	if err != nil {
		return openflow.Header{}, nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint16(head[2:]))
	if _, err := io.ReadFull(p.in, msg); err != nil {
		return openflow.Header{}, nil, err
	}
	h, err := openflow.ParseHeader(msg)
	return h, msg, err
}

// closed waits until the controller has closed the connection.
func (p *player) closed(t *testing.T) {
	t.Helper()
	for {
		if _, _, err := p.next(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection is open after 30 s")
		} else if err != nil {
			return
		}
	}
}

// answer answers what a switch with two ports is asked during its handshake.
func (p *player) answer(sw flow.DPID, h openflow.Header, msg []byte) (last bool) {
	v := openflow.V13
	switch h.Type {
	case openflow.TypeEchoRequest:
		p.send(v.AppendEchoReply(nil, h.Xid, nil))
	case openflow.TypeFeaturesRequest:
		p.send(v.AppendFeaturesReply(nil, h.Xid, &openflow.Features{DPID: sw, Tables: 254}))
	case openflow.TypeRoleRequest:
		role, generation, _ := v.DecodeRoleRequest(msg)
		p.send(v.AppendRoleReply(nil, h.Xid, role, generation))
	case openflow.TypeBarrierRequest:
		p.send(v.AppendBarrierReply(nil, h.Xid), nil)
	case openflow.TypeMultipartRequest:
		var body []byte
		switch kind := kindOf(msg); kind {
		case openflow.MultipartDesc:
			p.send(v.AppendMultipartReply(nil, h.Xid, kind, false, v.AppendDesc(nil, &openflow.Desc{Manufacturer: "test"})))
		case openflow.MultipartPortDesc:
			for n := range flow.Port(2) {
				body, _ = v.AppendPortDesc(body, &openflow.PortDesc{No: n + 1, HWAddr: flow.MAC{2, 0, 0, 0, 0, byte(n + 1)}})
			}
			p.send(v.AppendMultipartReply(nil, h.Xid, kind, false, body))
			return true
		}
	}
	return false
}

// kindOf returns what a multipart request asks for.
func kindOf(msg []byte) openflow.MultipartType {
	return openflow.MultipartType(binary.BigEndian.Uint16(msg[openflow.HeaderLen:]))
}

// upTo answers until something is asked, which it leaves unanswered.
func (p *player) upTo(t *testing.T, sw flow.DPID, what openflow.Type, kind openflow.MultipartType) uint32 {
	t.Helper()
	for {
		h, msg, err := p.next()
		if err != nil {
			t.Fatalf("switch %v is not asked for %v: %v", sw, what, err)
		}
		if h.Type == what && (what != openflow.TypeMultipartRequest || kindOf(msg) == kind) {
			return h.Xid
		}
		p.answer(sw, h, msg)
	}
}

// device connects a switch that behaves, and waits until it is up.
func (d *deployment) device(t *testing.T, sw flow.DPID) *oftest.Device {
	t.Helper()
	dev := oftest.NewDevice(oftest.Config{DPID: sw, Ports: 2}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			_ = dev.Dial(ctx, "tcp", d.openflow)
			_ = backoff.Sleep(ctx, 100*time.Millisecond)
		}
	}()
	eventually(t, fmt.Sprintf("switch %v up", sw), func() bool { s := d.info(sw); return s != nil && s.Connected })
	return dev
}

// info returns what the controller says of a switch, nil if it does not know it.
func (d *deployment) info(sw flow.DPID) *api.Switch {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m, _ := api.NewSouthboundClient(d.conn).ListSwitches(ctx, &api.ListSwitchesRequest{}) // nothing is known of any then
	for _, s := range m.GetSwitches() {
		if s.Dpid == sw.String() {
			return s
		}
	}
	return nil
}

// counted sums up the figures whose name and labels contain all of some texts.
func (d *deployment) counted(texts ...string) (sum float64) {
	figures, _ := d.figures() // none then
	for key, v := range figures {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(key, text)
		}
		if all {
			sum += v
		}
	}
	return sum
}

// resident returns the memory of the controller's largest process, in octets.
func (d *deployment) resident() (most int) {
	for _, pid := range d.pids() {
		most = max(most, residentOf(pid))
	}
	for _, p := range d.started {
		most = max(most, residentOf(p.PID()))
	}
	return most
}

func residentOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // nothing of one that has ended
	for line := range strings.Lines(string(b)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kb), " kB"))
			return n << 10
		}
	}
	return 0
}

// trustHandshake has connections describe 300,000 ports, tell events without end,
// answer without end, ask for echoes that they do not read, and begin long
// messages: all of them together take no more memory than is set, a switch that is
// up goes on, and another one comes.
func trustHandshake(t *testing.T, f *faults) {
	const mib = 1 << 20
	d := f.deploy(t, handshakePlan, "--set", fmt.Sprintf("southbound.session_bytes=%d", 160*mib), "--set", fmt.Sprintf("southbound.total_bytes=%d", 160*mib))
	first := d.device(t, 1)
	before := d.resident()
	for _, a := range []struct {
		bound string
		run   func(*testing.T, *player)
	}{{"ports", describeWithoutEnd}, {"events", tellWithoutEnd}, {"answer", answerWithoutEnd}, {"", echoWithoutEnd}} {
		p := d.play(t)
		a.run(t, p) // until the connection is closed
		p.Close()
		eventually(t, "an excess of "+a.bound+" counted", func() bool {
			return a.bound == "" || d.counted("southbound_excesses_total", `bound="`+a.bound+`"`) > 0
		})
	}
	long := append(openflow.V13.AppendHello(nil, 1), make([]byte, 60_000)...)
	long[2], long[3] = 0xff, 0xff
	for range 500 {
		d.play(t).send(long, nil)
	}
	d.device(t, 2)
	eventually(t, "connections disconnected to make room", func() bool {
		return d.counted("southbound_excesses_total", `bound="all"`) > 0
	})
	if n := d.counted("southbound_held_bytes", `of="handshakes"`); n > 20*mib {
		t.Errorf("%v octets are held for handshakes", n)
	}
	if now := d.resident(); now > before+200*mib {
		t.Errorf("%d MiB are resident, before the attack %d", now/mib, before/mib)
	} else {
		t.Logf("%d MiB are resident, before the attack %d", now/mib, before/mib)
	}
	if first.Connections() != 1 || !d.info(1).GetConnected() {
		t.Error("a switch that was up is disconnected")
	}
}

// describeWithoutEnd describes 300,000 ports and more.
func describeWithoutEnd(t *testing.T, p *player) {
	xid := p.upTo(t, 100, openflow.TypeMultipartRequest, openflow.MultipartPortDesc)
	var ports []byte
	for range 1000 {
		ports, _ = openflow.V13.AppendPortDesc(ports, &openflow.PortDesc{Name: "port"})
	}
	for no := uint32(1); ; {
		for at := 0; at < len(ports); at, no = at+64, no+1 {
			binary.BigEndian.PutUint32(ports[at:], no)
		}
		if !p.part(t, xid, openflow.MultipartPortDesc, ports) {
			return
		}
	}
}

// part sends a part of an answer that goes on; false is that the connection is
// closed.
func (p *player) part(t *testing.T, xid uint32, kind openflow.MultipartType, body []byte) bool {
	b, err := openflow.V13.AppendMultipartReply(nil, xid, kind, true, body)
	if err != nil {
		t.Error(err)
	}
	_ = p.SetWriteDeadline(time.Now().Add(testwait.Limit))
	_, err = p.Write(b)
	return err == nil
}

// tellWithoutEnd sends events instead of a description.
func tellWithoutEnd(t *testing.T, p *player) {
	p.upTo(t, 101, openflow.TypeMultipartRequest, openflow.MultipartDesc)
	var events []byte
	for range 1000 {
		events, _ = openflow.V13.AppendFlowRemoved(events, 0, &openflow.FlowRemoved{})
	}
	for {
		if _, err := p.Write(events); err != nil {
			return
		}
	}
}

// answerWithoutEnd is a switch that is up and tells entries without end.
func answerWithoutEnd(t *testing.T, p *player) {
	xid := p.upTo(t, 102, openflow.TypeMultipartRequest, openflow.MultipartFlow)
	entry := make([]byte, 56) // OpenFlow 1.3.5 §7.3.5.2: its length, and at 48 a match of all
	entry[1], entry[49], entry[51] = 56, 1, 4
	many := bytes.Repeat(entry, 1000)
	for p.part(t, xid, openflow.MultipartFlow, many) {
	}
}

// echoWithoutEnd asks for echoes and reads none.
func echoWithoutEnd(t *testing.T, p *player) {
	p.upTo(t, 103, openflow.TypeMultipartRequest, openflow.MultipartDesc)
	var echoes []byte
	for range 16 {
		echoes, _ = openflow.V13.AppendEchoRequest(echoes, 7, make([]byte, 60_000))
	}
	for {
		if _, err := p.Write(echoes); err != nil {
			return
		}
	}
}

// trustSquat has connections stall at every step of their handshake with the
// identity of a switch, which comes then: it is up at once.
func trustSquat(t *testing.T, f *faults) {
	d := f.deploy(t, handshakePlan, "--set", "southbound.handshake_timeout=5m")
	var squatters []*player
	for range 5 {
		for _, at := range []struct {
			what openflow.Type
			kind openflow.MultipartType
		}{{openflow.TypeRoleRequest, 0}, {openflow.TypeMultipartRequest, openflow.MultipartDesc}, {openflow.TypeMultipartRequest, openflow.MultipartPortDesc}} {
			p := d.play(t)
			p.upTo(t, 1, at.what, at.kind)
			squatters = append(squatters, p)
		}
	}
	first := d.device(t, 1)
	for _, p := range squatters {
		p.closed(t)
	}
	if s := d.info(1); !s.GetConnected() || s.Duplicates != uint64(len(squatters)) || first.Connections() != 1 {
		t.Errorf("%v, %d connections", s, first.Connections())
	}
}

// trustSaidEarly has a switch say what becomes of its ports while it is at its
// handshake, and never answer which entries it has: its ports are right, and it is
// served, with its entries said to be unknown.
func trustSaidEarly(t *testing.T, f *faults) {
	d := f.deploy(t, handshakePlan, "--set", "southbound.confirm_timeout=1s")
	v := openflow.V13
	p := d.play(t)
	var mu sync.Mutex // guards mods
	mods := 0
	xid := p.upTo(t, 1, openflow.TypeMultipartRequest, openflow.MultipartDesc)
	down := openflow.PortDesc{No: 1, HWAddr: flow.MAC{2, 0, 0, 0, 0, 1}, State: openflow.PortStateLinkDown}
	p.send(v.AppendPortStatus(nil, 0, openflow.PortModified, &down))
	p.send(v.AppendMultipartReply(nil, xid, openflow.MultipartDesc, false, v.AppendDesc(nil, &openflow.Desc{})))
	go func() {
		for {
			h, msg, err := p.next()
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			if err != nil {
				continue
			}
			if h.Type == openflow.TypeFlowMod {
				mu.Lock()
				mods++
				mu.Unlock()
			}
			p.answer(1, h, msg) // of statistics nothing
		}
	}()
	eventually(t, "port 1 down and port 2 up", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		m, _ := api.NewSouthboundClient(d.conn).ListPorts(ctx, &api.ListPortsRequest{}) // none then
		up := map[uint32]bool{}
		for _, port := range m.GetPorts() {
			up[port.Port] = port.Up
		}
		return len(up) == 2 && !up[1] && up[2]
	})
	eventually(t, "the switch served", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		m, _ := api.NewFlowrulesClient(d.conn).ListSync(ctx, &api.ListSyncRequest{}) // none then
		mu.Lock()
		defer mu.Unlock()
		return len(m.GetSwitches()) == 1 && m.Switches[0].Unread != "" && m.Switches[0].State == "unknown" && m.Switches[0].Confirmed > 0 && mods > 0
	})
	for _, args := range [][]string{{"get", "sync"}, {"get", "health"}} {
		out, err := exec.CommandContext(t.Context(), d.weft, append(args, "--server", "http://"+d.north)...).Output() // health fails, for one reason or another
		if !strings.Contains(string(out), "has not answered") {
			t.Errorf("weft %s says nothing of it: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
