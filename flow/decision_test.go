package flow

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// A slot that is used again is as empty as a fresh one, whatever was in it.
func TestAddFlowClears(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	want := (&Decision{}).AddFlow(1)
	for i := range 200 {
		match := randomMatch(r, true)
		if i%2 == 0 {
			match = Match{}.WithInPort(1).WithEthDst(MAC{2}).WithEthSrc(MAC{4}).WithEthType(5).WithVLAN(6)
		}
		d := &Decision{}
		m := d.AddFlow(1)
		*m = Mod{
			Command: DeleteStrict, BufferID: r.Uint32(), OutPort: 1, OutGroup: 2, CookieMask: 3,
			Entry: Entry{
				Table: 1, Goto: 2, Clear: true, HasWrite: true, Priority: 3, IdleTimeout: 4, HardTimeout: 5, Flags: 6, Meter: 7,
				Cookie: 8, Metadata: 9, MetaMask: 10, Match: match, Apply: []Action{Output(1)}, Write: []Action{Output(2)},
			},
		}
		d.Reset()
		if m := d.AddFlow(1); !reflect.DeepEqual(m, want) {
			t.Fatalf("got %+v, want %+v", m, want)
		}
	}
}
