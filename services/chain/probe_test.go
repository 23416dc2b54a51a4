package chain

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A patient is a function at two switches whose ports are up, and how it does.
type patient struct {
	*network
	copy         copyOf
	alive        [2]atomic.Bool // by direction
	control, own atomic.Int64   // ns that the control channel and the function take
	stop         context.CancelFunc
}

func newPatient(t *testing.T) *patient {
	x := &patient{network: newNetwork(t, rand.New(rand.NewPCG(1, 2)), 3)}
	x.copy = copyOf{flow.Location{Switch: dpid(1), Port: 200}, flow.Location{Switch: dpid(2), Port: 201}}
	x.port(x.copy.in, true)
	x.port(x.copy.out, true)
	x.set(&api.ServiceChain{
		Name: "c", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.1"},
		Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: api.NewLocation(x.copy.in), Out: api.NewLocation(x.copy.out)}}}},
	})
	x.lives(true, true)
	x.begins()
	return x
}

func (x *patient) port(at flow.Location, up bool) {
	x.feed(&api.PortChanged{Port: &api.Port{Dpid: at.Switch.String(), Port: uint32(at.Port), Up: up}})
}

func (x *patient) lives(there, back bool) {
	x.alive[forward].Store(there)
	x.alive[1].Store(back)
}

// begins begins to probe.
func (x *patient) begins() {
	ctx, stop := context.WithCancel(x.t.Context())
	x.stop = stop
	b := x.b
	go b.probes.keep(ctx, func() bool { return false })
	go b.probes.run(ctx, func(_ context.Context, d *flow.Decision) error {
		for _, op := range d.Ops {
			x.deliver(b, op.Switch, d.Outs[op.Index])
		}
		return nil
	})
}

// deliver has the switch and the function do with a frame what they do.
func (x *patient) deliver(b *store, sw flow.DPID, o flow.PacketOut) {
	at := flow.Location{Switch: sw, Port: flow.Port(o.Actions[0].Arg)}
	to := forward
	if at == x.copy.out {
		to = 1
	}
	came, after := flow.Location{Switch: at.Switch, Port: o.InPort}, x.control.Load()
	if at.Port != flow.PortController {
		if !x.alive[to].Load() {
			return
		}
		came, after = x.copy.enters(1-to), after+x.own.Load()
	}
	data := slices.Clone(o.Data)
	time.AfterFunc(time.Duration(after), func() { x.takes(b, came, data) })
}

func (x *patient) takes(b *store, at flow.Location, data []byte) {
	b.probes.returned(&api.ProbeReturned{At: api.NewLocation(at), Data: data})
}

// is waits until all that can happen in a time has, and checks what is known.
func (x *patient) is(after time.Duration, alive bool, by string) {
	x.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	list := x.b.chains.List()
	m := x.b.message(list[0])
	if c := m.Functions[0].Copies[0]; c.Alive != alive || c.By != by || c.Since == "" {
		x.t.Errorf("after %v: alive %v by %s since %q, want %v by %s", after, c.Alive, c.By, c.Since, alive, by)
	}
	if (m.State == "up") != alive {
		x.t.Errorf("the chain is %s: %s", m.State, m.Reason)
	}
}

// since returns since when the copy is as it is.
func (x *patient) since() time.Time {
	x.t.Helper()
	at, err := time.Parse(time.RFC3339, x.b.message(x.b.chains.List()[0]).Functions[0].Copies[0].Since)
	if err != nil {
		x.t.Fatal(err)
	}
	return at
}

// TestProbes: a function that is dead behind ports that are up is found, in either
// direction, and is used again when it sends on again; also over a restart.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newPatient(t)
		x.is(2*time.Second, true, "probe")
		for _, dead := range [][2]bool{{false, false}, {false, true}, {true, false}} {
			x.lives(dead[0], dead[1])
			x.is(260*time.Millisecond, false, "probe")
			x.is(time.Minute, false, "probe")
			x.lives(true, true)
			x.is(260*time.Millisecond, true, "probe")
		}
		x.own.Store(int64(70 * time.Millisecond)) // slow, but none is lost
		x.is(time.Minute, true, "probe")
		x.own.Store(0)

		x.port(x.copy.in, false)
		x.is(0, false, "port")
		x.lives(false, false) // it begins anew and forwards nothing yet
		x.port(x.copy.in, true)
		x.is(time.Second, false, "probe")
		x.lives(true, true)
		x.is(260*time.Millisecond, true, "probe")

		x.lives(false, false)
		x.is(time.Second, false, "probe")
		x.restart()
		x.is(0, false, "probe")
		x.is(time.Second, false, "probe")
		x.lives(true, true)
		x.is(260*time.Millisecond, true, "probe")
		if _, err := x.b.chains.Delete(t.Context(), &api.ServiceChain{Name: "c"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for range x.b.probes.kept.All() {
			t.Error("something is kept of a copy of no chain")
		}
		x.stop()
	})
}

