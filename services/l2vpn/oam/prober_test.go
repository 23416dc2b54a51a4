package oam

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

const (
	ms     = int64(time.Millisecond)
	second = int64(time.Second)
)

var key = bytes.Repeat([]byte{7}, 32)

// world is switches that carry probes, in a time of its own.
type world struct {
	p       *Prober
	r       *rand.Rand
	now     int64
	control map[flow.DPID]int64                             // from the controller to a switch
	away    map[flow.DPID]bool                              // the switch has no connection
	way     func(o flow.PacketOut) (flow.DPID, int64, bool) // where a frame goes, how long it takes; false: it is lost
	coming  arrivals
	sent    map[int64]int // by the second
}

type arrival struct {
	at    int64
	sw    flow.DPID
	frame []byte
}

type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
}

func newWorld(seed uint64, cfg Config) *world {
	return &world{p: NewProber(cfg, key), r: rand.New(rand.NewPCG(seed, 1)), now: second, control: map[flow.DPID]int64{},
		away: map[flow.DPID]bool{}, sent: map[int64]int{}}
}

// carry has the switches carry out a decision.
func (w *world) carry(d *flow.Decision) {
	for _, op := range d.Ops {
		o := d.Outs[op.Index]
		w.sent[w.now/second]++
		if w.away[op.Switch] {
			continue
		}
		to, took, ok := op.Switch, int64(0), true
		if o.Actions[0].Kind == flow.ActionGroup {
			to, took, ok = w.way(o)
		}
		if ok && !w.away[to] {
			heap.Push(&w.coming, arrival{w.now + w.control[op.Switch] + took + w.control[to], to, bytes.Clone(o.Data)})
		}
	}
}

// run lets time pass.
func (w *world) run(lasting int64) {
	for end := w.now + lasting; w.now < end; w.now += 5 * ms {
		var d flow.Decision
		w.p.Due(w.now, &d)
		w.carry(&d)
		w.arrive(w.now + 5*ms)
	}
}

func (w *world) arrive(until int64) {
	for len(w.coming) > 0 && w.coming[0].at <= until {
		a := heap.Pop(&w.coming).(arrival)
		in := flow.PacketIn{Switch: a.sw, Data: a.frame}
		packet.Parse(a.frame, &in.Key)
		if !w.p.Packet(a.at, &in) {
			panic("a probe is not taken for one")
		}
	}
}

// TestMeasures: delay, jitter and loss are those of the circuit, without the
// times to the switches and back.
func TestMeasures(t *testing.T) {
	w := newWorld(1, Config{Rate: 1000, Interval: 100 * ms, Timeout: second})
	w.control[1], w.control[2] = 700_000, 2_300_000
	n := 0
	w.way = func(flow.PacketOut) (flow.DPID, int64, bool) {
		n++
		return 2, 10*ms + int64(n%2)*ms, n%10 != 0
	}
	id := w.p.Add(Lane{From: 1, To: 2, Group: 5, Label: 300000, Out: 1})
	w.run(20 * second)
	m, ok := w.p.Measure(w.now, id, 100)
	if !ok || m.Sent < 90 || m.Lost < m.Sent/10-1 || m.Lost > m.Sent/10+1 {
		t.Errorf("%+v", m)
	}
	if m.P50 != 10000 && m.P50 != 11000 || m.P99 != 11000 || m.Max != 11000 || m.Jitter < 800 || m.Jitter > 1000 {
		t.Errorf("%+v, want delays of 10 and 11 ms by turns", m)
	}
	if c := w.p.Control(2); c != 4_600_000 {
		t.Errorf("%d ns to switch 2 and back", c)
	}
}

