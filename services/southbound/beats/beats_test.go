package beats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
)

// device is a switch: it answers a request after a time, unless that is
// negative.
type device struct {
	*Beat
	mu    sync.Mutex // guards what follows
	xid   uint32
	sent  []time.Time
	after func(n int) time.Duration
	fail  error
}

func (d *device) NextXid() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.xid++
	return d.xid
}

func (d *device) SendBeat(msg []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	d.take(msg)
	return nil
}

// take takes a request; mu is held.
func (d *device) take(msg []byte) {
	xid := binary.BigEndian.Uint32(msg[len(msg)-4:])
	d.sent = append(d.sent, time.Now())
	if after := d.after(len(d.sent)); after >= 0 {
		time.AfterFunc(after, func() { d.Answered(xid, 0) })
	}
}

// trial is beats with devices, and what they report.
type trial struct {
	*Beats
	t       *testing.T
	devices []*device
	mu      sync.Mutex // guards events
	events  []*api.BeatChanged
}

func newTrial(t *testing.T) *trial { return &trial{Beats: New(), t: t} }

// add adds devices that answer after a millisecond.
func (b *trial) add(n int) {
	for range n {
		d := &device{after: func(int) time.Duration { return time.Millisecond }}
		d.Beat = b.Add(d, fmt.Sprint(len(b.devices)+1), make([]byte, 8))
		b.devices = append(b.devices, d)
	}
}

func (b *trial) give(o Order) {
	b.t.Helper()
	if err := b.Give(o); err != nil {
		b.t.Fatal(err)
	}
}

// during has the timer run for a time, and the order renewed.
func (b *trial) during(d time.Duration) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = b.Run(ctx) })
	running.Go(func() {
		_ = b.Report(ctx, func(e *api.BeatChanged) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, e)
		})
	})
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Second, time.Until(end)))
		if o := b.order.Load(); o != nil {
			b.give(*o)
		}
	}
	cancel()
	running.Wait()
	synctest.Wait()
}

// told returns the states that were reported of a switch.
func (b *trial) told(name string) (list []string) {
	for _, e := range b.events {
		if e.Dpid == name {
			list = append(list, e.State)
		}
	}
	return list
}

// each returns an order of beats per second.
func each(rate float64) Order {
	i := time.Duration(float64(time.Second) / rate)
	return Order{Interval: i, Deadline: i, LostAfter: 3}
}

// TestRates: each switch is asked as often as ordered, at equal distances, and
// the work is spread.
func TestRates(t *testing.T) {
	for _, rate := range []float64{1, 3, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			b := newTrial(t)
			b.give(each(rate))
			b.add(7)
			b.during(10 * time.Second)
			at := map[time.Time]int{}
			for i, d := range b.devices {
				if n := float64(len(d.sent)); n < 10*rate-1 || n > 10*rate+1 {
					t.Errorf("rate %v: asked %v times within 10 s", rate, n)
				}
				for i := range d.sent[1:] {
					if gap := d.sent[i+1].Sub(d.sent[i]) - b.order.Load().Interval; gap < -2 || gap > 2 {
						t.Fatalf("rate %v: %v too much between two beats", rate, gap)
					}
				}
				if s := d.Describe(); s.Missed != 0 || s.State != "alive" || s.P50Us < 999 || s.P50Us > 1065 || s.Beats < uint64(10*rate)-2 {
					t.Errorf("rate %v: switch %d: %v", rate, i, s)
				}
				at[d.sent[0]]++
			}
			if most := 7/len(b.wheel.slots) + 1; slices.ContainsFunc(b.devices, func(d *device) bool { return at[d.sent[0]] > most }) {
				t.Errorf("rate %v: %v at once", rate, at)
			}
		})
	}
}

// TestFewTimers: 2,560 switches are asked once a second each by few turns.
func TestFewTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.give(each(1))
		b.add(2560)
		b.during(3 * time.Second)
		at := map[time.Time]int{}
		for _, d := range b.devices {
			for _, s := range d.sent {
				at[s]++
			}
		}
		if len(at) > 3*slotsMost+1 {
			t.Errorf("%d turns within 3 s", len(at))
		}
	})
}

