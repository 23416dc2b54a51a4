package l2vpn

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestMirror: frames of an end are copied to the port of the analyser, as they are at the end, in the directions
// that are asked for, of each kind of end and circuit; they come through as without; and nothing that the
// analyser sends comes anywhere.
func TestMirror(t *testing.T) {
	for _, typ := range []string{vpws, vpls} {
		for _, ends := range []string{"1:1 2:1", "1:1.10 2:1.20", "1:1.10.11 2:1", "1:1/10-12 2:1", "1:1 1:2", "1:1.10 1:2.20"} {
			for _, way := range []string{"", ",rx", ",tx"} {
				t.Run(strings.Join([]string{typ, ends, way}, " "), func(t *testing.T) {
					plain := &api.Circuit{Name: "c", Type: typ, Ends: strings.Fields(ends)}
					f := newPortsField(t, plain)
					c := f.b.status["c"].circuit
					near, far, sink := c.ends[0], c.ends[1], f.host(flow.Location{Switch: 1, Port: 3})
					src, dst := flow.MAC{2, 0, 0, 0, 0, 1}, flow.MAC{2, 0, 0, 0, 0, 2}
					shape := func(e end) end { // of the frames there
						if e.list != "" {
							return end{vlan: 11}
						}
						return e
					}
					there, back := frame(shape(near), src, dst, 1), frame(shape(far), dst, src, 2)
					if near.list != "" {
						back = frame(end{vlan: 11}, dst, src, 2)
					}
					run := func() (atFar, atNear, copies [][]byte) {
						a, z := f.host(near.at), f.host(far.at)
						a.Received()
						z.Received()
						sink.Received()
						a.Send(there)
						atFar = z.Received()
						z.Send(back)
						return atFar, a.Received(), sink.Received()
					}
					run() // addresses are learnt
					f.b.spread(true)
					f.follow()
					farBefore, nearBefore, none := run()
					if len(farBefore) != 1 || len(nearBefore) != 1 || len(none) != 0 {
						t.Fatalf("without a mirror %d arrive, %d come back, %d are copied", len(farBefore), len(nearBefore), len(none))
					}
					m := f.b.get("c")
					m.Mirrors = []string{m.Ends[0] + "=3" + way}
					f.set(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}})
					atFar, atNear, copies := run()
					if !slices.EqualFunc(atFar, farBefore, bytes.Equal) || !slices.EqualFunc(atNear, nearBefore, bytes.Equal) {
						t.Errorf("frames are others than without the mirror: %x, %x", atFar, atNear)
					}
					var want [][]byte
					if way != ",tx" {
						want = append(want, padded(there))
					}
					if way != ",rx" {
						want = append(want, nearBefore...)
					}
					if len(copies) != len(want) {
						t.Fatalf("%d copies, want %d", len(copies), len(want))
					}
					for i := range want {
						if !sameFrame(copies[i], want[i]) {
							t.Errorf("copy %d is %x, want %x", i, copies[i], want[i])
						}
					}
					for _, tags := range [][]uint16{nil, {10}, {10, 11}, {11}} {
						if got := f.sent(1, 3, tags...); got != "" {
							t.Errorf("what the analyser sends comes to %q", got)
						}
					}
					if f.b.reserved.ends[portVLAN{at: flow.Location{Switch: 1, Port: 3}}] != 1 {
						t.Error("the analyser's port is not kept from the ordinary network")
					}
					f.set(&api.SetCircuitsRequest{Circuits: []*api.Circuit{plain}})
					if _, _, copies := run(); len(copies) != 0 {
						t.Error("copies are sent after the mirror is gone")
					}
				})
			}
		}
	}
}

// padded returns a frame as long as the least that there is.
func padded(frame []byte) []byte { return append(frame, make([]byte, max(0, 60-len(frame)))...) }

// sameFrame reports whether two frames are the same but for the type of their outer tag, which a mirror of an
// end with two tags puts on anew, and padding.
func sameFrame(x, y []byte) bool {
	n := min(len(x), len(y))
	return bytes.Equal(x[:12], y[:12]) && bytes.Equal(x[14:n], y[14:n])
}

// TestMirrorRefused: an analyser is at a port of its own.
func TestMirrorRefused(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	set := func(name, ends string, mirrors ...string) error {
		return b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: name, Ends: strings.Fields(ends), Mirrors: mirrors}}})
	}
	if err := set("a", "1:1 2:1", "1:1=5"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ends, mirror string
		kind         codes.Code
		want         string
	}{
		{"1:2 2:2", "1:2=1", codes.FailedPrecondition, "it is end 0000000000000001:1 of circuit a"},
		{"1:2 2:2", "1:2=9", codes.FailedPrecondition, "the port is link"},
		{"1:2 2:2", "1:2=77", codes.FailedPrecondition, "no such port"},
		{"1:5 2:2", "2:2=4", codes.FailedPrecondition, "frames of circuit a are copied to the port"},
		{"1:5.7 2:2", "2:2=4", codes.FailedPrecondition, "frames of circuit a are copied to the port"},
		{"1:2 2:2", "1:2=2", codes.InvalidArgument, "is a customer's"},
		{"1:2 2:2", "1:3=5", codes.InvalidArgument, "is no end of it"},
		{"1:2 2:2", "1:2", codes.InvalidArgument, "want END=PORT"},
		{"1:2 2:2", "1:2=5,both", codes.InvalidArgument, "want rx"},
		{"1:2 2:2", "1:2=x", codes.InvalidArgument, "want the number of a port"},
	} {
		if err := set("b", c.ends, c.mirror); api.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, mirror %s: %v; want %v, %q", c.ends, c.mirror, err, c.kind, c.want)
		}
	}
	if err := set("b", "1:2 2:2", "1:2=5", "2:2=5,rx"); err != nil {
		t.Errorf("two circuits have one analyser: %v", err)
	}
	if err := b.try(&api.SetCircuitsRequest{Delete: []string{"a", "b"}}); err != nil || len(b.sinks[1]) != 0 {
		t.Errorf("%v; left over: %v", err, b.sinks)
	}
	if err := set("b", "1:5 2:2"); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(b.get("b").Mirrors); got != "[]" {
		t.Error(got)
	}
}
