package openflow

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestPlainMod: plain flow-mods have the octets, or the error, that the
// encoder of all others gives them; and the stages' are plain.
func TestPlainMod(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	plains := map[Version]int{}
	for range 20_000 {
		m := nearlyPlain(r)
		prefix := data(r, r.IntN(4))
		for _, v := range []Version{V10, V13} {
			if plain(m) && (v == V13 || plain10(m)) {
				plains[v]++
			}
			xid := r.Uint32()
			got, err := v.AppendFlowMod(bytes.Clone(prefix), xid, m)
			whole := Version.appendFlowMod13
			if v == V10 {
				whole = func(_ Version, dst []byte, xid uint32, m *flow.Mod) ([]byte, error) {
					return appendFlowMod10(dst, xid, m)
				}
			}
			want, wantErr := whole(v, bytes.Clone(prefix), xid, m)
			if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) {
				t.Fatalf("%v, %+v:\n got %x, %v\nwant %x, %v", v, m, got, err, want, wantErr)
			}
		}
	}
	if plains[V10] < 1000 || plains[V13] < 1000 {
		t.Errorf("%v of 20,000 were plain, want more", plains)
	}
	for _, v := range versions {
		if m := hotMod(); !plain(m) || v.v == V10 && !plain10(m) {
			t.Error("the flow-mod of the benchmarks is not plain")
		}
	}
}

// nearlyPlain returns a random flow-mod that is plain, or differs from a plain
// one in few ways.
func nearlyPlain(r *rand.Rand) *flow.Mod {
	m := &flow.Mod{Command: flow.Command(r.IntN(6)), BufferID: r.Uint32(), OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	e := &m.Entry
	e.Cookie, e.Priority, e.IdleTimeout, e.HardTimeout = flow.Cookie(r.Uint64()), uint16(r.Uint32()), uint16(r.Uint32()), uint16(r.Uint32())
	k := &e.Match.Key
	k.InPort, k.EthDst, k.EthSrc = port(r, V10), mac(r), mac(r)
	e.Match.Set = plainFields
	if r.IntN(2) == 0 {
		k.VLAN = flow.VLANPresent | uint16(r.IntN(4096))
	}
	e.Apply = []flow.Action{flow.Output(port(r, V10))}
	odd := func(f func()) {
		if r.IntN(16) == 0 {
			f()
		}
	}
	odd(func() { k.InPort = flow.Port(r.Uint32()) })
	odd(func() { e.Apply[0].Arg = r.Uint32() })
	odd(func() { e.Apply[0].MaxLen = uint16(r.Uint32()) })
	odd(func() { e.Apply = append(e.Apply, flow.Output(3)) })
	odd(func() { e.Apply = []flow.Action{flow.SetEthDst(mac(r))} })
	odd(func() { e.Apply = nil })
	odd(func() { e.Write = []flow.Action{flow.Output(3)} })
	odd(func() { e.HasWrite = true })
	odd(func() { e.Clear = true })
	odd(func() { e.Goto = 3 })
	odd(func() { e.Meter = 9 })
	odd(func() { e.Metadata, e.MetaMask = 1, 1 })
	odd(func() { e.Table = uint8(r.Uint32()) })
	odd(func() { e.Flags = uint16(r.Uint32()) })
	odd(func() { e.Flags = flow.FlagSendRem })
	odd(func() { m.CookieMask = flow.Cookie(r.Uint64()) })
	odd(func() { m.OutPort = port(r, V13) })
	odd(func() { m.OutGroup = r.Uint32() })
	odd(func() { e.Match.Set |= flow.FieldEthType.Bit() })
	odd(func() { e.Match.Set &^= flow.FieldVLAN.Bit(); k.VLAN = 0 })
	odd(func() { e.Match = e.Match.WithEthDstMasked(mac(r), mac(r)) })
	return m
}
