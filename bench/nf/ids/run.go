package ids

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Config is a function and where it stands.
type Config struct {
	A, B     string // interfaces
	Rules    []Rule
	OneByOne bool   // see NewInspector
	Alerts   string // a file; empty: alerts are counted alone
	Sync     bool   // an alert is on the disk before the frame goes on
	Ready    func() // called once it passes frames on; may be nil
}

// Stands begins what weft nf ids says then.
const Stands = "passing on what comes"

// Report is what a function did. Times are in milliseconds.
type Report struct {
	Rules   int     `json:"rules"`
	Seconds float64 `json:"seconds"`
	Packets uint64  `json:"packets"`
	Alerts  uint64  `json:"alerts"`
	// Dropped frames came while the ring was full; refused ones were longer than
	// the other interface takes, or than the ring.
	Dropped uint64 `json:"dropped"`
	Refused uint64 `json:"refused"`

	// Service is the time of a packet from when it is looked at to when it is sent, waiting
	// for the disk included, and Idle its part without a processor.
	Service    float64 `json:"service_ms"`
	ServiceSCV float64 `json:"service_scv"` // squared coefficient of variation
	Idle       float64 `json:"idle_ms"`
	Alert      float64 `json:"alert_ms"` // a write

	CPU float64 `json:"cpu_ms"` // processor time for a packet
	// Switches are those of contexts, for a packet: because it waited, and because
	// others took its processor.
	Switches struct {
		Voluntary   float64 `json:"voluntary"`
		Involuntary float64 `json:"involuntary"`
	} `json:"switches"`
}

// function is one that runs.
type function struct {
	inspector *Inspector
	alerts    *alerts
	ports     [2]*port
	cut       uint64

	packets      uint64
	sum, squares float64              // of services, in seconds
	batch        [burst]time.Duration // services of frames that are queued, but for sending them
}

// Run stands between two interfaces of this process's namespace until ctx ends.
func Run(ctx context.Context, cfg Config) (r Report, err error) {
	if len(cfg.Rules) == 0 {
		return r, fmt.Errorf("no rules: give at least one")
	}
	if cfg.A == cfg.B {
		return r, fmt.Errorf("interface %s twice: want two", cfg.A)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := &function{inspector: NewInspector(cfg.Rules, cfg.OneByOne)}
	if f.alerts, err = openAlerts(cfg.Alerts, cfg.Sync); err != nil {
		return r, err
	}
	defer f.alerts.close()
	for i, name := range []string{cfg.A, cfg.B} {
		if f.ports[i], err = openPort(name); err != nil {
			return r, err
		}
		defer f.ports[i].close()
	}
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &before) // fails for bad arguments alone
	began := time.Now()
	if cfg.Ready != nil {
		cfg.Ready()
	}
	if err := f.loop(ctx); err != nil {
		return r, err
	}
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
	r = f.report(time.Since(began), &before, &after)
	r.Rules = len(cfg.Rules)
	return r, nil
}

// wake is how often a function that has nothing to do looks whether it is to end.
const wake = 100 // ms

func (f *function) loop(ctx context.Context) error {
	waiting := []unix.PollFd{{Fd: int32(f.ports[0].fd), Events: unix.POLLIN}, {Fd: int32(f.ports[1].fd), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		none := true
		for i := range f.ports {
			n, err := f.pass(f.ports[i], f.ports[1-i])
			if err != nil {
				return err
			}
			none = none && n == 0
		}
		if none {
			if _, err := unix.Poll(waiting, wake); err != nil && err != unix.EINTR {
				return fmt.Errorf("wait for packets: %w", err)
			}
		}
	}
	return nil
}

// soon is how long a frame may wait for others to be sent with it.
const soon = 50 * time.Microsecond

// pass passes on what has come at a port, at most a burst.
func (f *function) pass(from, to *port) (taken int, err error) {
	held := 0 // taken and not given back yet
	flush := func() error {
		begin := monotonic()
		n := to.queued
		if err := to.flush(); err != nil {
			return err
		}
		each := (monotonic() - begin) / time.Duration(max(n, 1))
		for _, d := range f.batch[:n] {
			s := (d + each).Seconds()
			f.sum += s
			f.squares += s * s
		}
		f.packets += uint64(n)
		from.release(held)
		held = 0
		return nil
	}
	first := monotonic()
	at := first
	for ; taken < burst; taken++ {
		frame, ok := from.peek(held)
		if !ok {
			break
		}
		held++
		if frame == nil {
			f.cut++
			continue
		}
		found := f.inspector.Inspect(frame)
		if len(found) > 0 && to.queued > 0 && f.alerts.fd >= 0 { // what is ready does not wait for the disk
			held--
			if err := flush(); err != nil {
				return taken, err
			}
			held++
		}
		for _, n := range found {
			if err := f.alerts.write(&f.inspector.rules[n], &f.inspector.d); err != nil {
				return taken, err
			}
		}
		now := monotonic()
		f.batch[to.queued] = now - at
		at = now
		to.queue(frame)
		if now-first > soon {
			if err := flush(); err != nil {
				return taken, err
			}
			at = monotonic()
			first = at
		}
	}
	if held > 0 {
		err = flush()
	}
	return taken, err
}

func (f *function) report(took time.Duration, before, after *unix.Rusage) (r Report) {
	r.Seconds, r.Packets, r.Alerts = took.Seconds(), f.packets, f.alerts.count
	r.Dropped = f.ports[0].dropped() + f.ports[1].dropped()
	r.Refused = f.cut + f.ports[0].refused + f.ports[1].refused
	if f.packets == 0 {
		return r
	}
	n := float64(f.packets)
	mean := f.sum / n
	r.Service, r.ServiceSCV = mean*1e3, math.Max(0, f.squares/n/mean/mean-1)
	r.Idle = (f.alerts.wall - f.alerts.cpu).Seconds() * 1e3 / n
	if f.alerts.count > 0 {
		r.Alert = f.alerts.wall.Seconds() * 1e3 / float64(f.alerts.count)
	}
	cpu := func(u *unix.Rusage) int64 { return u.Utime.Nano() + u.Stime.Nano() }
	r.CPU = float64(cpu(after)-cpu(before)) / 1e6 / n
	r.Switches.Voluntary = float64(after.Nvcsw-before.Nvcsw) / n
	r.Switches.Involuntary = float64(after.Nivcsw-before.Nivcsw) / n
	return r
}

// monotonic reads the clock, without that of the day, which time.Now reads, too.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // that clock there is
	return time.Duration(t.Nano())
}
