package southbound

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// TestVersions: the highest version that both speak is used (OpenFlow 1.3.5
// §6.3.1); where there is none, the switch is told so.
func TestVersions(t *testing.T) {
	const v14, v15 = openflow.Version(5), openflow.Version(6)
	inAllModes(t, "", func(t *testing.T, w *world) {
		for _, test := range []struct {
			name  string
			hello []byte
			want  openflow.Version // 0: refused
		}{
			{"1.0", openflow.V10.AppendHello(nil, 1), openflow.V10},
			{"1.3", v13.AppendHello(nil, 1), v13},
			{"1.3 with a bitmap", v13.AppendHello(nil, 1, v13), v13},
			{"1.4 without a bitmap", v14.AppendHello(nil, 1), v13},
			{"1.5 with a bitmap", v15.AppendHello(nil, 1, openflow.V10, v13, v15), v13},
			{"1.5 with a bitmap that has 1.0 only", v15.AppendHello(nil, 1, openflow.V10, v15), openflow.V10},
			{"1.2, the lower of both by the headers", openflow.Version(3).AppendHello(nil, 1), 0},
			{"1.5 alone", v15.AppendHello(nil, 1, v15), 0},
			{"1.4 and 1.5", v15.AppendHello(nil, 1, v14, v15), 0},
		} {
			c := w.wire()
			if h := c.want(openflow.TypeHello); h[0] != byte(v13) {
				t.Errorf("%s: hello of version %d", test.name, h[0])
			}
			c.send(test.hello, nil)
			msg, err := c.read(testwait.Limit)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			h, _ := openflow.ParseHeader(msg)
			if test.want != 0 {
				if h.Type != openflow.TypeFeaturesRequest || h.Version != test.want {
					t.Errorf("%s: %v of %v follows, want a features request of %v", test.name, h.Type, h.Version, test.want)
				}
				continue
			}
			e, err := v13.DecodeError(msg)
			if err != nil || e.Type != openflow.ErrHelloFailed || e.Code != openflow.HelloFailedIncompatible || e.Xid != 1 {
				t.Errorf("%s: %+v, %v", test.name, e, err)
			}
			c.closed()
		}
	})
}

// TestHandshakeOrder: nothing but the version is said before the identity is
// known, and nothing is asked before the switch has confirmed the role.
func TestHandshakeOrder(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		c := w.wire()
		c.want(openflow.TypeHello)
		c.quiet()
		c.send(v13.AppendHello(nil, 1), nil)
		msg := c.want(openflow.TypeFeaturesRequest)
		c.quiet()
		// What a switch may send at any time does not disturb.
		c.send(v13.AppendEchoRequest(nil, 0x77, []byte("x")))
		if echo := c.want(openflow.TypeEchoReply); xidOf(echo) != 0x77 || string(echo[8:]) != "x" {
			t.Errorf("echo reply %x", echo)
		}
		desc := portDesc(1, false)
		c.send(v13.AppendPortStatus(nil, 0, openflow.PortModified, &desc))
		c.answer(1, msg)
		msg = c.want(openflow.TypeRoleRequest)
		if role, _, err := v13.DecodeRoleRequest(msg); err != nil || role != openflow.RoleMaster {
			t.Errorf("role %v is asked for", role)
		}
		c.quiet()
		wefttest.None(w.h, api.SwitchChangedEvent, 30*time.Millisecond)
		c.answer(1, msg)
		c.want(openflow.TypeSetConfig)
		c.want(openflow.TypeSetAsync)
		for !c.answer(1, c.want(openflow.TypeMultipartRequest)) {
		}
		e := w.up(1)
		if e.Switch.Role != "master" || e.Switch.Openflow != "1.3" || e.Switch.Manufacturer != "test" || len(e.Ports) != 2 {
			t.Errorf("%v", e)
		}
	})
}

// TestOpenFlow10Handshake: no roles, ports from the features reply.
func TestOpenFlow10Handshake(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		d := oftest.NewDevice(oftest.Config{DPID: 10, Ports: 3, Versions: []openflow.Version{openflow.V10}}, nil)
		w.dial(d)
		if e := w.up(10); e.Switch.Openflow != "1.0" || e.Switch.Role != "" || len(e.Ports) != 3 {
			t.Errorf("%v", e)
		}
		w.works(10)
	})
}

// TestNoRoles: a switch that has no roles is used as it is.
func TestNoRoles(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		c := w.wire()
		c.send(v13.AppendHello(nil, 1), nil)
		c.want(openflow.TypeHello)
		c.answer(3, c.want(openflow.TypeFeaturesRequest))
		msg := c.want(openflow.TypeRoleRequest)
		c.send(v13.AppendError(nil, xidOf(msg), &openflow.Error{Type: openflow.ErrBadRequest, Code: openflow.BadRequestBadType}), nil)
		for {
			msg, err := c.read(testwait.Limit)
			if err != nil {
				t.Fatal(err)
			}
			if c.answer(3, msg) {
				break
			}
		}
		if e := w.up(3); e.Switch.Role != "equal" {
			t.Errorf("role %q", e.Switch.Role)
		}
	})
}

// TestLaterMaster: a switch that a later master has programmed is left alone.
func TestLaterMaster(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		c := w.wire()
		c.send(v13.AppendHello(nil, 1), nil)
		c.want(openflow.TypeHello)
		c.answer(3, c.want(openflow.TypeFeaturesRequest))
		msg := c.want(openflow.TypeRoleRequest)
		c.send(v13.AppendError(nil, xidOf(msg), &openflow.Error{Type: openflow.ErrRoleRequestFailed, Code: openflow.RoleRequestFailedStale}), nil)
		msg = c.want(openflow.TypeRoleRequest)
		c.send(v13.AppendRoleReply(nil, xidOf(msg), openflow.RoleSlave, 1<<63))
		c.closed()
		if w.info(3) != nil {
			t.Error("the switch is known")
		}
	})
}

