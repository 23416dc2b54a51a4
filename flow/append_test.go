package flow

import (
	"bytes"
	"testing"
)

// TestAppend: what is appended says the same as its parts, also when these are
// used for something else.
func TestAppend(t *testing.T) {
	r := newRand(11)
	for range 300 {
		all, want := &Decision{}, &Decision{}
		part := &Decision{}
		for range r.IntN(4) + 1 {
			randomDecision(r, part)
			all.Append(part)
			text, err := part.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			again := &Decision{}
			if err := again.UnmarshalBinary(text); err != nil {
				t.Fatal(err)
			}
			for _, op := range again.Ops {
				switch op.Kind {
				case OpFlow:
					want.Flow(op.Switch, again.Flows[op.Index])
				case OpGroup:
					want.Group(op.Switch, again.Groups[op.Index])
				case OpMeter:
					want.Meter(op.Switch, again.Meters[op.Index])
				case OpPacketOut:
					want.PacketOut(op.Switch, again.Outs[op.Index])
				case OpFence:
					want.Fence()
				}
			}
			for i := range part.Outs { // its memory is used again
				clear(part.Outs[i].Data)
				clear(part.Outs[i].Actions)
			}
		}
		a, err := all.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.AppendBinary(nil)
		if err != nil || !bytes.Equal(a, b) {
			t.Fatalf("%x\n%x (%v)", a, b, err)
		}
	}
}
