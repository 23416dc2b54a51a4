package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// kind is what an order asks for.
type kind int

const (
	want  kind = iota // let it run so
	end               // end it
	leave             // let it be
)

type order struct {
	kind    kind
	process Process // of want
	done    chan error
}

// child is one process over all its runs. One goroutine, keep, owns it.
type child struct {
	name   string
	s      *Supervisor
	orders chan order
	gone   chan struct{} // closed when keep has returned

	status Status // guarded by Supervisor.mu
	record record // likewise

	// What follows is keep's alone.
	wanted  *Process // nil until the first Set
	run     *run     // nil if it does not run
	died    bool     // the next start is a restart
	applied bool     // this supervisor has applied the limits of wanted
	delays  restarts
}

// keep carries out orders and restarts a process that ends, until end or leave.
func (c *child) keep(adopted *run) {
	defer close(c.gone)
	if adopted != nil {
		c.run = adopted
		c.watch()
	}
	var retry <-chan time.Time
	housekeeping := time.NewTicker(time.Second)
	defer housekeeping.Stop()
	for {
		var ended <-chan ending
		var probes <-chan verdict
		if c.run != nil {
			ended, probes = c.run.ended, c.run.probes
		}
		select {
		case o := <-c.orders:
			switch o.kind {
			case leave:
				if c.run != nil {
					c.run.close()
				}
				o.done <- nil
				return
			case end:
				err := c.stop()
				if err == nil {
					c.s.remove(c)
				}
				o.done <- err
				if err == nil {
					return
				}
			case want:
				waiting := retry
				retry = nil
				o.done <- c.want(o.process, waiting != nil, &retry)
				if c.run == nil && retry == nil {
					retry = waiting
				}
			}
		case e := <-ended:
			retry = c.over(e)
		case v := <-probes:
			c.handleVerdict(v)
		case <-retry:
			retry = nil
			if err := c.start(); err != nil {
				retry = c.backOff(0)
			}
		case <-housekeeping.C:
			if err := c.s.logFile(c.name).rotate(); err != nil {
				c.s.log.Error("the log was not rotated", "process", c.name, "error", err)
			}
		}
	}
}

// want makes the process run as p says. If it is down and its start is
// scheduled, an unchanged p has no effect.
func (c *child) want(p Process, waiting bool, retry *<-chan time.Time) error {
	same := c.record.Hash == p.hash()
	limits := c.wanted == nil || c.wanted.limits() != p.limits()
	c.wanted = &p
	switch {
	case c.run != nil && same:
		if limits || !c.applied {
			c.applyLimits()
		}
		return nil
	case c.run != nil:
		c.s.log.Info("it is to run otherwise: starting it again", "process", c.name)
		if err := c.stop(); err != nil {
			return err
		}
		c.died = false
	case waiting && same:
		return nil
	}
	c.delays.failures = 0
	if err := c.start(); err != nil {
		*retry = c.backOff(0)
		return fmt.Errorf("supervisor: start %s: %w; it will be tried again", c.name, err)
	}
	return nil
}

// start starts a run.
func (c *child) start() error {
	p, nonce := *c.wanted, newNonce()
	var un []Unapplied
	var g *group
	if p.limits().grouped() {
		g, un = c.s.rights.limitGroup(nil, c.s.groupName(c.name, nonce), p.limits())
	}
	// The file records a run before it starts: if we end in between, the next
	// supervisor looks for the mark.
	c.s.change(c, func(s *Status, r *record) {
		if c.died {
			s.Restarts++
		}
		s.State = Starting
		*r = record{Name: c.name, Nonce: nonce, Hash: p.hash(), Restarts: s.Restarts, Group: g}
	})
	c.died = true
	id, pidfd, more, err := c.spawn(p, nonce, g)
	for _, u := range more {
		un = merge(un, u)
	}
	if err != nil {
		c.s.log.Error("the process was not started", "process", c.name, "error", err)
		if g != nil {
			_ = c.s.rights.removeGroup(g)
		}
		c.s.change(c, func(s *Status, r *record) {
			s.LastExit = &Exit{Time: time.Now(), Code: -1, Text: "it could not be started: " + err.Error()}
			r.Nonce, r.Group = "", nil
		})
		return err
	}
	for _, u := range un {
		c.s.log.Warn("a limit could not be applied", "process", c.name, "limit", u.Limit, "reason", u.Reason)
	}
	c.s.log.Info("started", "process", c.name, "pid", id.pid)
	c.run = newRun(id, pidfd, g)
	c.applied = true
	c.s.change(c, func(s *Status, r *record) {
		s.PID, s.Started, s.Adopted, s.Unapplied = id.pid, time.Now(), false, un
		r.PID, r.Started, r.Since = id.pid, id.started, s.Started
		if c.s.config.Probe == nil {
			s.State = Up
		}
	})
	c.watch()
	return nil
}

// watch starts to probe the run, if there is a probe.
func (c *child) watch() {
	if c.s.config.Probe == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.run.cancel = cancel
	go c.s.probe(ctx, c.name, c.run.identity, c.run.probes)
}

// handleVerdict handles a verdict of the probes.
func (c *child) handleVerdict(v verdict) {
	if v.alive {
		c.s.change(c, func(s *Status, _ *record) { s.State = Up })
		return
	}
	c.s.log.Error("the process does not answer and is killed", "process", c.name, "pid", c.run.pid, "reason", v.why)
	c.s.change(c, func(s *Status, _ *record) { s.State = Unresponsive })
	c.run.why = "unresponsive, " + v.why
	if err := c.run.signal(unix.SIGKILL); err != nil {
		c.s.log.Error("the process was not killed", "process", c.name, "pid", c.run.pid, "error", err)
	}
}