// TestRate: all probes together keep to the rate, evenly, however many lanes there
// are, and each lane has its share.
func TestRate(t *testing.T) {
	for _, lanes := range []int{1, 50, 3000} {
		w := newWorld(2, Config{Rate: 1000, Interval: 200 * ms, Timeout: second})
		each := map[uint32]int{}
		w.way = func(o flow.PacketOut) (flow.DPID, int64, bool) {
			each[o.Actions[0].Arg]++
			return 2, ms, true
		}
		for i := range lanes {
			w.p.Add(Lane{From: 1, To: 2, Group: uint32(i + 1), Label: 300000, Out: 1})
		}
		w.run(20 * second)
		for s, n := range w.sent {
			if n > 1000+int(1000*burst) {
				t.Errorf("%d lanes: %d probes in second %d", lanes, n, s)
			}
		}
		if every := w.p.Every(); every != max(200*ms, int64(lanes+2)*ms) {
			t.Errorf("%d lanes: a probe each %v", lanes, time.Duration(every))
		}
		want := int(20 * second / w.p.Every())
		for i := range lanes {
			if n := each[uint32(i+1)]; n < want-2 || n > want+2 {
				t.Fatalf("%d lanes: lane %d has %d probes, want %d", lanes, i, n, want)
			}
		}
	}
}

// TestNoVerdict: probes that a switch without connection was sent, or should
// have returned, are no loss of the circuit.
func TestNoVerdict(t *testing.T) {
	w := newWorld(3, Config{Rate: 1000, Interval: 100 * ms, Timeout: second})
	w.way = func(flow.PacketOut) (flow.DPID, int64, bool) { return 2, ms, true }
	id := w.p.Add(Lane{From: 1, To: 2, Group: 5, Label: 300000, Out: 1})
	w.run(5 * second)
	w.away[2] = true
	w.run(10 * second)
	if m, _ := w.p.Measure(w.now, id, 100); m.Lost != 0 {
		t.Errorf("a switch that does not answer: %+v", m)
	}
	w.away[2] = false
	w.way = func(flow.PacketOut) (flow.DPID, int64, bool) { return 0, 0, false }
	w.run(10 * second)
	if m, _ := w.p.Measure(w.now, id, 80); m.Loss < 0.99 {
		t.Errorf("a circuit that loses all: %+v", m)
	}
}

// TestForged: nothing that somebody else makes, repeats, or sends to another
// place counts.
func TestForged(t *testing.T) {
	w := newWorld(4, Config{Rate: 1000, Interval: 100 * ms, Timeout: second})
	var kept []byte
	w.way = func(o flow.PacketOut) (flow.DPID, int64, bool) {
		kept = bytes.Clone(o.Data)
		return 2, ms, true
	}
	id := w.p.Add(Lane{From: 1, To: 2, Group: 5, Label: 300000, Out: 1})
	w.run(3 * second)
	was, _ := w.p.Measure(w.now, id, Window)
	give := func(sw flow.DPID, frame []byte) bool {
		in := flow.PacketIn{Switch: sw, Data: frame}
		packet.Parse(frame, &in.Key)
		return w.p.Packet(w.now, &in)
	}
	give(2, kept) // a second time
	give(3, kept) // at another switch
	for i := range kept {
		for bit := range 8 {
			forged := bytes.Clone(kept)
			forged[i] ^= 1 << bit
			give(2, forged)
		}
	}
	for n := range kept {
		give(2, kept[:n])
	}
	other := newSigner(bytes.Repeat([]byte{8}, 32))
	if !give(2, other.appendFrame(nil, 300000, probe{kindWay, id, 9999, w.now}, FrameMin)) {
		t.Error("a probe with another signature is passed on")
	}
	is, _ := w.p.Measure(w.now, id, Window)
	if is != was {
		t.Errorf("%+v became %+v", was, is)
	}
	if c := w.p.Counts(); c.Forged < 100 || c.Late < 2 {
		t.Errorf("%+v", c)
	}
	if give(2, kept[:12]) {
		t.Error("a frame of another kind is taken for a probe")
	}
}

