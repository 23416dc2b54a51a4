package openflow

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
)

var versions = []struct {
	name string
	v    Version
}{{"1.0", V10}, {"1.3", V13}}

func hotMod() *flow.Mod {
	m := flow.Match{}.WithInPort(1).WithEthSrc(flow.MAC{2, 0, 0, 0, 0, 1}).WithEthDst(flow.MAC{2, 0, 0, 0, 0, 2}).WithoutVLAN()
	return &flow.Mod{
		Entry:    flow.Entry{Priority: 100, IdleTimeout: 30, Cookie: flow.NewCookie(flow.OwnerRoutes, 1, 7), Match: m, Apply: []flow.Action{flow.Output(2)}},
		BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
	}
}

func hotPacketIn() *flow.PacketIn {
	return &flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 64, Key: flow.Key{InPort: 3}, Data: make([]byte, 64)}
}

func hotPacketOut() *flow.PacketOut {
	return &flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: []flow.Action{flow.Output(2)}, Data: make([]byte, 64)}
}

// hot is the operations that must not allocate, each on memory that it was
// given before.
func hot(v Version) map[string]func() error {
	mod, in, out := hotMod(), hotPacketIn(), hotPacketOut()
	var gotMod flow.Mod
	var gotIn flow.PacketIn
	var gotOut flow.PacketOut
	buf := make([]byte, 0, 4096)
	modMsg, _ := v.AppendFlowMod(nil, 1, mod)
	inMsg, _ := v.AppendPacketIn(nil, 1, in)
	outMsg, _ := v.AppendPacketOut(nil, 1, out)
	echo, _ := v.AppendEchoRequest(nil, 1, []byte("weft"))
	return map[string]func() error{
		"AppendFlowMod":        func() (err error) { _, err = v.AppendFlowMod(buf, 1, mod); return err },
		"DecodeFlowMod":        func() error { return v.DecodeFlowMod(modMsg, &gotMod) },
		"AppendPacketIn":       func() (err error) { _, err = v.AppendPacketIn(buf, 1, in); return err },
		"DecodePacketIn":       func() error { return v.DecodePacketIn(inMsg, &gotIn) },
		"AppendPacketOut":      func() (err error) { _, err = v.AppendPacketOut(buf, 1, out); return err },
		"DecodePacketOut":      func() error { return v.DecodePacketOut(outMsg, &gotOut) },
		"AppendEchoRequest":    func() (err error) { _, err = v.AppendEchoRequest(buf, 1, echo[HeaderLen:]); return err },
		"AppendEchoReply":      func() (err error) { _, err = v.AppendEchoReply(buf, 1, echo[HeaderLen:]); return err },
		"AppendBarrierRequest": func() error { buf = v.AppendBarrierRequest(buf[:0], 1); return nil },
		"AppendBarrierReply":   func() error { buf = v.AppendBarrierReply(buf[:0], 1); return nil },
		"Next": func() error {
			msg, _, err := Next(inMsg)
			if err == nil {
				_, err = ParseHeader(msg)
			}
			return err
		},
	}
}

func TestHotMessagesDoNotAllocate(t *testing.T) {
	for _, ver := range versions {
		for name, f := range hot(ver.v) {
			if err := f(); err != nil { // the first use may grow what is used again
				t.Fatal(name, err)
			}
			if n := testing.AllocsPerRun(100, func() { _ = f() }); n != 0 {
				t.Errorf("%s of OpenFlow %s: %v allocations", name, ver.name, n)
			}
		}
	}
}

func benchmarkHot(b *testing.B, name string) {
	for _, ver := range versions {
		b.Run(ver.name, func(b *testing.B) {
			f := hot(ver.v)[name]
			b.ReportAllocs()
			for b.Loop() {
				_ = f()
			}
		})
	}
}

func BenchmarkAppendFlowMod(b *testing.B)   { benchmarkHot(b, "AppendFlowMod") }
func BenchmarkDecodeFlowMod(b *testing.B)   { benchmarkHot(b, "DecodeFlowMod") }
func BenchmarkAppendPacketIn(b *testing.B)  { benchmarkHot(b, "AppendPacketIn") }
func BenchmarkDecodePacketIn(b *testing.B)  { benchmarkHot(b, "DecodePacketIn") }
func BenchmarkAppendPacketOut(b *testing.B) { benchmarkHot(b, "AppendPacketOut") }
func BenchmarkDecodePacketOut(b *testing.B) { benchmarkHot(b, "DecodePacketOut") }
func BenchmarkAppendEchoReply(b *testing.B) { benchmarkHot(b, "AppendEchoReply") }
func BenchmarkNext(b *testing.B)            { benchmarkHot(b, "Next") }
