package l2vpn

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// customers returns frames with up to three tags of the customer's own, of both kinds.
func customers() (list [][]byte) {
	for tags := range 4 {
		for kinds := range 1 << tags {
			b := packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{2, 0, 0, 0, 0, 2}, Src: flow.MAC{2, 0, 0, 0, 0, 1}}, 0x9999)
			b = append(b, fmt.Sprintf("frame %d %08b", tags, kinds)...)
			for i := range tags {
				kind := []uint16{flow.EthTypeVLAN, flow.EthTypeQinQ}[kinds>>i&1]
				b = slices.Concat(b[:12], []byte{byte(kind >> 8), byte(kind), byte(i+1) << 5, byte(100 + i)}, b[12:])
			}
			list = append(list, b)
		}
	}
	return list
}

// tagged returns a customer's frame as it is on the wire at an end.
func tagged(e end, b []byte) []byte {
	for _, v := range []struct{ id, kind uint16 }{{e.inner, flow.EthTypeVLAN}, {e.vlan, map[bool]uint16{true: flow.EthTypeQinQ, false: flow.EthTypeVLAN}[e.inner != 0]}} {
		if v.id != 0 {
			b = slices.Concat(b[:12], []byte{byte(v.kind >> 8), byte(v.kind), byte(v.id >> 8), byte(v.id)}, b[12:])
		}
	}
	return b
}

// untagged returns the customer's frame of what leaves at an end; nil if it has not its tags.
func untagged(e end, b []byte) []byte {
	for _, id := range []uint16{e.vlan, e.inner} {
		if id == 0 {
			continue
		}
		if len(b) < 18 || uint16(b[14])<<8&0xf00|uint16(b[15]) != id {
			return nil
		}
		b = slices.Concat(b[:12], b[16:])
	}
	return b
}

// TestTransparent: between ends of every kind, on one switch or two, of a vpws and a vpls,
// frames with up to three tags of the customer's own arrive octet for octet, or are dropped
// and counted; never does a tag of theirs get lost.
func TestTransparent(t *testing.T) {
	kinds := []string{"", ".500", ".500.60", ".500@0x8100", ".500@0x88a8", ".500.60@0x8100"}
	passed, refused := 0, 0
	for _, typ := range []string{vpws, vpls} {
		for _, local := range []bool{false, true} {
			for _, from := range kinds {
				for _, to := range kinds {
					name := fmt.Sprintf("%s local=%v 1:1%s to 2:2%s", typ, local, from, to)
					t.Run(name, func(t *testing.T) {
						far := "2:2" + to
						if local {
							far = "1:2" + to
						}
						c, err := readCircuit(&api.Circuit{Name: "c", Type: typ, Ends: []string{"1:1" + from, far}})
						if err != nil {
							t.Fatal(err)
						}
						c.Id = 7
						c.Members = []*api.CircuitMember{{Label: flow.CircuitLabels + 1}, {Label: flow.CircuitLabels + 2}}
						f := newField(t, 2)
						for sw := flow.DPID(1); sw <= 2; sw++ {
							all := &set{}
							if typ == vpls {
								v := &fabric{circuit: c, lan: newLAN(10, time.Minute), group: f.tunnel, storm: 1000}
								if !local {
									v.active = []arc{{from: 1, to: 2, label: flow.CircuitLabels + 9}, {from: 2, to: 1, label: flow.CircuitLabels + 9}}
									v.trees = [][]arc{v.active}
								}
								all.lanEntries(v, sw)
							} else {
								for i, e := range c.ends {
									group := uint32(0)
									if !local {
										group = f.tunnel(e.at.Switch, c.ends[1-i].at.Switch)
									}
									if e.at.Switch == sw {
										all.pairEntries(c, i, group, nil, 0)
									}
								}
							}
							f.declare(sw, all)
						}
						b := &counterTable{of: map[uint32]*circuitCounters{7: {circuit: c, seen: map[counter]amount{}}}}
						for i, e := range c.ends {
							o := c.ends[1-i]
							for _, frame := range customers() {
								spare := c.spare(1-i, c.carried(i, 1-i))
								drops := func() uint64 { b.count(f.flows()); return b.of[7].countedAt(i)[dropped].packets }
								before := drops()
								f.host(o.at).Received()
								f.host(e.at).Send(tagged(e, frame))
								got := f.host(o.at).Received()
								tags := packet.Tags(nil, frame)
								switch n := len(tags); {
								case len(got) == 0:
									refused++
									if n <= spare && (e.tags() < 2 || n == 0) {
										t.Errorf("%v to %v: a frame with %d tags does not arrive", e, o, n)
									}
									if now := drops(); now != before+1 {
										t.Errorf("%v to %v: a frame with %d tags is dropped, and %d more are counted", e, o, n, now-before)
									}
								case len(got) > 1:
									t.Errorf("%v to %v: %d frames", e, o, len(got))
								default:
									passed++
									is := untagged(o, got[0])
									if kind := uint16(got[0][12])<<8 | uint16(got[0][13]); o.kind != 0 && kind != o.kind {
										t.Errorf("%v to %v: the outer tag has the type %#x", e, o, kind)
									}
									if spare == 1 && e.tags() == 0 && n == 1 { // its kind is not kept
										is, frame = slices.Concat(is[:12], []byte{0x81, 0}, is[14:]), slices.Concat(frame[:12], []byte{0x81, 0}, frame[14:])
									}
									if !bytes.Equal(is, frame) {
										t.Errorf("%v to %v: sent\n%x, got\n%x, that is\n%x", e, o, frame, got[0], is)
									}
								}
							}
						}
					})
				}
			}
		}
	}
	t.Logf("%d frames passed, %d dropped", passed, refused)
}
