package southbound

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLive: each key that a running service takes over has its effect, without
// a switch being disconnected.
func TestLive(t *testing.T) {
	t.Parallel()
	change := func(t *testing.T, h *wefttest.Harness, f func(*Config)) {
		t.Helper()
		if err := wefttest.Reconfigure(h, f); err != nil {
			t.Fatal(err)
		}
	}
	limits := func(h *wefttest.Harness) []*api.PortLimit {
		r, _ := wefttest.Call(h, api.ListLimits, &api.ListLimitsRequest{})
		return r.GetLimits()
	}
	// flooded begins a flood of 20,000 packets a second at port 1.
	flooded := func(t *testing.T, h *wefttest.Harness, config string, table uint8) *world {
		h.Stage(func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Done })
		w := newWorld(t, h, config)
		flood(t, w, table, false)
		return w
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"realtime_first": func(t *testing.T, h *wefttest.Harness) {
			turn := func() { change(t, h, func(c *Config) { c.RealtimeFirst = true }) }
			if _, _, probe := behindPackets(t, h, v13, "realtime_first: false", testwait.Limit, turn); probe > 1 {
				t.Errorf("%d packet-ins before the probe", probe)
			}
		},
		"handshake_timeout": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "handshake_timeout: 1h")
			change(t, h, func(c *Config) { c.HandshakeTimeout = 100 * time.Millisecond })
			w.wire().closed()
		},
		"echo_interval": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "echo_interval: 1h\ndead_after: 2h")
			c := w.joined(1)
			change(t, h, func(c *Config) { c.EchoInterval = 50 * time.Millisecond })
			for {
				msg, err := c.read(testwait.Limit)
				if err != nil {
					t.Fatal(err)
				}
				if openflow.Type(msg[1]) == openflow.TypeEchoRequest {
					return
				}
			}
		},
		"dead_after": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "echo_interval: 50ms\ndead_after: 1h")
			w.device(oftest.Config{DPID: 1}).SetFaults(oftest.Faults{Silent: true})
			change(t, h, func(c *Config) { c.DeadAfter = 200 * time.Millisecond })
			if reason := w.down(1); !strings.Contains(reason, "silent for 200ms") {
				t.Error(reason)
			}
		},
		"write_timeout": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "write_timeout: 1h\nqueue_bytes: 131072")
			w.joined(9)
			out := &flow.Decision{}
			for range 100 {
				out.PacketOut(9, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: out.Actions(flow.Output(1)), Data: make([]byte, 1400)})
			}
			w.eventually("its queue is full", func() bool {
				r, err := wefttest.Call(h, api.Send, out)
				return err == nil && len(r.Failures) > 0
			})
			change(t, h, func(c *Config) { c.WriteTimeout = 100 * time.Millisecond })
			if reason := w.down(9); !strings.Contains(reason, "not read for 100ms") {
				t.Error(reason)
			}
		},
		"confirm_timeout": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "confirm_timeout: 1h")
			w.device(oftest.Config{DPID: 1}).SetFaults(oftest.Faults{BarrierDelay: time.Hour})
			change(t, h, func(c *Config) { c.ConfirmTimeout = 100 * time.Millisecond })
			d := &flow.Decision{}
			addFlow(d, 1, 1)
			if r := w.apply(d); len(r.Failures) != 1 {
				t.Errorf("%v", r)
			}
		},
		"new_sessions_per_second": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "new_sessions_per_second: 1")
			change(t, h, func(c *Config) { c.NewSessionsPerSecond = 1000 })
			for n := range flow.DPID(30) { // half a minute at one a second
				w.joined(n + 1)
			}
		},
		"max_sessions": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "")
			w.device(oftest.Config{DPID: 1})
			change(t, h, func(c *Config) { c.MaxSessions = 1 })
			w.wire().closed()
			w.works(1)
		},
		"port_events_per_second": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "port_events_per_second: 100000")
			c := w.joined(9)
			change(t, h, func(c *Config) { c.PortEventsPerSecond = 1 })
			var b []byte
			for i := range 100 {
				desc := portDesc(1, i%2 == 1)
				b, _ = v13.AppendPortStatus(b, 0, openflow.PortModified, &desc)
			}
			c.send(b, nil)
			w.eventually("most are held back", func() bool { return h.Metric("port_events_held_total") > 50 })
		},
		"flood_rate": func(t *testing.T, h *wefttest.Harness) {
			w := flooded(t, h, "flood_rate: 0", flow.TableForward)
			change(t, h, func(c *Config) { c.FloodRate = 2000 })
			w.eventually("the flood is limited", func() bool { return len(limits(h)) == 1 })
			change(t, h, func(c *Config) { c.FloodRate = 0 })
			w.eventually("nothing is limited", func() bool { return len(limits(h)) == 0 })
		},
		"flood_factor": func(t *testing.T, h *wefttest.Harness) {
			w := flooded(t, h, "flood_rate: 1000\nflood_floor: 10\nflood_meters: false\nflood_factor: 1000000", 0)
			time.Sleep(300 * time.Millisecond)
			if l := limits(h); len(l) != 0 {
				t.Fatalf("limited: %v", l)
			}
			change(t, h, func(c *Config) { c.FloodFactor = 2 })
			w.eventually("the flood is limited", func() bool { return len(limits(h)) == 1 })
		},
		"flood_floor": func(t *testing.T, h *wefttest.Harness) {
			w := flooded(t, h, "flood_rate: 5000\nflood_floor: 5000\nflood_meters: false\nflood_factor: 2", 0)
			w.eventually("limited to the floor", func() bool { l := limits(h); return len(l) == 1 && l[0].Limit >= 5000 })
			change(t, h, func(c *Config) { c.FloodFloor = 100 })
			w.eventually("limited to less", func() bool { l := limits(h); return len(l) == 1 && l[0].Limit < 5000 && l[0].Limit > 0 })
		},
		"flood_meters": func(t *testing.T, h *wefttest.Harness) {
			w := flooded(t, h, "flood_rate: 2000\nflood_meters: false", flow.TableForward)
			w.eventually("limited by the controller", func() bool { l := limits(h); return len(l) == 1 && l[0].Where == "controller" })
			change(t, h, func(c *Config) { c.FloodMeters = true })
			w.eventually("limited by the switch", func() bool { l := limits(h); return len(l) == 1 && l[0].Where == "switch" })
		},
		"switches": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "switches: [1]\nelsewhere: {west: [2]}")
			w.dial(oftest.NewDevice(oftest.Config{DPID: 1}, nil))
			w.up(1)
			w.wire().refused(2)
			change(t, h, func(c *Config) { c.Switches, c.Elsewhere = []string{"1-2"}, map[string][]string{"west": {"3"}} })
			w.device(oftest.Config{DPID: 2})
			w.works(1)
		},
		"elsewhere": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "elsewhere: {west: [2]}")
			w.wire().refused(2)
			change(t, h, func(c *Config) { c.Elsewhere = nil })
			w.device(oftest.Config{DPID: 2})
		},
		"hold_others": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "switches: [1]\nelsewhere: {west: [2]}")
			w.wire().refused(2)
			change(t, h, func(c *Config) { c.HoldOthers = true })
			w.dial(oftest.NewDevice(oftest.Config{DPID: 2}, nil))
			w.eventually("the session is held", func() bool { return h.Metric("switches_standing_by") == 1 })
		},
		"standbys": func(t *testing.T, h *wefttest.Harness) {
			w := newWorld(t, h, "")
			w.device(oftest.Config{DPID: 1})
			before := h.Metric("lease_renewals_total")
			change(t, h, func(c *Config) { c.Standbys = 1 })
			w.eventually("the lease is renewed", func() bool { return h.Metric("lease_renewals_total") > before+2 })
			w.works(1)
			change(t, h, func(c *Config) { c.Standbys = 0 })
			w.works(1)
		},
		"standby":     leaseSays(change, func(c *Config) { c.Standbys, c.Standby = 1, 1 }, func(l mastership.Tenure) bool { return l.Lasts > 0 }),
		"instance":    leaseSays(change, func(c *Config) { c.Standbys, c.Instance = 1, "here" }, func(l mastership.Tenure) bool { return l.Holder == "here" }),
		"lease_time":  leaseSays(change, func(c *Config) { c.Standbys, c.LeaseTime = 1, 700*time.Millisecond }, func(l mastership.Tenure) bool { return l.Lasts == 700 }),
		"lease_renew": leaseSays(change, func(c *Config) { c.Standbys, c.LeaseRenew = 1, 20*time.Millisecond }, func(l mastership.Tenure) bool { return l.Lasts > 0 }),
		"probe_rate": func(t *testing.T, h *wefttest.Harness) {
			var seen atomic.Int64
			h.Stage(func(*flow.PacketIn, *flow.Decision) flow.Verdict { seen.Add(1); return flow.Done })
			w := newWorld(t, h, "")
			c := w.joined(1)
			probe := packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: flow.MAC{2, 0, 0, 0, 0, 1}}, packet.LLDPFields{
				ChassisSubtype: packet.ChassisLocal, ChassisID: []byte("1"), PortSubtype: packet.PortLocal, PortID: []byte("1"), TTL: 1})
			in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: uint16(len(probe)), Data: probe, Key: flow.Key{InPort: 1}}
			send := func() {
				t.Helper()
				var b []byte
				for range 100 {
					b, _ = v13.AppendPacketIn(b, 0, &in)
				}
				c.send(b, nil)
			}
			send()
			w.eventually("all are seen", func() bool { return seen.Load() == 100 })
			change(t, h, func(c *Config) { c.ProbeRate = 10 })
			w.eventually("few are seen", func() bool {
				before := seen.Load()
				send()
				time.Sleep(150 * time.Millisecond)
				return seen.Load()-before < 50
			})
		},
	})
}

// leaseSays is the test that a change of the configuration is in the lease.
func leaseSays(change func(*testing.T, *wefttest.Harness, func(*Config)), f func(*Config), says func(mastership.Tenure) bool) func(*testing.T, *wefttest.Harness) {
	return func(t *testing.T, h *wefttest.Harness) {
		w := newWorld(t, h, "")
		change(t, h, f)
		bucket := h.Bucket("mastership")
		w.eventually("the lease says so", func() bool {
			value, _, _ := bucket.Get(t.Context(), leaseKey)
			l, err := mastership.ReadTenure(value)
			return err == nil && says(l)
		})
	}
}
