package southbound

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// TestMasterWithoutStore has a master and a standby, in processes as they are,
// without a store for seconds: the master's fence never closes, and nobody else
// becomes master. When the master alone is cut off, the standby takes over.
func TestMasterWithoutStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ledger := &sharedLedger{}
	var mu sync.Mutex // guards processes
	processes := map[string]*process{}
	other := map[string]string{"first": "standby", "standby": "first"}
	for i, name := range []string{"first", "standby"} {
		p := &process{name: name, address: dir + "/" + name, ledger: ledger}
		p.adapt = func(m *mastership.Mastership) {
			m.Others = func() []string { return []string{other[name]} }
			m.Ask = func(_ context.Context, to string, question []byte) ([]byte, error) {
				mu.Lock()
				q := processes[to]
				mu.Unlock()
				return q.mastership.Asked(question), nil
			}
		}
		p.configure = func(c *Config) { c.LeaseTime = 1500 * time.Millisecond } // a busy machine runs nothing for that of others
		p.begin(t, i, nil)
		mu.Lock()
		processes[name] = p
		mu.Unlock()
		if i == 0 {
			testwait.Until(t, "the first is master", func() bool { return p.mastership.Fence.Open() })
		}
	}
	first, standby := processes["first"], processes["standby"]
	testwait.Until(t, "the lease names the standby", func() bool {
		ledger.mu.Lock()
		defer ledger.mu.Unlock()
		return len(ledger.t.Others) == 1
	})
	testwait.Until(t, "the standby knows of the master", func() bool {
		standby.mastership.Mu.Lock()
		defer standby.mastership.Mu.Unlock()
		return standby.mastership.Lease.Known
	})
	cut := func(is bool, list ...*process) {
		for _, p := range list {
			p.set(func() { p.cut = is })
		}
	}
	cut(true, first, standby)
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if standby.mastership.Fence.Open() {
			t.Fatal("the standby takes over without a store")
		}
	}
	if !first.mastership.Fence.Open() {
		t.Error("the mastership has ended while nobody could take it")
	}
	if n := first.mastership.Pledges.Load(); n == 0 {
		t.Error("nobody has promised anything")
	}
	cut(false, first, standby)
	renewals := first.mastership.Renewals.Load()
	testwait.Until(t, "the lease is renewed again", func() bool { return first.mastership.Renewals.Load() > renewals })
	cut(true, first)
	testwait.Until(t, "the standby has taken over from a master that is cut off", func() bool {
		a, b := first.mastership.Fence.Open(), standby.mastership.Fence.Open()
		if a && b && first.mastership.Fence.Open() {
			t.Error("two masters")
		}
		return b
	})
	for _, p := range processes {
		p.cancel()
		<-p.ended
	}
}

// TestDeposedWithoutLease: a master that is cut off from the store, whose switch
// has the standby as its master, does not say that the switch is gone: the standby
// speaks for it.
func TestDeposedWithoutLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ledger := &sharedLedger{}
	over, stop := context.WithCancel(t.Context())
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	var gone atomic.Value // why, says the first
	gone.Store("")
	first := &process{name: "first", address: dir + "/first", ledger: ledger}
	first.changed = func(e *api.SwitchChanged) {
		if !e.Switch.Connected {
			gone.Store(e.Switch.Reason)
		}
	}
	standby := &process{name: "standby", address: dir + "/standby", ledger: ledger}
	j := &judge{t: t, dpid: 1, conns: map[*judged]bool{}}
	for i, p := range []*process{first, standby} {
		p.begin(t, i, []flow.DPID{1})
		connections.Go(func() { j.connect(over, p.address) })
		if i == 0 {
			testwait.Until(t, "the first is master", func() bool { return p.mastership.Fence.Open() && p.hub.Session(1) != nil })
		}
	}
	testwait.Until(t, "the switch stands by at the standby", func() bool {
		standby.hub.mu.Lock()
		defer standby.hub.mu.Unlock()
		return len(standby.hub.standby) == 1
	})
	first.set(func() { first.cut = true })
	ledger.mu.Lock()
	ledger.t.Epoch += 2 * contestNear // a nearer one the first would outbid
	ledger.mu.Unlock()
	testwait.Until(t, "the standby has the switch", func() bool { return standby.hub.Session(1) != nil })
	_ = backoff.Sleep(over, time.Second) // the first asks the switch for its role thrice
	if why := gone.Load(); why != "" {
		t.Errorf("the first says that the switch is gone: %v", why)
	}
	for _, p := range []*process{first, standby} {
		p.cancel()
		<-p.ended
	}
}
