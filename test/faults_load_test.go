package test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/test/testbed"
)

// The load under which everything happens.
const (
	loadRate  = 2000 // packet-ins per second
	loadHosts = 260  // 67,340 pairs, each a flow: half a minute's worth
	loadPorts = 8
	loadDPID  = 0x5eed
)

// load is a simulated switch that sends packet-ins of new flows until it is
// ended.
type load struct {
	d      *deployment
	source *testbed.Source
	before map[string]float64
	cancel context.CancelFunc
	sent   chan error
}

// connect connects a simulated switch and lets its hosts speak.
func (d *deployment) connect() *testbed.Source {
	d.t.Helper()
	return d.connectTo(d.openflow)
}

func (d *deployment) connectTo(address string) *testbed.Source {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	roles := api.NewDiscoveryClient(d.conn)
	edges := func() int {
		n := 0
		ports, err := roles.ListPortRoles(ctx, &api.ListPortRolesRequest{})
		for _, p := range ports.GetPorts() {
			if p.Role == "edge" && p.At.GetDpid() == flow.DPID(loadDPID).String() {
				n++
			}
		}
		if err != nil {
			return -1
		}
		return n
	}
	eventually(d.t, "no simulated switch before it", func() bool { return edges() == 0 })
	s, err := d.source(ctx, testbed.SourceConfig{Address: address, DPID: loadDPID, Hosts: loadHosts, Ports: loadPorts, Seed: 1})
	if err != nil {
		d.t.Fatalf("%v\n%s", err, d.logs())
	}
	d.t.Cleanup(s.Close)
	eventually(d.t, "the ports of the simulated switch settled", func() bool { return edges() == loadPorts })
	if err := s.Announce(ctx, 400); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// load begins to send, over a source that is connected.
func (d *deployment) load(s *testbed.Source) *load {
	d.t.Helper()
	l := &load{d: d, source: s, sent: make(chan error, 1), before: d.allFigures()}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	d.t.Cleanup(cancel)
	go func() { l.sent <- s.Send(ctx, s.Flows(), loadRate) }()
	return l
}

// account is what has become of the messages of a load.
type account struct {
	messages                         []testbed.Message
	answered, shed, lost, duplicates int
	reasons                          string
}

// end stops sending, waits for answers, and fails the test if a message is
// neither answered nor counted as shed.
func (l *load) end() account {
	l.d.t.Helper()
	a, err := l.account()
	if err != nil {
		l.d.t.Errorf("load: %v", err)
	}
	if a.lost > 0 {
		l.d.t.Errorf("%d of %d packet-ins lost, %s: %d answered, %d shed %s\n%s", a.lost, len(a.messages), a.unanswered(), a.answered, a.shed, a.reasons, l.d.logs())
	}
	return a
}

// unanswered says when the messages without an answer were sent.
func (a *account) unanswered() string {
	var list []time.Duration
	for _, m := range a.messages {
		if m.Answered.IsZero() {
			list = append(list, m.Due.Sub(a.messages[0].Due))
		}
	}
	if len(list) == 0 {
		return "none unanswered"
	}
	return fmt.Sprintf("%d unanswered, sent from %v to %v after the first", len(list), list[0], list[len(list)-1])
}

func (l *load) account() (a account, err error) {
	l.cancel()
	if err := <-l.sent; !errors.Is(err, context.Canceled) {
		return a, fmt.Errorf("it ended by itself: %w", err)
	}
	if err := l.source.Settle(context.Background(), 12*time.Second); err != nil {
		return a, err
	}
	a.messages, a.duplicates = l.source.Messages()
	for _, m := range a.messages {
		if !m.Answered.IsZero() {
			a.answered++
		}
	}
	a.shed, a.reasons = shed(l.before, l.d.allFigures())
	a.shed = min(a.shed, len(a.messages)-a.answered) // others than ours may have been shed, too
	a.lost = len(a.messages) - a.answered - a.shed
	l.source.Forget()
	return a, nil
}

// shed returns how many packets have been shed between two readings, and why. A
// counter that went back was that of a process that has ended.
func shed(before, after map[string]float64) (n int, reasons string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !strings.Contains(name, "_shed_total{") {
			continue
		}
		d := after[name] - before[name]
		if d < 0 {
			d = after[name]
		}
		if d > 0 {
			n += int(d)
			reasons += fmt.Sprintf(" %s: %v", name, d)
		}
	}
	return n, reasons
}