// restart has another store go on with what the former one has kept.
func (x *patient) restart() {
	x.stop()
	synctest.Wait()
	old := x.b.net
	x.begin()
	x.b.mu.Lock()
	x.b.net = old
	x.b.mu.Unlock()
	x.begins()
}

// TestProbesSayNothing: a function that sends on no probe is judged by its ports. A control
// channel that is slow or away makes no function dead. A forged probe is ignored.
func TestProbesSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newPatient(t)
		x.lives(false, false)
		x.is(time.Minute, true, "port")
		up := x.since()
		x.port(x.copy.out, false)
		x.is(2*time.Second, false, "port")
		if down := x.since(); down.Sub(up) < time.Minute {
			t.Errorf("alive since %v, dead since %v", up, down)
		}
		x.port(x.copy.out, true)
		x.lives(true, true)
		x.is(2*time.Second, true, "probe")
		x.control.Store(int64(3 * time.Second))
		x.is(time.Minute, true, "probe")
		x.control.Store(int64(time.Hour)) // nothing comes back
		x.is(time.Minute, true, "probe")
		x.control.Store(0)
		x.is(time.Second, true, "probe")

		x.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: x.copy.in.Switch.String(), Openflow: "1.3", Tables: 254}})
		x.lives(false, false) // of a switch that is away nothing is known
		x.is(time.Minute, true, "probe")
		x.stop()

		d := &flow.Decision{}
		x.b.mu.Lock()
		other := newProber(&x.b.mu, x.b.cfg, x.b.probed(), nil, nil)
		other.round = 1 << 20
		l := x.b.probes.laneOf(x.copy)
		l.ways[forward].first = 1
		was := l.ways
		other.out(d, x.copy.in.Switch, flow.PortController, x.copy.in.Port, throughFunction, forward, l.id, other.round)
		x.b.mu.Unlock()
		for n := range d.Outs[0].Data {
			x.takes(x.b, x.copy.out, d.Outs[0].Data[:n])
		}
		x.takes(x.b, x.copy.out, d.Outs[0].Data)
		if l.ways != was {
			t.Errorf("a forged probe is taken: %v", l.ways)
		}
	})
}

// TestPing: a ping has the probes counted that come through, with the time that the
// function takes, without that of the control channel.
func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newPatient(t)
		defer x.stop()
		x.control.Store(int64(7 * time.Millisecond))
		x.own.Store(int64(3 * time.Millisecond))
		send := func(_ context.Context, d *flow.Decision) error {
			for _, op := range d.Ops {
				x.deliver(x.b, op.Switch, d.Outs[op.Index])
			}
			return nil
		}
		ask := func(q *api.PingChainRequest) *api.PingChainResponse {
			t.Helper()
			resp, err := x.b.pingChain(t.Context(), q, send)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		began := time.Now()
		for _, w := range ask(&api.PingChainRequest{Name: "c", Count: 3}).Ways {
			if w.Sent != 3 || w.Received != 3 || w.ControlUs != 7000 || !slices.Equal(w.DelaysUs, []uint32{3000, 3000, 3000}) || w.In.Flow() == w.Out.Flow() {
				t.Errorf("%v", w)
			}
		}
		if took := time.Since(began); took != 210*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		x.lives(false, true)
		for i, w := range ask(&api.PingChainRequest{Name: "c"}).Ways {
			if want := uint32(5 * i); w.Sent != 5 || w.Received != want || w.Back != (i == 1) {
				t.Errorf("forward it is dead: %v", w)
			}
		}
		if len(x.b.probes.pings) > 0 {
			t.Error("pings that have ended are remembered")
		}
		for want, q := range map[string]*api.PingChainRequest{"there is no chain": {Name: "d"}, "count: 101": {Name: "c", Count: 101}, "interval: 1µs": {Name: "c", IntervalUs: 1}} {
			if _, err := x.b.pingChain(t.Context(), q, send); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", q, err)
			}
		}
	})
}
