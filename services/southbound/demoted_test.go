package southbound

import (
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// usurp has another controller connect to a switch, become its master, and
// leave. It says of the generation how much it is above the switch's.
func usurp(t *testing.T, d *oftest.Device, above uint64) {
	t.Helper()
	var generation uint64
	send, leave := d.Attach(func(msg []byte) {
		if h, err := openflow.ParseHeader(msg); err == nil && h.Type == openflow.TypeRoleReply {
			_, generation, _ = v13.DecodeRoleReply(msg)
		}
	})
	defer leave()
	send(v13.AppendHello(nil, 1, v13))
	for xid, role := range []openflow.Role{openflow.RoleNoChange, openflow.RoleMaster} {
		msg, err := v13.AppendRoleRequest(nil, uint32(2+xid), role, generation+above)
		if err != nil {
			t.Fatal(err)
		}
		send(msg)
	}
}

// rules reports whether a switch has one controller, and that is its master.
func rules(d *oftest.Device) (so bool) {
	d.Do(func(sw *oftest.Switch) oftest.Effects {
		roles := sw.Roles()
		so = len(roles) == 1 && roles[0] == openflow.RoleMaster
		return oftest.Effects{}
	})
	return so
}

// TestDeposed: another controller becomes master of a switch and leaves, so that
// the switch has none. The service notices, whether it has anything to send or
// not, becomes master again over the same session, and tells others that the
// switch may have missed messages.
func TestDeposed(t *testing.T) {
	const ours = "switches: [\"1\"]\nelsewhere: {other: [\"2\"]}"
	for name, test := range map[string]struct {
		config string
		above  uint64
		busy   bool
	}{
		"nothing is sent":                          {config: "echo_interval: 100ms"},
		"a flow-mod is refused":                    {busy: true},
		"a generation of a former partition":       {config: "echo_interval: 100ms", above: 1},
		"a higher generation, switches in a plan":  {config: "echo_interval: 100ms\n" + ours, above: 1000},
		"the same, and a flow-mod is refused":      {config: ours, above: 1000, busy: true},
		"a generation that wraps around is higher": {config: "echo_interval: 100ms\n" + ours, above: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			inAllModes(t, test.config, func(t *testing.T, w *world) {
				d := w.device(oftest.Config{DPID: 1, Ports: 2})
				first := w.info(1).Address
				usurp(t, d, test.above)
				if rules(d) {
					t.Fatal("the other controller has not become master")
				}
				if test.busy {
					decision := &flow.Decision{}
					addFlow(decision, 1, 5)
					if r := w.apply(decision); len(r.Failures) == 0 {
						t.Error("a slave has programmed the switch")
					}
				}
				wefttest.Await(w.h, api.SwitchChangedEvent, func(e *api.SwitchChanged) bool { return e.Switch.Connected })
				if !rules(d) {
					t.Error("the switch has no master")
				}
				if now := w.info(1).Address; now != first {
					t.Errorf("the session from %s has made way for one from %s", first, now)
				}
				w.works(1)
			})
		})
	}
}

// TestDeposedByLaterMaster: where all switches are this controller's, one whose
// generation is higher than its own has another controller, and is left alone.
func TestDeposedByLaterMaster(t *testing.T) {
	inAllModes(t, "echo_interval: 100ms", func(t *testing.T, w *world) {
		d := w.device(oftest.Config{DPID: 1, Ports: 2})
		usurp(t, d, 1000)
		if reason := w.down(1); reason == "" {
			t.Error("the session ends without a reason")
		}
	})
}

// TestContestEnds: somebody who outbids this controller each time has the
// switch.
func TestContestEnds(t *testing.T) {
	inAllModes(t, "echo_interval: 100ms", func(t *testing.T, w *world) {
		d := w.device(oftest.Config{DPID: 1, Ports: 2})
		for n := 1; ; n++ {
			usurp(t, d, 1)
			e := wefttest.Await(w.h, api.SwitchChangedEvent, func(*api.SwitchChanged) bool { return true })
			if !e.Switch.Connected {
				if n != contestMost+1 {
					t.Errorf("the switch is left to another controller after %d times, want %d", n-1, contestMost)
				}
				return
			}
		}
	})
}

// TestKeptSlave: a session that remains a slave whatever it asks for ends.
func TestKeptSlave(t *testing.T) {
	inAllModes(t, "echo_interval: 100ms", func(t *testing.T, w *world) {
		c := w.joined(1)
		ended := make(chan string, 1)
		go func() { ended <- w.down(1) }()
		asked := 0
		for {
			msg, err := c.read(testwait.Limit)
			if err != nil {
				break
			}
			h, _ := openflow.ParseHeader(msg)
			switch h.Type {
			case openflow.TypeEchoRequest:
				c.send(v13.AppendEchoReply(nil, h.Xid, nil))
			case openflow.TypeRoleRequest:
				asked++
				c.send(v13.AppendRoleReply(nil, h.Xid, openflow.RoleSlave, 1))
			}
		}
		reason := <-ended
		if want := "another controller is master of the switch, and the switch does not make this one its master again"; reason != want {
			t.Errorf("the session ends: %s", reason)
		}
		if asked < 2 || asked > 50 {
			t.Errorf("the switch was asked %d times", asked)
		}
	})
}