// TestPing: pings have their own numbers, lengths and answers.
func TestPing(t *testing.T) {
	w := newWorld(5, Config{Rate: 1000, Interval: 100 * ms, Timeout: second})
	w.control[2] = ms
	longest := 1550
	w.way = func(o flow.PacketOut) (flow.DPID, int64, bool) { return 2, 3 * ms, len(o.Data) <= longest }
	id := w.p.Add(Lane{From: 1, To: 2, Group: 5, Label: 300000, Out: 1})
	w.run(3 * second)
	for length, back := range map[int]bool{FrameMin: true, 1550: true, 1551: false} {
		g := w.p.NewPing(id, 3)
		for i := range 3 {
			var d flow.Decision
			w.p.Send(w.now, &d, g, i, length)
			if got := len(d.Outs[0].Data); got != length {
				t.Errorf("a frame of %d octets, want %d", got, length)
			}
			w.carry(&d)
			w.run(50 * ms)
		}
		select {
		case <-g.Done():
			if !back {
				t.Errorf("frames of %d octets come back", length)
			}
		default:
			if back {
				t.Errorf("frames of %d octets do not come back", length)
			}
		}
		for _, d := range w.p.End(g) {
			if back && d != 3*ms || !back && d != -1 {
				t.Errorf("%d octets: %d ns", length, d)
			}
		}
	}
	g := w.p.NewPing(id, 1)
	w.p.Remove(id)
	<-g.Done()
	if w.p.NewPing(id, 1) != nil {
		t.Error("a lane that is gone is pinged")
	}
}

// TestChanges: lanes come and go while probes are under way.
func TestChanges(t *testing.T) {
	w := newWorld(6, Config{Rate: 1000, Interval: 20 * ms, Timeout: 200 * ms})
	w.way = func(o flow.PacketOut) (flow.DPID, int64, bool) {
		return flow.DPID(o.Actions[0].Arg % 10), ms * int64(w.r.IntN(300)), w.r.IntN(5) > 0
	}
	var ids []uint32
	for range 2000 {
		switch {
		case len(ids) == 0 || w.r.IntN(2) == 0:
			to := 1 + w.r.IntN(9)
			ids = append(ids, w.p.Add(Lane{From: flow.DPID(1 + w.r.IntN(9)), To: flow.DPID(to), Group: uint32(10*w.r.IntN(100) + to), Label: 300000}))
		case w.r.IntN(20) == 0:
			w.p.Away(flow.DPID(1 + w.r.IntN(9)))
		default:
			i := w.r.IntN(len(ids))
			w.p.Remove(ids[i])
			w.p.Remove(ids[i]) // it is gone
			ids[i] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
		}
		w.run(10 * ms)
	}
	for _, id := range ids {
		if _, ok := w.p.Measure(w.now, id, Window); !ok {
			t.Errorf("lane %d is not there", id)
		}
		w.p.Remove(id)
	}
	if len(w.p.turns) != 0 || len(w.p.round) != 0 || len(w.p.order) != 0 {
		t.Errorf("left over: %d switches, %d lanes", len(w.p.round), len(w.p.order))
	}
}

// BenchmarkProbe is one probe sent and taken back: of 10,000 lanes.
func BenchmarkProbe(b *testing.B) {
	p := NewProber(Config{Rate: 1_000_000_000, Interval: 1, Timeout: second}, key)
	for i := range 10_000 {
		p.Add(Lane{From: flow.DPID(1 + i%50), To: flow.DPID(1 + (i+1)%50), Group: 1, Label: 300000, Out: 1})
	}
	b.ReportAllocs()
	var d flow.Decision
	now, left := second, 0
	p.Due(now, &d)
	for b.Loop() {
		if left == 0 {
			now += 1000
			d.Reset()
			p.owed = 0
			p.Due(now, &d)
			left = len(d.Outs)
		}
		left--
		o := &d.Outs[left]
		in := flow.PacketIn{Switch: d.Ops[left].Switch, Data: o.Data}
		if o.Actions[0].Kind == flow.ActionGroup {
			in.Switch = in.Switch%50 + 1
		}
		in.Key.EthType = flow.EthTypeMPLS
		if !p.Packet(now+ms, &in) {
			b.Fatal("no probe")
		}
	}
	b.ReportMetric(float64(p.Counts().Returned)/float64(max(1, p.Counts().Sent)), "returned")
}
