package southbound

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/wefttest"
)

// flooder is a switch that the test plays, with a flood at port 1 and little at
// port 2, of frames of another type; what the controller sends is kept.
type flooder struct {
	*wire
	sent    [3]atomic.Int64 // by port
	stop    atomic.Bool
	quiet   atomic.Bool // port 1 sends nothing
	table   uint8
	other   uint16 // type of the frames at port 2
	refuses bool   // meters
	meters  chan flow.MeterMod
	flows   chan flow.Mod
	ended   chan bool
}

func flood(t *testing.T, w *world, table uint8, refuses bool) *flooder {
	return floodWith(t, w, &flooder{table: table, other: 0x801, refuses: refuses})
}

// floodWith begins the flood of a flooder that has no connection yet.
func floodWith(t *testing.T, w *world, f *flooder) *flooder {
	f.wire = w.joined(9)
	f.meters, f.flows, f.ended = make(chan flow.MeterMod, 100), make(chan flow.Mod, 1000), make(chan bool, 2)
	go f.send()
	go f.receive()
	t.Cleanup(func() {
		f.stop.Store(true)
		<-f.ended
		f.conn.Close()
		<-f.ended
	})
	return f
}

// send sends 20 packets each millisecond from port 1, and one from port 2.
func (f *flooder) send() {
	defer func() { f.ended <- true }()
	n := uint64(0)
	for !f.stop.Load() {
		var b []byte
		for i := range 21 {
			port := flow.Port(1)
			if i == 0 {
				port = 2
			} else if f.quiet.Load() {
				break
			}
			n++
			frame := make([]byte, 60)
			frame[0], frame[6], frame[12], frame[13] = 2, 2, 8, 1
			if port == 2 {
				binary.BigEndian.PutUint16(frame[12:], f.other)
			}
			binary.BigEndian.PutUint32(frame[8:], uint32(n))
			in := flow.PacketIn{BufferID: flow.BufferNone, TotalLen: 60, Data: frame, Table: f.table, Key: flow.Key{InPort: port}}
			b, _ = v13.AppendPacketIn(b, 0, &in)
			f.sent[port].Add(1)
		}
		if _, err := f.conn.Write(b); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (f *flooder) receive() {
	defer func() { f.ended <- true }()
	for {
		msg, err := f.read(testwait.Limit)
		if err != nil {
			return
		}
		switch h, _ := openflow.ParseHeader(msg); h.Type {
		case openflow.TypeMeterMod:
			var m flow.MeterMod
			if v13.DecodeMeterMod(msg, &m) == nil {
				f.meters <- m
			}
			if f.refuses {
				e := openflow.Error{Type: openflow.ErrMeterModFailed, Code: openflow.MeterModFailedOutOfMeters, Xid: h.Xid, Data: msg}
				_, _ = f.conn.Write(v13.AppendError(nil, h.Xid, &e))
			}
		case openflow.TypeFlowMod:
			var m flow.Mod
			if v13.DecodeFlowMod(msg, &m) == nil {
				f.flows <- m
			}
		}
	}
}

func next[T any](t *testing.T, c chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testwait.Limit):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// TestFloodIsLimited: a port that floods is limited and told of, a meter goes
// into its switch, what another port sends all reaches the stages, and when the
// flood is over the meter is removed and that is told, too.
func TestFloodIsLimited(t *testing.T) {
	t.Parallel()
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var seen [3]atomic.Int64
		h.Stage(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			seen[in.Key.InPort].Add(1)
			return flow.Done
		})
		w := newWorld(t, h, "")
		f := flood(t, w, flow.TableForward, false)
		e := wefttest.Await(h, api.FloodChangedEvent, func(e *api.FloodChanged) bool { return true })
		if l := e.Limit; e.Ended || l.Port != 1 || l.Class != "unicast" || l.Offered < 5000 {
			t.Errorf("told %v", e)
		}
		for _, want := range []flow.Command{flow.Delete, flow.Add} {
			if m := next(t, f.meters, "meter"); m.Command != want || m.Meter.ID != 0x10001 || want == flow.Add && (len(m.Meter.Bands) != 1 || m.Meter.Bands[0].Rate < 1250) {
				t.Errorf("meter %+v", m)
			}
		}
		m := next(t, f.flows, "flow-mod")
		if en := m.Entry; en.Table != flow.TableForward || en.Priority != 1 || en.HardTimeout != 10 || en.Meter != 0x10001 ||
			en.Match != (flow.Match{}.WithInPort(1)) || en.Cookie.Owner() != flow.OwnerGuard || len(en.Apply) != 1 || en.Apply[0] != flow.Output(flow.PortController) {
			t.Errorf("entry %+v", en)
		}
		w.eventually("the limit is listed", func() bool {
			r, err := wefttest.Call(h, api.ListLimits, &api.ListLimitsRequest{Dpid: "9"})
			return err == nil && len(r.Limits) == 1 && r.Limits[0].Where == "switch" && r.Limits[0].Shed > 0 && r.Shed["port unicast"] > 0
		})
		f.quiet.Store(true)
		wefttest.Await(h, api.FloodChangedEvent, func(e *api.FloodChanged) bool { return e.Ended && e.Limit.Port == 1 && e.Limit.Shed > 0 })
		if m := next(t, f.meters, "meter"); m.Command != flow.Delete || m.Meter.ID != 0x10001 {
			t.Errorf("meter %+v", m)
		}
		f.stop.Store(true)
		w.eventually("all of the other port's packets are seen", func() bool { return seen[2].Load() == f.sent[2].Load() })
		if r, err := wefttest.Call(h, api.ListLimits, &api.ListLimitsRequest{}); err != nil || len(r.Limits) != 0 {
			t.Errorf("%v, %v", r, err)
		}
		shed, sum := int64(h.Metric("shed_total", "reason", "port", "class", "unicast")), seen[1].Load()
		if all := f.sent[1].Load(); shed == 0 || sum+shed > all || sum+shed < all*99/100 {
			t.Errorf("%d sent, %d seen, %d counted as shed", all, sum, shed)
		}
	})
}