// longest is the longest delay of an answer.
func (a account) longest() (d time.Duration) {
	for _, m := range a.messages {
		if !m.Answered.IsZero() {
			d = max(d, m.Delay())
		}
	}
	return d
}

// An answer is late after lateAfter; all is well when none has been for calm.
const (
	lateAfter = 100 * time.Millisecond
	calm      = 200 * time.Millisecond
)

// recovery is how long after a restart the last late answer came before the
// first time of calm.
func (a account) recovery(fault, restart time.Time) time.Duration {
	well, began := restart, time.Time{}
	for _, m := range a.messages {
		switch {
		case m.Answered.IsZero() || m.Answered.Before(fault):
		case m.Delay() > lateAfter:
			began = time.Time{}
			if m.Answered.After(well) {
				well = m.Answered
			}
		case began.IsZero():
			began = m.Due
		case m.Due.After(restart) && m.Due.Sub(began) >= calm:
			return max(0, well.Sub(restart))
		}
	}
	return max(0, well.Sub(restart))
}

// established is a stream over an established route, and the flow entries of
// the switches, neither of which is to notice anything.
type established struct {
	d      *deployment
	lab    *lab.Lab
	cancel context.CancelFunc
	result chan traffic.PingResult
	before map[string]float64
	began  time.Time
}

// establish begins the stream.
func (d *deployment) establish(l *lab.Lab) *established {
	d.t.Helper()
	d.whole(l) // a controller that got no time may have lost links meanwhile, and found them again
	pingAll(d.t, l, false)
	time.Sleep(time.Second) // so that the age of an entry tells
	e := &established{d: d, lab: l, result: make(chan traffic.PingResult, 1), before: entries(d.t, l), began: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	d.t.Cleanup(cancel)
	go func() { // streams of a second, one after the other
		var sum traffic.PingResult
		for ctx.Err() == nil {
			r, err := l.Ping(context.WithoutCancel(ctx), "h1", "h3", traffic.PingOptions{Count: 200, Interval: 5 * time.Millisecond, Timeout: patience})
			if err != nil {
				r.Error = err.Error()
			}
			sum.Sent, sum.Received, sum.Outage = sum.Sent+r.Sent, sum.Received+r.Received, max(sum.Outage, r.Outage)
			if r.Error != "" {
				sum.Error = r.Error
				break
			}
		}
		e.result <- sum
	}()
	return e
}

// undisturbed ends the stream, which must have lost nothing, and looks at the
// entries, which must be as old as they were and the time that has passed.
func (e *established) undisturbed(t *testing.T) {
	t.Helper()
	e.cancel()
	if r := <-e.result; r.Lost() > 0 || r.Error != "" || r.Sent == 0 {
		t.Errorf("established flow disturbed: %d of %d lost, outage %.0f ms %s", r.Lost(), r.Sent, r.Outage, r.Error)
	}
	passed := time.Since(e.began).Seconds() // however long it takes to look at them, they are older
	after := entries(t, e.lab)
	for entry, age := range e.before {
		if now, ok := after[entry]; !ok {
			t.Errorf("gone: %s", entry)
		} else if now < age+passed-0.5 {
			t.Errorf("rewritten: %s: %.1f s old, was %.1f s %.1f s ago", entry, now, age, passed)
		}
	}
	for entry := range after {
		if _, ok := e.before[entry]; !ok {
			t.Errorf("new: %s", entry)
		}
	}
}
