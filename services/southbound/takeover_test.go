package southbound

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// TestNeverTwoMasters: processes are killed, stopped and woken, cut off from the
// store, and race for the mastership. No switch ever takes a write of an epoch
// lower than one that it has seen, and in the end one process is master of all.
func TestNeverTwoMasters(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			neverTwoMasters(t, seed)
		})
	}
}

func neverTwoMasters(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	switches := []flow.DPID{1, 2, 3}
	ledger := &sharedLedger{}
	var processes []*process
	for i, name := range []string{"first", "standby", "standby-2"} {
		p := &process{name: name, address: filepath.Join(dir, name), ledger: ledger}
		processes = append(processes, p)
		p.begin(t, i, switches)
	}
	over, stop := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	var judges []*judge
	for _, sw := range switches {
		j := &judge{t: t, dpid: sw, conns: map[*judged]bool{}}
		judges = append(judges, j)
		for _, p := range processes {
			connections.Go(func() { j.connect(over, p.address) })
		}
	}
	defer connections.Wait()
	defer stop()
	restart := func(i int) { // what the supervisor does for a process that ended by itself
		select {
		case <-processes[i].ended:
			processes[i].begin(t, i, switches)
		default:
		}
	}
	one := func() string {
		from := ""
		for _, j := range judges {
			n, at := j.masters()
			if n != 1 || from != "" && at != from {
				return ""
			}
			from = at
		}
		return from
	}
	began := time.Now()
	for n := 0; n < 10 || len(writesOf(judges).epochs) < 3; n++ {
		if time.Since(began) > testwait.Limit {
			t.Fatalf("fewer than three masters in %d faults", n)
		}
		i := r.IntN(len(processes))
		for k, p := range processes { // rather the master
			if p.mastership.Fence.Open() && r.IntN(3) > 0 {
				i = k
			}
		}
		p := processes[i]
		ledger.mu.Lock()
		lease := max(240, ledger.t.Lasts) // longer once the store has been slow
		ledger.mu.Unlock()
		lasting := time.Duration(r.Float64() * 2 * float64(lease) * float64(time.Millisecond))
		switch r.IntN(5) {
		case 0:
			p.kill()
			if r.IntN(2) == 0 {
				_ = backoff.Sleep(over, lasting)
			}
			p.begin(t, i, switches)
		case 1:
			p.sleep()
			_ = backoff.Sleep(over, lasting)
			p.wakeUp()
		case 2:
			p.set(func() { p.cut = true })
			_ = backoff.Sleep(over, lasting)
			p.set(func() { p.cut = false })
		case 3:
			p.set(func() { p.late = time.Duration(r.IntN(150)) * time.Millisecond })
			_ = backoff.Sleep(over, lasting)
			p.set(func() { p.late = 0 })
		case 4: // all of them race for what nobody holds
			for _, p := range processes {
				p.sleep()
			}
			_ = backoff.Sleep(over, lasting)
			for _, p := range processes {
				p.wakeUp()
			}
		}
		_ = backoff.Sleep(over, time.Duration(r.IntN(300))*time.Millisecond)
		for i := range processes {
			restart(i)
		}
	}
	end := time.Now().Add(testwait.Limit)
	for settled := 0; settled < 10; _ = backoff.Sleep(over, 20*time.Millisecond) { // it stays so
		for i := range processes {
			restart(i)
		}
		if settled++; one() == "" {
			settled = 0
		}
		if time.Now().After(end) {
			t.Fatal("the switches do not come to have one master, the same for all")
		}
	}
	holders := 0
	for _, p := range processes {
		if p.mastership.Fence.Open() {
			holders++
			if p.address != one() {
				t.Errorf("%s has the lease, and %s the switches", p.name, one())
			}
		}
	}
	if holders != 1 {
		t.Errorf("in the end %d processes hold the mastership", holders)
	}
	w := writesOf(judges)
	if w.taken < 100 {
		t.Errorf("%d writes: the test has shown nothing", w.taken)
	}
	t.Logf("%d writes of %d masters taken, %d of former ones refused", w.taken, len(w.epochs), w.refused)
	for _, p := range processes {
		p.cancel()
		<-p.ended
	}
}

// writes counts what switches took and refused.
type writes struct {
	taken, refused int
	epochs         map[uint64]bool // whose writes were taken
}

func writesOf(judges []*judge) writes {
	sum := writes{epochs: map[uint64]bool{}}
	for _, j := range judges {
		j.mu.Lock()
		for _, w := range j.writes {
			if w.taken {
				sum.taken++
				sum.epochs[w.epoch] = true
			} else {
				sum.refused++
			}
		}
		j.mu.Unlock()
	}
	return sum
}

