package testbed

import (
	"context"
	"net"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// echoController is a controller that sends every packet back to where the
// packet itself says, the first one twice and the last one never.
func echoController(t *testing.T, count int) (address string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := version.AppendHello(nil, 1, version)
		b = version.AppendFeaturesRequest(b, 2)
		b, _ = version.AppendMultipartRequest(b, 3, &openflow.MultipartRequest{Type: openflow.MultipartPortDesc})
		conn.Write(b)
		var buf []byte
		chunk := make([]byte, 4096)
		for seen := 0; ; {
			n, err := conn.Read(chunk)
			if err != nil {
				return
			}
			buf = append(buf, chunk[:n]...)
			for {
				msg, rest, err := openflow.Next(buf)
				if err != nil || msg == nil {
					break
				}
				buf = rest
				var in flow.PacketIn
				if h, _ := openflow.ParseHeader(msg); h.Type != openflow.TypePacketIn || version.DecodePacketIn(msg, &in) != nil {
					continue
				}
				seen++
				if seen == count {
					continue
				}
				port := flow.Port(in.Data[len(in.Data)-1])
				out, _ := version.AppendPacketOut(nil, 4, &flow.PacketOut{BufferID: flow.BufferNone, InPort: in.Key.InPort, Actions: []flow.Action{flow.Output(port)}, Data: in.Data})
				if seen == 1 {
					out = append(out, out...)
				}
				conn.Write(out)
			}
		}
	}()
	return ln.Addr().String()
}

func TestSource(t *testing.T) {
	const count = 50
	ctx := context.Background()
	s, err := Connect(ctx, SourceConfig{Address: echoController(t, count), DPID: 7, Hosts: 12, Ports: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if want := 12 * 9; s.Flows() != want {
		t.Errorf("%d flows, want %d", s.Flows(), want)
	}
	if err := s.Send(ctx, count, 1e5); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx, 0); err != nil {
		t.Fatal(err)
	}
	answered := func() (n, right, twice int) {
		list, twice := s.Messages()
		for _, m := range list {
			if !m.Answered.IsZero() {
				n++
			}
			if m.ToHost {
				right++
			}
		}
		return n, right, twice
	}
	n, right, twice := answered()
	for n < count-1 { // as long as the test's own deadline allows
		n, right, twice = answered()
	}
	if n != count-1 || right != count-1 || twice != 1 {
		t.Errorf("%d answered, %d of them to the right port, %d twice; want %d, %d, 1", n, right, twice, count-1, count-1)
	}
	if err := s.Send(ctx, s.Flows()+1, 1e5); err == nil {
		t.Error("more packet-ins than flows are sent")
	}
	seen := map[[2]uint16]bool{}
	for _, p := range s.pairs {
		if seen[p] || p[0]%4 == p[1]%4 {
			t.Errorf("pair %v comes twice, or is of one port", p)
		}
		seen[p] = true
	}
}
