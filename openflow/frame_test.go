package openflow

import (
	"bytes"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestFrame: Frame finds what DecodePacketIn finds, in packet-ins as switches
// send most of them; of anything else it returns nothing or a part of it.
func TestFrame(t *testing.T) {
	in := flow.PacketIn{BufferID: 7, TotalLen: 60, Key: flow.Key{InPort: 3}, Data: bytes.Repeat([]byte{1, 2, 3}, 20)}
	for _, v := range []Version{V10, V13} {
		msg, err := v.AppendPacketIn(nil, 1, &in)
		if err != nil {
			t.Fatal(err)
		}
		var got flow.PacketIn
		if err := v.DecodePacketIn(msg, &got); err != nil {
			t.Fatal(err)
		}
		if f := v.Frame(msg); !bytes.Equal(f, got.Data) || !bytes.Equal(f, in.Data) {
			t.Errorf("%v: frame %x, want %x", v, f, in.Data)
		}
		for n := range msg {
			if f := v.Frame(msg[:n]); len(f) > n {
				t.Errorf("%v: %d octets of %d", v, len(f), n)
			}
		}
		if f := v.Frame(v.AppendBarrierRequest(nil, 1)); f != nil {
			t.Errorf("%v: a barrier has the frame %x", v, f)
		}
	}
}