// TestStoreAway: a master with a standby that cannot renew its lease stops
// programming when that ends, though nobody else is master; when it can again, it
// goes on under the same epoch, and has what the switches have looked at. One
// without a standby goes on all the time.
func TestStoreAway(t *testing.T) {
	for _, standbys := range []int{0, 1} {
		t.Run(fmt.Sprint(standbys), func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "sb")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			over, stop := context.WithCancel(context.Background())
			var connections sync.WaitGroup
			defer connections.Wait()
			defer stop()
			p := &process{name: "only", address: filepath.Join(dir, "only"), ledger: &sharedLedger{}}
			p.configure = func(c *Config) { c.Standbys = standbys }
			var told atomic.Int64
			var begins sync.Map // of the sessions that are told of
			p.changed = func(e *api.SwitchChanged) {
				begins.Store(e.Switch.Since, true)
				told.Add(1)
			}
			p.begin(t, 0, []flow.DPID{1})
			j := &judge{t: t, dpid: 1, conns: map[*judged]bool{}}
			connections.Go(func() { j.connect(over, p.address) })
			until := func(what string, so func() bool) {
				t.Helper()
				for end := time.Now().Add(testwait.Limit); !so(); _ = backoff.Sleep(over, 2*time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("it does not come to be that %s", what)
					}
				}
			}
			written := func() int {
				j.mu.Lock()
				defer j.mu.Unlock()
				return len(j.writes)
			}
			until("the switch is programmed", func() bool { return written() > 5 })
			epoch := j.highestWrite()
			p.set(func() { p.cut = true })
			if standbys == 0 {
				_ = backoff.Sleep(over, 400*time.Millisecond)
				n := written()
				until("the switch is programmed without the store", func() bool { return written() > n+5 })
			} else {
				until("the lease ends", func() bool { return !p.mastership.Fence.Open() })
				_ = backoff.Sleep(over, 20*time.Millisecond) // what was on its way arrives
				n := written()
				_ = backoff.Sleep(over, 200*time.Millisecond)
				if got := written(); got != n || p.hub.Session(1) == nil {
					t.Errorf("%d writes without a lease, session %v", got-n, p.hub.Session(1))
				}
				before := told.Load()
				p.set(func() { p.cut = false })
				until("the switch is programmed again", func() bool { return written() > n+5 })
				until("it is told of again", func() bool { return told.Load() > before })
				sessions := 0
				begins.Range(func(any, any) bool { sessions++; return true })
				if sessions < 2 { // flowrules takes no notice of a session that it knows
					t.Error("it is told of again as of the session before")
				}
			}
			if got := j.highestWrite(); got != epoch {
				t.Errorf("epoch %d after %d, though nobody else was master", got, epoch)
			}
			p.cancel()
			<-p.ended
		})
	}
}

// TestMove: a plan gives a switch to another partition, whose epochs are lower
// than those that the switch has seen. The new owner becomes its master over the
// session that it holds, under a higher one, and the former lets go of it then.
func TestMove(t *testing.T) {
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	over, stop := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	j := &judge{t: t, dpid: 1, conns: map[*judged]bool{}}
	lists := func(own string, other string) admission.Partition {
		c := &Config{Switches: []string{own}, Elsewhere: map[string][]string{"other": {other}}}
		p, err := c.partition()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var sides []*process
	for i, name := range []string{"east", "west"} {
		p := &process{name: name, address: filepath.Join(dir, name), ledger: &sharedLedger{}}
		if i == 0 {
			p.ledger.t, p.ledger.rev = mastership.Tenure{Epoch: 9_000_000_000, Released: true}, 1
		}
		p.configure = func(c *Config) {
			c.HoldOthers = true
			c.Switches, c.Elsewhere = []string{fmt.Sprint(1 + i)}, map[string][]string{"other": {fmt.Sprint(2 - i)}}
		}
		sides = append(sides, p)
		p.begin(t, 0, []flow.DPID{1})
		connections.Go(func() { j.connect(over, p.address) })
	}
	east, west := sides[0], sides[1]
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(testwait.Limit); !so(); _ = backoff.Sleep(over, 2*time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it does not come to be that %s", what)
			}
		}
	}
	ownedBy := func(p *process) func() bool {
		return func() bool {
			n, from := j.masters()
			return n == 1 && from == p.address
		}
	}
	until("east is master, and west holds the switch ready", func() bool { return ownedBy(east)() && east.hub.Session(1) != nil && west.hub.countStandby() == 1 })
	west.hub.repartition(lists("1-2", "3"), time.Now())
	east.hub.repartition(lists("3", "1-2"), time.Now())
	if east.hub.Session(1) == nil {
		t.Error("the former owner lets go before the new one is master")
	}
	until("west is master", ownedBy(west))
	until("west programs it", func() bool { return west.hub.Session(1) != nil })
	until("east lets go of it, and holds it ready", func() bool { return east.hub.Session(1) == nil && east.hub.countStandby() == 1 })
	until("west's writes are of a higher epoch", func() bool { return j.highestWrite() > 9_000_000_001 })
	for _, p := range sides {
		p.cancel()
		<-p.ended
	}
}