// TestEpochGrows: each run of the service fences off those before it.
func TestEpochGrows(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		epoch := func() uint64 {
			c := w.wire()
			defer c.conn.Close()
			c.send(v13.AppendHello(nil, 1), nil)
			c.want(openflow.TypeHello)
			c.answer(3, c.want(openflow.TypeFeaturesRequest))
			_, generation, _ := v13.DecodeRoleRequest(c.want(openflow.TypeRoleRequest))
			return generation
		}
		first := epoch()
		w.h.Restart()
		if second := epoch(); int64(second-first) <= 0 {
			t.Errorf("generation %d after %d", second, first)
		}
	})
}

// TestCVE_2014_2304: features replies at the wrong time, again, or with
// another identity neither stop the service nor leave anything behind.
func TestCVE_2014_2304(t *testing.T) {
	reply := func(xid uint32, sw flow.DPID) ([]byte, error) {
		return v13.AppendFeaturesReply(nil, xid, &openflow.Features{DPID: sw})
	}
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})

		early := w.wire() // before hello
		early.send(reply(1, 50))
		early.closed()

		wrong := w.wire() // an answer to no question is none
		wrong.send(v13.AppendHello(nil, 1), nil)
		wrong.want(openflow.TypeHello)
		msg := wrong.want(openflow.TypeFeaturesRequest)
		wrong.send(reply(xidOf(msg)+1, 51))
		wrong.quiet()
		wrong.send(reply(xidOf(msg), 52))
		wrong.want(openflow.TypeRoleRequest)
		wrong.send(reply(xidOf(msg), 53)) // again, in the place of the next answer
		wrong.conn.Close()

		short := w.wire() // cut short
		short.send(v13.AppendHello(nil, 1), nil)
		short.want(openflow.TypeHello)
		short.send([]byte{4, 6, 0, 12, 0, 0, 0, 0, 0, 0, 0, 9}, nil)
		msg = short.want(openflow.TypeFeaturesRequest)
		bad := []byte{4, 6, 0, 12, 0, 0, 0, 0, 0, 0, 0, 9}
		copy(bad[4:8], msg[4:8])
		short.send(bad, nil)
		short.closed()

		again := w.joined(54)
		again.send(reply(9, 54)) // the same identity, unasked: harmless
		w.works(1)
		again.send(reply(9, 55)) // another identity
		again.closed()
		if reason := w.down(54); !strings.Contains(reason, "datapath id") {
			t.Errorf("reason %q", reason)
		}
		for _, sw := range []flow.DPID{50, 51, 52, 53, 55} {
			if w.info(sw) != nil {
				t.Errorf("switch %v is known, which never was one", sw)
			}
		}
		w.eventually("the three connections have ended", func() bool { return w.h.Metric("connections_refused_total", "reason", "handshake") == 3 })
		c := w.joined(52) // an identity that was claimed is free again
		c.conn.Close()
		w.down(52)
		w.works(1)
	})
}

// TestHandshakeTimeout: a connection that says nothing is closed.
func TestHandshakeTimeout(t *testing.T) {
	inAllModes(t, "handshake_timeout: 100ms", func(t *testing.T, w *world) {
		w.wire().closed()
		c := w.wire()
		c.send(v13.AppendHello(nil, 1), nil)
		c.closed()
		w.eventually("two connections are counted", func() bool { return w.h.Metric("connections_refused_total", "reason", "handshake") == 2 })
	})
}

// TestAuxiliaryRefused: all messages go over the main connection.
func TestAuxiliaryRefused(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		c := w.wire()
		c.send(v13.AppendHello(nil, 1), nil)
		c.want(openflow.TypeHello)
		msg := c.want(openflow.TypeFeaturesRequest)
		c.send(v13.AppendFeaturesReply(nil, xidOf(msg), &openflow.Features{DPID: 1, AuxiliaryID: 1}))
		c.closed()
	})
}

// TestTooManySessions: connections beyond max_sessions are closed at once and
// counted, and the others go on.
func TestTooManySessions(t *testing.T) {
	inAllModes(t, "max_sessions: 2", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		c := w.joined(2)
		w.wire().closed()
		if n := w.h.Metric("connections_refused_total", "reason", "too_many"); n != 1 {
			t.Errorf("%v connections counted, want 1", n)
		}
		if l := w.h.Limits(); len(l) != 1 || l[0].Key != "southbound.max_sessions" || l[0].Limit != 2 {
			t.Errorf("health learns %v", l)
		}
		c.conn.Close()
		w.down(2)
		w.device(oftest.Config{DPID: 3})
		w.works(1)
	})
}

// TestReconnect: a switch that comes back is up again with what it has.
func TestReconnect(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		d := w.device(oftest.Config{DPID: 1})
		w.works(1)
		d.Disconnect()
		w.down(1)
		w.dial(d)
		w.up(1)
		r, err := wefttest.Call(w.h, api.ReadFlows, &api.ReadFlowsRequest{Dpid: flow.DPID(1).String()})
		if err != nil || len(r.Flows) != 1 || r.Flows[0].Priority != 77 {
			t.Errorf("%v, %v", r, err)
		}
	})
}