// TestStates: one miss makes a switch late, three in a row lost, an answer
// alive; each change is reported once, and others are not concerned.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.add(2)
		b.devices[0].after = func(n int) time.Duration {
			if n == 3 || n >= 11 && n < 16 {
				return -1
			}
			return time.Millisecond
		}
		b.give(Order{Interval: 100 * time.Millisecond, Deadline: 50 * time.Millisecond, LostAfter: 3})
		b.during(3 * time.Second)
		if told, want := b.told("1"), []string{"waiting", "alive", "late", "alive", "late", "lost", "alive"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if told := b.told("2"); !slices.Equal(told, []string{"waiting", "alive"}) {
			t.Errorf("of the other switch %q", told)
		}
		if s := b.devices[0].Describe(); s.Missed != 6 || s.MissedInRow != 0 {
			t.Errorf("%v", s)
		}
		b.Drop(b.devices[0].Beat, "closed")
		b.during(time.Second)
		if e := b.events[len(b.events)-1]; e.State != "away" || e.Reason != "closed" || len(b.devices[0].sent) > 31 {
			t.Errorf("%v, asked %d times", e, len(b.devices[0].sent))
		}
	})
}

// TestLate: answers after the deadline are missed beats, and measured.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.add(1)
		b.devices[0].after = func(int) time.Duration { return 37 * time.Millisecond }
		b.give(each(100))
		b.during(time.Second + time.Millisecond)
		if s := b.devices[0].Describe(); s.State != "lost" || s.Missed != s.Beats || s.Beats < 95 || s.LastUs != 37_000 {
			t.Errorf("%v", s)
		}
		if c := b.Counts(); c.Beats < 95 || c.Missed != c.Beats || c.Buckets[8].Count < 90 || c.Buckets[8].SumUs != 37_000*c.Buckets[8].Count {
			t.Errorf("%v", c)
		}
	})
}

// TestSkipped: beats that were due while the process did not run are missed, all
// of them, and no more is sent for them than can be answered in time.
func TestSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.add(5)
		b.give(each(100))
		b.during(time.Second)
		sent := len(b.devices[0].sent)
		time.Sleep(time.Second + 3*time.Millisecond) // nobody turns
		b.during(time.Second)
		for _, d := range b.devices {
			s := d.Describe()
			if s.Missed < 99 || s.Missed > 101 || s.Beats < 299 || s.Beats > 301 || s.State != "alive" {
				t.Errorf("%v", s)
			}
			if n := len(d.sent) - sent; n < 98 || n > 103 {
				t.Errorf("%d beats were sent in the second after", n)
			}
		}
		if !slices.Contains(b.told("1"), "lost") {
			t.Error("it was not lost meanwhile")
		}
	})
}

// TestUnsent: a beat that cannot be sent is missed, for that reason.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.add(1)
		b.devices[0].fail = errors.New("it does not read")
		b.give(each(10))
		b.during(time.Second)
		if e := b.events[len(b.events)-1]; e.State != "lost" || e.Reason != "it does not read" || e.MissedInRow < 3 {
			t.Errorf("%v", e)
		}
	})
}

// TestJoin: the next beat goes with what is written in the second half of an
// interval, once, and not again when it is due.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.give(each(10))
		b.add(1)
		d, joined := b.devices[0], 0
		ctx, cancel := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(3 * time.Millisecond)
				if msg := d.Join(make([]byte, 4), b.At(time.Now())); len(msg) > 4 {
					d.mu.Lock()
					d.take(msg)
					joined++
					d.mu.Unlock()
				}
			}
		})
		b.during(10 * time.Second)
		cancel()
		writing.Wait()
		if n := len(d.sent); n < 99 || n > 102 || joined < 95 {
			t.Errorf("%d beats, %d of them with what is written", n, joined)
		}
		if s := d.Describe(); s.Missed != 0 || s.MaxUs != 1000 {
			t.Errorf("%v", s)
		}
		for i := range d.sent[1:] {
			if gap := d.sent[i+1].Sub(d.sent[i]); gap < 40*time.Millisecond || gap > 150*time.Millisecond {
				t.Errorf("%v between two beats", gap)
			}
		}
	})
}

