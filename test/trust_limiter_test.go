package test

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// generator is a switch as cbench plays it: OpenFlow 1.0, an ARP announcement as
// soon as it has told its features, no answer to questions for statistics but that
// for its description.
type generator struct {
	conn     net.Conn
	dpid     flow.DPID
	answered atomic.Int64 // flow-mods that add, and packet-outs
	writing  sync.Mutex
}

func (g *generator) write(b []byte) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	_, err := g.conn.Write(b)
	return err
}

// packetIn appends a packet-in of a frame.
func (g *generator) packetIn(b []byte, port flow.Port, frame []byte) []byte {
	in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Data: frame, Key: flow.Key{InPort: port}}
	b, _ = openflow.V10.AppendPacketIn(b, 0, &in)
	return b
}

// run speaks until the connection ends.
func (g *generator) run(ready func()) {
	v := openflow.V10
	if g.write(v.AppendHello(nil, 1)) != nil {
		return
	}
	head := make([]byte, openflow.HeaderLen)
	for {
		if _, err := io.ReadFull(g.conn, head); err != nil {
			return
		}
		h, err := openflow.ParseHeader(head)
		if err != nil {
			return
		}
		msg := append(append([]byte{}, head...), make([]byte, int(h.Length)-openflow.HeaderLen)...)
		if _, err := io.ReadFull(g.conn, msg[openflow.HeaderLen:]); err != nil {
			return
		}
		var reply []byte
		switch h.Type {
		case openflow.TypeFeaturesRequest:
			f := openflow.Features{DPID: g.dpid, Buffers: 256, Tables: 1}
			for n := range flow.Port(4) {
				f.Ports = append(f.Ports, openflow.PortDesc{No: n + 1, HWAddr: flow.MACFrom(uint64(g.dpid)<<8 | uint64(n)), Name: "veth"})
			}
			reply, _ = v.AppendFeaturesReply(nil, h.Xid, &f)
			mac := flow.MACFrom(0x02_02_00_000000 | uint64(g.dpid))
			reply = g.packetIn(reply, 2, packet.Pad(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: mac, SenderIP: netip.AddrFrom4([4]byte{10, 2, 0, byte(g.dpid)}), TargetIP: netip.AddrFrom4([4]byte{10, 2, 0, byte(g.dpid)})})))
			ready()
		case openflow.TypeEchoRequest:
			reply, _ = v.AppendEchoReply(nil, h.Xid, nil)
		case openflow.TypeBarrierRequest:
			reply = v.AppendBarrierReply(nil, h.Xid)
		case openflow.TypeMultipartRequest: // OpenFlow 1.0 §5.3.5: the type of statistics
			if len(msg) >= openflow.HeaderLen+2 && openflow.MultipartType(binary.BigEndian.Uint16(msg[openflow.HeaderLen:])) == openflow.MultipartDesc {
				reply, _ = v.AppendMultipartReply(nil, h.Xid, openflow.MultipartDesc, false, v.AppendDesc(nil, &openflow.Desc{Manufacturer: "generator"}))
			}
		case openflow.TypeFlowMod, openflow.TypePacketOut:
			g.answered.Add(1)
		}
		if len(reply) > 0 && g.write(reply) != nil {
			return
		}
	}
}

// flows sends new flows to the hosts that have announced themselves, all from
// port 1, as fast as the controller takes them, until a connection ends. The
// switches take turns, so that none sends more than another on a busy machine.
func flows(list []*generator) {
	for n := 0; ; n = (n + 100) % 1000 {
		for _, g := range list {
			to := flow.MACFrom(0x02_02_00_000000 | uint64(g.dpid))
			var b []byte
			for i := range 100 {
				from := flow.MACFrom(0x02_01_00_000000 | uint64(n+i)<<8 | uint64(g.dpid))
				b = g.packetIn(b, 1, packet.Pad(packet.AppendEthernet(nil, packet.Ether{Dst: to, Src: from}, flow.EthTypeIPv4)))
			}
			if g.write(b) != nil {
				return
			}
		}
	}
}

// trustLimiter: the only port of a switch that sends, as fast as the controller
// takes it, is not limited, whatever other switches do.
func trustLimiter(t *testing.T, f *faults) {
	d := f.deploy(t, "name: limiter\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n")
	var running sync.WaitGroup
	var ready atomic.Int64
	var list []*generator
	for i := range 4 {
		conn, err := net.Dial("tcp", d.openflow)
		if err != nil {
			t.Fatal(err)
		}
		g := &generator{conn: conn, dpid: flow.DPID(i + 1)}
		list = append(list, g)
		running.Go(func() { g.run(func() { ready.Add(1) }) })
	}
	defer running.Wait()
	defer func() {
		for _, g := range list {
			g.conn.Close()
		}
	}()
	eventually(t, "all switches known", func() bool { return ready.Load() == int64(len(list)) })
	running.Go(func() { flows(list) })
	for _, g := range list {
		eventually(t, "1,000 answers for a switch with one port", func() bool { return g.answered.Load() >= 1000 })
	}
	const packetIns = 200_000
	eventually(t, "200,000 packet-ins", func() bool { return d.sum("weft_southbound_packet_ins_total") >= packetIns })
	if shed := d.sum("weft_southbound_shed_total"); shed > 0 {
		t.Errorf("%v of %v packet-ins shed, want none: nobody waits", shed, packetIns)
	}
}

// sum adds up what all processes say of a counter.
func (d *deployment) sum(name string) (sum float64) {
	for k, v := range d.allFigures() {
		if k == name || strings.HasPrefix(k, name+"{") {
			sum += v
		}
	}
	return sum
}