// over records that the run has ended, and returns when to start the next; nil
// before the first Set.
func (c *child) over(e ending) <-chan time.Time {
	ran := time.Since(c.run.begun)
	c.died = true
	file := c.s.logFile(c.name)
	if e.Code > 0 {
		e.LastWords = file.lastLine()
	}
	c.finish(&e)
	about := []any{"process", c.name, "pid", e.PID, "reason", e.Text, "after", ran.Round(time.Millisecond)}
	if e.Code > 0 {
		about = append(about, "last_words", e.LastWords, "log", file.path)
	}
	c.s.log.Warn("a process has ended", about...)
	if c.wanted == nil {
		c.s.change(c, func(s *Status, _ *record) { s.State = Stopped })
		return nil
	}
	return c.backOff(ran)
}

// backOff returns when to start again after a run of some length.
func (c *child) backOff(ran time.Duration) <-chan time.Time {
	delay := c.delays.after(ran)
	if delay > 0 {
		c.s.change(c, func(s *Status, _ *record) { s.State = BackingOff })
	}
	return time.After(delay)
}

// finish cleans up after a run.
func (c *child) finish(e *ending) {
	switch g := c.run.group; {
	case c.run.why != "":
		e.Text += ": " + c.run.why
	case g != nil && (e.Signal == unix.SIGKILL || e.unknown) && g.countKills() > 0:
		e.Signal, e.OutOfMemory = unix.SIGKILL, true
		e.Text = "out of memory: the kernel killed it at its memory limit"
	}
	c.run.close()
	if c.run.group != nil {
		if err := c.s.rights.removeGroup(c.run.group); err != nil {
			c.s.log.Warn("left over", "process", c.name, "error", err)
		}
	}
	c.run, c.applied = nil, false
	c.s.change(c, func(s *Status, r *record) {
		s.PID, s.Started, s.Adopted, s.Unapplied, s.LastExit = 0, time.Time{}, false, nil, &e.Exit
		r.Nonce, r.PID, r.Started, r.Since, r.Group = "", 0, 0, time.Time{}, nil
	})
}

// stop ends the run, if there is one, and returns when it has ended.
func (c *child) stop() error {
	if c.run == nil {
		return nil
	}
	c.s.change(c, func(s *Status, _ *record) { s.State = Stopping })
	c.run.cancel()
	c.run.why = "stopped"
	// SIGCONT lets a stopped process handle the signal.
	if err := errors.Join(c.run.signal(unix.SIGTERM), c.run.signal(unix.SIGCONT)); err != nil {
		return fmt.Errorf("supervisor: stop %s, pid %d: %w", c.name, c.run.pid, err)
	}
	timer := time.NewTimer(c.s.config.StopTimeout)
	defer timer.Stop()
	var e ending
	select {
	case e = <-c.run.ended:
	case <-c.s.config.Hurry:
		c.run.why = "stopped without more time after SIGTERM"
	case <-timer.C:
		c.run.why = fmt.Sprintf("stopped, as it did not end within %v of SIGTERM", c.s.config.StopTimeout)
	}
	if e.PID == 0 {
		if err := c.run.signal(unix.SIGKILL); err != nil {
			return fmt.Errorf("supervisor: stop %s, pid %d: %w", c.name, c.run.pid, err)
		}
		e = <-c.run.ended
	}
	c.finish(&e)
	c.s.log.Info("ended", "process", c.name, "pid", e.PID, "reason", e.Text)
	c.s.change(c, func(s *Status, _ *record) { s.State = Stopped })
	return nil
}

// applyLimits applies what is wanted to the run.
func (c *child) applyLimits() {
	p := *c.wanted
	un, err := c.s.rights.all(c.run.identity, p.limits())
	if err != nil {
		return // it has just ended; the next run starts with the limits
	}
	un = append(un, c.limitGroup(p.limits())...)
	c.applied = true
	for _, u := range un {
		c.s.log.Warn("a limit could not be applied", "process", c.name, "limit", u.Limit, "reason", u.Reason)
	}
	c.s.change(c, func(s *Status, _ *record) { s.Unapplied = un })
}

// limitGroup changes the limits of the run that a cgroup holds it to.
func (c *child) limitGroup(l limits) []Unapplied {
	before := c.run.group
	if before == nil && !l.grouped() {
		return nil
	}
	g, un := c.s.rights.limitGroup(before, c.s.groupName(c.name, newNonce()), l)
	if g == nil || before != nil && *g == *before {
		return un
	}
	if err := c.s.rights.joinGroup(g, c.run.pid); err != nil {
		if before == nil {
			_ = c.s.rights.removeGroup(g)
		}
		return append(un, Unapplied{"cgroup", fmt.Sprintf("move the process into its cgroup: %v", err)})
	}
	c.run.group = g
	c.s.change(c, func(_ *Status, r *record) { r.Group = g })
	return un
}

// spawn starts the process, with its log.
func (c *child) spawn(p Process, nonce string, g *group) (identity, *os.File, []Unapplied, error) {
	log, err := c.s.logFile(c.name).open()
	if err != nil {
		return identity{}, nil, nil, err
	}
	defer log.Close()
	return c.s.spawn(p, nonce, g, log)
}
