package southbound

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// TestEveryPacketInIsCounted: while two processes take the mastership over from each other,
// because one stands still, cannot reach the store then, or is restarted after it has
// ended itself, each packet-in that one of them has read is answered by a packet-out, or counted:
// as a packet-out that was not sent, by reason, or as lost. Nothing is counted twice, and no
// count goes with its process.
func TestEveryPacketInIsCounted(t *testing.T) {
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	over, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	ledger := &sharedLedger{}
	j := &judge{t: t, dpid: 1, conns: map[*judged]bool{}}
	var processes []*process
	for i, name := range []string{"first", "standby"} {
		p := &process{name: name, address: filepath.Join(dir, name), ledger: ledger, answers: true, memory: make([]byte, recovery.Size)}
		p.configure = func(c *Config) { c.QueueBytes = 1 << 20 }
		processes = append(processes, p)
		p.begin(t, i, []flow.DPID{1})
		work.Go(func() { j.connect(over, p.address) })
	}
	quiet, hush := context.WithCancel(over)
	work.Go(func() {
		for quiet.Err() == nil {
			j.send(8)
			_ = backoff.Sleep(quiet, time.Millisecond)
		}
	})
	ended := 0
	restart := func() { // as the supervisor does
		for i, p := range processes {
			select {
			case <-p.ended:
				ended++
				p.begin(t, i, []flow.DPID{1})
			default:
			}
		}
	}
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(testwait.Limit); !so(); _ = backoff.Sleep(over, 2*time.Millisecond) {
			restart()
			if time.Now().After(end) {
				t.Fatalf("it does not come to be that %s", what)
			}
		}
	}
	answered := func() int {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.outs
	}
	for round := range 6 {
		master := ""
		until("one is master and answers", func() bool {
			n, from := j.masters()
			master = from
			return n == 1
		})
		n := answered()
		until("packet-ins are answered", func() bool { return answered() > n+50 })
		p := processes[0]
		if p.address != master {
			p = processes[1]
		}
		p.set(func() { p.cut = round%2 == 0 })
		p.sleep()
		until("the other is master", func() bool { _, from := j.masters(); return from != master && from != "" })
		p.wakeUp()
		_ = backoff.Sleep(over, 100*time.Millisecond)
		p.set(func() { p.cut = false })
	}
	hush()
	_ = backoff.Sleep(over, 50*time.Millisecond)
	for _, p := range processes {
		p.cancel()
		<-p.ended
	}
	stop()
	work.Wait() // all that was sent to the switch has come
	count := map[string]int{}
	for _, p := range processes {
		tally, _ := recovery.Open(p.memory, time.Now())
		tally.Register(func(name, _ string, read func() float64, _ ...string) { count[name] += int(read()) })
	}
	read, lost, shed := count["packet_ins_read_total"], count["packet_ins_lost_total"], count["packet_outs_shed_total"]
	t.Logf("%d read: %d answered, %d not sent, %d lost; %d processes ended themselves", read, answered(), shed, lost, ended)
	if read != answered()+shed+lost || read < 300 {
		t.Errorf("%d packet-ins read, %d answered, %d not sent, %d lost", read, answered(), shed, lost)
	}
}