// TestOrders: another order counts at once, the same again changes nothing, what
// makes no sense is refused, and an order that is not given again ends.
func TestOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.add(3)
		d := b.devices[1]
		b.during(time.Second)
		if len(d.sent) != 0 || b.Ordered() || len(b.events) != 0 {
			t.Errorf("without an order: %d beats, %v", len(d.sent), b.events)
		}
		b.give(each(1))
		b.during(3 * time.Second)
		if n := len(d.sent); n < 3 || n > 4 {
			t.Errorf("%d beats in 3 s", n)
		}
		b.give(each(100))
		b.during(time.Second)
		if n := len(d.sent); n < 100 || n > 105 {
			t.Errorf("%d beats after another second", n)
		}
		for _, o := range []Order{{}, {time.Millisecond, time.Millisecond, 3}, {time.Hour, time.Second, 3}, {time.Second, 2 * time.Second, 3}, {time.Second, 0, 3}, {time.Second, time.Second, 0}} {
			if b.Give(o) == nil {
				t.Errorf("%+v is accepted", o)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_ = b.Run(ctx)
		cancel()
		if n := len(d.sent); n < 1050 || n > 1110 || b.Ordered() {
			t.Errorf("%d beats when it should have ended", n)
		}
		b.give(each(1))
		b.during(3 * time.Second)
		if s := d.Describe(); s.State != "alive" || len(d.sent) > 1115 {
			t.Errorf("given again: %v, %d beats", s, len(d.sent))
		}
	})
}

// TestHostile: answers that nobody has asked for, wrong ones, and all of them
// twice, count for nothing.
func TestHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTrial(t)
		b.give(each(100))
		b.add(2)
		mute, twice := b.devices[0], b.devices[1]
		mute.after = func(int) time.Duration { return -1 }
		twice.after = func(n int) time.Duration {
			xid := twice.xid
			time.AfterFunc(2*time.Millisecond, func() {
				if _, ok := twice.Answered(xid, 0); ok {
					t.Error("a second answer counts")
				}
			})
			return time.Millisecond
		}
		rng := rand.New(rand.NewPCG(1, 1))
		var lying sync.WaitGroup
		lying.Go(func() {
			for range 1000 {
				time.Sleep(time.Millisecond)
				mute.mu.Lock()
				next := mute.xid + 1 + rng.Uint32N(1000) // not sent yet
				mute.mu.Unlock()
				if _, ok := mute.Answered(next, 0); ok {
					t.Error("an answer to nothing counts")
				}
			}
		})
		b.during(time.Second)
		lying.Wait()
		if s := mute.Describe(); s.State != "lost" || s.Missed != s.Beats || s.LastUs != 0 {
			t.Errorf("%v", s)
		}
		if s := twice.Describe(); s.State != "alive" || s.Missed != 0 || s.Beats > 101 {
			t.Errorf("%v", s)
		}
	})
}

// TestNobody: without switches there is nothing to do before the order ends.
func TestNobody(t *testing.T) {
	b := newTrial(t)
	b.give(each(100))
	if b.next.Load() != b.until {
		t.Errorf("something to do at %d, the order ends at %d", b.next.Load(), b.until)
	}
	b.add(1)
	b.Drop(b.devices[0].Beat, "closed")
	if b.next.Load() != b.until {
		t.Errorf("after the last has gone: something to do at %d, the order ends at %d", b.next.Load(), b.until)
	}
}

// quiet is a peer that costs nothing.
type quiet struct{ xid uint32 }

func (q *quiet) NextXid() uint32       { q.xid++; return q.xid }
func (q *quiet) SendBeat([]byte) error { return nil }

// TestNoAllocations: a beat and its answer allocate nothing.
func TestNoAllocations(t *testing.T) {
	b := New()
	if err := b.Give(each(100)); err != nil {
		t.Fatal(err)
	}
	q := &quiet{}
	m := b.Add(q, "1", make([]byte, 8))
	at := b.sending.start
	if n := testing.AllocsPerRun(100, func() {
		at += b.wheel.interval
		b.runDue(at)
		m.Answered(q.xid, 0)
	}); n != 0 {
		t.Errorf("%v allocations for each beat", n)
	}
}

// BenchmarkTurn measures a beat and its answer without the connection.
func BenchmarkTurn(b *testing.B) {
	all := New()
	if err := all.Give(each(100)); err != nil {
		b.Fatal(err)
	}
	peers, members := make([]quiet, 320), make([]*Beat, 320)
	for i := range members {
		members[i] = all.Add(&peers[i], fmt.Sprint(i), make([]byte, 8))
	}
	b.ReportAllocs()
	all.until = never
	for at := all.sending.start; b.Loop(); {
		at += all.wheel.interval
		all.runDue(at)
		for i, m := range members {
			m.Answered(peers[i].xid, 0)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(members)), "ns/beat")
}
