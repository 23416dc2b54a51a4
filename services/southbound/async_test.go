package southbound

import (
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/session"
	"github.com/weft-sdn/weft/wefttest"
)

// asides returns what a switch may say at any time: a port that goes down and one
// that is new, a packet, an entry that is gone and an error.
func asides(t *testing.T, v openflow.Version) (b []byte) {
	t.Helper()
	add := func(more []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		b = more
	}
	down, fresh := portDesc(1, false), portDesc(7, true)
	add(v.AppendPortStatus(b, 0, openflow.PortModified, &down))
	add(v.AppendPortStatus(b, 0, openflow.PortAdded, &fresh))
	gone := portDesc(2, true)
	add(v.AppendPortStatus(b, 0, openflow.PortDeleted, &gone))
	in := flow.PacketIn{BufferID: flow.BufferNone, Data: make([]byte, 60), TotalLen: 60, Key: flow.Key{InPort: 7}}
	add(v.AppendPacketIn(b, 0, &in))
	add(v.AppendFlowRemoved(b, 0, &openflow.FlowRemoved{Priority: 5, Match: flow.Match{}.WithInPort(1)}))
	return v.AppendError(b, 0x7777, &openflow.Error{Type: openflow.ErrBadRequest, Code: 1})
}

// TestSaidEarly has a switch say things at every step of the handshake: they are
// dealt with when it is up.
func TestSaidEarly(t *testing.T) {
	for _, step := range []openflow.Type{openflow.TypeFeaturesRequest, openflow.TypeRoleRequest, openflow.TypeMultipartRequest} {
		t.Run(step.String(), func(t *testing.T) {
			inAllModes(t, "", func(t *testing.T, w *world) {
				seen := make(chan flow.Port, 8)
				w.h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
					seen <- in.Key.InPort
					return flow.Done
				})
				c, said := w.wire(), false
				c.send(v13.AppendHello(nil, 1), nil)
				for done := false; !done; {
					msg, err := c.read(testwait.Limit)
					if err != nil {
						t.Fatal(err)
					}
					if h, _ := openflow.ParseHeader(msg); h.Type == step && !said {
						said = true
						c.send(asides(t, v13), nil)
					}
					done = c.answer(9, msg)
				}
				checkSaid(t, w, seen)
			})
		})
	}
	t.Run("1.0", func(t *testing.T) {
		inAllModes(t, "", func(t *testing.T, w *world) {
			seen := make(chan flow.Port, 8)
			w.h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
				seen <- in.Key.InPort
				return flow.Done
			})
			c := w.wire()
			c.v = openflow.V10
			c.send(c.v.AppendHello(nil, 1), nil)
			c.want(openflow.TypeHello)
			c.answer(9, c.want(openflow.TypeFeaturesRequest))
			c.send(asides(t, c.v), nil) // between the features and the description
			for done := false; !done; {
				msg, err := c.read(testwait.Limit)
				if err != nil {
					t.Fatal(err)
				}
				done = c.answer(9, msg)
			}
			checkSaid(t, w, seen)
		})
	})
}

// checkSaid checks that events have come to where they belong.
func checkSaid(t *testing.T, w *world, seen <-chan flow.Port) {
	t.Helper()
	e := w.up(9)
	up := map[uint32]bool{}
	for _, p := range e.Ports {
		up[p.Port] = p.Up
	}
	if len(up) != 2 || up[1] || !up[7] {
		t.Errorf("ports %v; want 1, down, and 7, up", up)
	}
	wefttest.Await(w.h, api.FlowRemovedEvent, func(r *api.FlowRemoved) bool { return r.Flow.Priority == 5 })
	wefttest.Await(w.h, api.SwitchErrorEvent, func(r *api.SwitchError) bool { return r.Xid == 0x7777 })
	if port := <-seen; port != 7 {
		t.Errorf("a packet of port %d", port)
	}
	w.eventually("its memory is given back", func() bool { return w.h.Metric("held_bytes", "of", "all") <= 2*session.PortBytes })
}

// TestTooMuchSaidEarly: packet-ins beyond what is kept are shed and counted; a
// switch that says too much else is disconnected.
func TestTooMuchSaidEarly(t *testing.T) {
	inAllModes(t, "flood_rate: 0", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		w.h.Stage(func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Done })
		in := flow.PacketIn{BufferID: flow.BufferNone, Data: make([]byte, 1000), TotalLen: 1000, Key: flow.Key{InPort: 1}}
		packet, err := v13.AppendPacketIn(nil, 0, &in)
		if err != nil {
			t.Fatal(err)
		}
		c, msg := w.begun(9, openflow.MultipartPortDesc)
		const sent = 2000
		for range sent {
			c.send(packet, nil)
		}
		c.answer(9, msg)
		w.up(9)
		w.eventually("all are read or shed", func() bool {
			shed := w.h.Metric("shed_total", "reason", "handshake", "class", "all")
			return shed > 0 && w.h.Metric("packet_ins_total") == sent
		})
		c.conn.Close()
		w.down(9)
		c, _ = w.begun(9, openflow.MultipartPortDesc)
		removed, err := v13.AppendFlowRemoved(nil, 0, &openflow.FlowRemoved{Match: flow.Match{}.WithInPort(1)})
		if err != nil {
			t.Fatal(err)
		}
		for range session.AsyncMost/len(removed) + 1 {
			c.send(removed, nil)
		}
		w.eventually("the switch is disconnected", func() bool { return w.excesses(admission.BoundEvents) == 1 })
		w.works(1)
	})
}
