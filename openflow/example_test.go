package openflow_test

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// A controller cuts messages off its receive buffer, decodes each into memory
// that it uses again, and appends its answers to one send buffer.
func Example() {
	in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 4, Data: []byte("data")}
	in.Key.InPort = 7
	received, _ := openflow.V13.AppendPacketIn(nil, 1, &in)

	var packet flow.PacketIn
	var send []byte
	for {
		msg, rest, err := openflow.Next(received)
		if err != nil || msg == nil {
			break
		}
		received = rest
		h, _ := openflow.ParseHeader(msg)
		if h.Type != openflow.TypePacketIn {
			continue
		}
		if err := h.Version.DecodePacketIn(msg, &packet); err != nil {
			fmt.Println(err)
			continue
		}
		out := flow.PacketOut{BufferID: flow.BufferNone, InPort: packet.Key.InPort, Actions: []flow.Action{flow.Output(flow.PortFlood)}, Data: packet.Data}
		send, _ = h.Version.AppendPacketOut(send, h.Xid, &out)
	}
	fmt.Printf("in by port %s, %d octets to send\n", packet.Key.InPort, len(send))
	// Output: in by port 7, 44 octets to send
}