// TestFloodWithoutMeters: a switch that refuses meters, or whose packets come
// from another table than that of forwarding, has its floods shed on arrival.
func TestFloodWithoutMeters(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]uint8{"refused": flow.TableForward, "other table": 0} {
		t.Run(name, func(t *testing.T) {
			wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
				w := newWorld(t, h, "")
				f := flood(t, w, table, true)
				wefttest.Await(h, api.FloodChangedEvent, func(e *api.FloodChanged) bool { return true })
				w.eventually("it is shed on arrival", func() bool {
					r, err := wefttest.Call(h, api.ListLimits, &api.ListLimitsRequest{})
					return err == nil && len(r.Limits) == 1 && r.Limits[0].Where == "controller" && r.Limits[0].Shed > 5_000
				})
				if n := len(f.meters); name == "other table" && n != 0 || n > 2 {
					t.Errorf("%d meter-mods", n)
				}
				wefttest.None(h, api.SwitchErrorEvent, 10*time.Millisecond)
				f.stop.Store(true)
				f.conn.Close()
				wefttest.Await(h, api.FloodChangedEvent, func(e *api.FloodChanged) bool { return e.Ended })
			})
		})
	}
}

// TestFloodOfLearning: a customer that floods a circuit's learning with new addresses has the
// share of its port: it is shed on arrival, and the frames of other customers are all learnt from.
func TestFloodOfLearning(t *testing.T) {
	t.Parallel()
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var seen [3]atomic.Int64
		h.Stage(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			seen[in.Key.InPort].Add(1)
			return flow.Done
		})
		w := newWorld(t, h, "")
		f := flood(t, w, flow.TableCircuits, false)
		wefttest.Await(h, api.FloodChangedEvent, func(e *api.FloodChanged) bool { return e.Limit.Port == 1 })
		w.eventually("it is shed", func() bool { return h.Metric("shed_total", "reason", "port", "class", "unicast") > 5_000 })
		f.stop.Store(true)
		w.eventually("all of the other port's packets are seen", func() bool { return seen[2].Load() == f.sent[2].Load() })
		if all := f.sent[1].Load(); seen[1].Load() > all-5_000 {
			t.Errorf("of %d packets of the port that floods %d are seen", all, seen[1].Load())
		}
	})
}

// TestFloodOff: 0 turns the limits off.
func TestFloodOff(t *testing.T) {
	t.Parallel()
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var seen atomic.Int64
		h.Stage(func(*flow.PacketIn, *flow.Decision) flow.Verdict { seen.Add(1); return flow.Done })
		w := newWorld(t, h, "flood_rate: 0")
		f := flood(t, w, flow.TableForward, false)
		w.eventually("20,000 packets are seen", func() bool { return seen.Load() > 20_000 })
		f.stop.Store(true)
		w.eventually("all are", func() bool { return seen.Load() == f.sent[1].Load()+f.sent[2].Load() })
	})
}

// TestLoneFloodPasses: all packets of the only port that sends reach the stages,
// beside links whose probes arrive.
func TestLoneFloodPasses(t *testing.T) {
	t.Parallel()
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var seen atomic.Int64
		h.Stage(func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
			seen.Add(1)
			return flow.Done
		})
		w := newWorld(t, h, "")
		f := floodWith(t, w, &flooder{table: flow.TableForward, other: flow.EthTypeLLDP})
		w.eventually("20,000 packets are seen", func() bool { return seen.Load() > 20_000 })
		f.stop.Store(true)
		w.eventually("all are", func() bool { return seen.Load() == f.sent[1].Load()+f.sent[2].Load() })
		wefttest.None(h, api.FloodChangedEvent, 10*time.Millisecond)
	})
}
