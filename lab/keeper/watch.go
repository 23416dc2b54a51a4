package keeper

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// ProgramStatus is what became of a program of a host.
type ProgramStatus struct {
	Host    string           `json:"host"`
	Name    string           `json:"name"`
	Command string           `json:"command"`
	Restart topology.Restart `json:"restart"`
	State   ProgramState     `json:"state"`
	PID     int              `json:"pid,omitempty"`  // also of its process group
	Since   time.Time        `json:"since,omitzero"` // of State
	Starts  int              `json:"starts"`
	End     string           `json:"end,omitempty"` // how it last ended, or why it could not be started
	Log     string           `json:"log"`           // path
}

// ProgramState is what a program does.
type ProgramState string

const (
	ProgramStarting ProgramState = "starting" // for the first time
	ProgramRunning  ProgramState = "running"
	ProgramWaiting  ProgramState = "waiting"  // to be started again
	ProgramFinished ProgramState = "finished" // with exit status 0, for good
	ProgramFailed   ProgramState = "failed"   // for good
	ProgramUnknown  ProgramState = "unknown"  // the keeper does not answer
)

const (
	firstBackOff = 100 * time.Millisecond // before a program is started again, then twice that, …
	mostBackOff  = 10 * time.Second       // up to this; a program that ran for so long begins anew
)

// programs is all that a keeper watches.
type programs struct {
	wg sync.WaitGroup // of what watches each

	mu  sync.Mutex // guards all
	all []*watched
}

// start has the programs of a lab run, lets those that do already go on, and
// ends others. All are ended when ctx ends.
func (p *programs) start(ctx context.Context, s *layout.Lab) error {
	p.end(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	running := map[string]*watched{}
	for _, w := range p.all {
		running[w.identity()] = w
	}
	p.all = nil
	for _, w := range watchedOf(s) {
		if r := running[w.identity()]; r != nil {
			p.all = append(p.all, r)
			continue
		}
		if err := w.open(); err != nil {
			return err
		}
		inner, stop := context.WithCancel(ctx)
		w.stop = stop
		p.all = append(p.all, w)
		p.wg.Go(func() {
			defer close(w.ended)
			defer stop()
			w.run(inner)
		})
	}
	return nil
}

// end ends the programs that are not those of a lab.
func (p *programs) end(s *layout.Lab) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[string]bool{}
	for _, w := range watchedOf(s) {
		wanted[w.identity()] = true
	}
	var ending []*watched
	p.all = slices.DeleteFunc(slices.Clone(p.all), func(w *watched) bool {
		if wanted[w.identity()] {
			return false
		}
		w.stop()
		ending = append(ending, w)
		return true
	})
	for _, w := range ending {
		<-w.ended
	}
}

// watchedOf returns every program of the lab, not running yet.
func watchedOf(s *layout.Lab) (all []*watched) {
	for i := range s.Topology.Hosts {
		h := &s.Topology.Hosts[i]
		for j := range h.Run {
			all = append(all, &watched{state: s, host: h, program: &h.Run[j], ended: make(chan struct{})})
		}
	}
	return all
}

func (p *programs) status() []ProgramStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]ProgramStatus, len(p.all))
	for i, w := range p.all {
		w.mu.Lock()
		all[i] = w.status
		w.mu.Unlock()
	}
	return all
}

// watched is a program that is watched.
type watched struct {
	state   *layout.Lab
	host    *topology.Host
	program *topology.Program
	log     *programLog
	out     *os.File      // what the program writes to; log gets it
	stop    func()        // has run return
	ended   chan struct{} // once it has

	mu     sync.Mutex // guards status
	status ProgramStatus
}

func newStatus(s *layout.Lab, host string, p *topology.Program, is ProgramState) ProgramStatus {
	return ProgramStatus{Host: host, Name: p.Name, Command: p.Command, Restart: p.Restart, State: is, Log: s.LogFile(host, p.Name)}
}

// open makes what the program's log and status are kept in.
func (w *watched) open() (err error) {
	w.log, err = openLog(w.state.LogFile(w.host.Name, w.program.Name))
	w.status = newStatus(w.state, w.host.Name, w.program, ProgramStarting)
	return err
}

// identity is alike of two that need not be told apart: the same program, told
// the same, on the same CPUs.
func (w *watched) identity() string {
	p := w.program
	return fmt.Sprintf("%s %q %q %v %q %v %q", w.host.Name, p.Name, p.Command, p.Env, p.Restart, w.host.CPUs, nodes.HostsOf(w.state).Environment(nil, w.host))
}

// run starts the program, and starts it again, until ctx ends.
func (w *watched) run(ctx context.Context) {
	defer w.log.Close()
	r, out, err := os.Pipe()
	if err != nil {
		w.set(ProgramFailed, 0, err.Error())
		return
	}
	w.out = out
	copied := make(chan struct{})
	go func() { _, _ = io.Copy(w.log, r); close(copied) }()
	defer func() {
		out.Close()
		select {
		case <-copied:
		case <-time.After(nodes.KillAfter): // somebody else has it, too
		}
		r.Close()
		<-copied
	}()
	for pauses := (backoff.Exponential{First: firstBackOff, Last: mostBackOff}); ; {
		began := time.Now()
		err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		took := time.Since(began)
		if took >= mostBackOff {
			pauses.Reset()
		}
		wait := pauses.Next()
		end := "exit status 0"
		if err != nil {
			end = err.Error()
		}
		switch {
		case w.program.Restart == topology.RestartAlways, w.program.Restart == topology.RestartFailure && err != nil:
			w.note("%s after %v; starting it again in %v", end, took.Round(time.Millisecond), wait)
			w.set(ProgramWaiting, 0, end)
		case err != nil:
			w.note("%s after %v", end, took.Round(time.Millisecond))
			w.set(ProgramFailed, 0, end)
			return
		default:
			w.set(ProgramFinished, 0, end)
			return
		}
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (w *watched) note(format string, args ...any) {
	fmt.Fprintf(w.out, noteMark+format+"\n", args...)
}

func (w *watched) set(is ProgramState, pid int, end string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.State, w.status.PID, w.status.Since = is, pid, time.Now()
	if is == ProgramRunning {
		w.status.Starts++
	} else {
		w.status.End = end
	}
}

// once runs the program to its end, which comes soon once ctx ends. What it
// has left behind in its process group ends with it.
func (w *watched) once(ctx context.Context) error {
	path, argv, err := nodes.HostsOf(w.state).ProgramFile(w.program)
	if err != nil {
		return err
	}
	cmd := exec.Command(path)
	cmd.Args, cmd.Dir = argv, w.state.Directory
	cmd.Stdout, cmd.Stderr = w.out, w.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = nodes.HostsOf(w.state).ProgramEnvironment(w.host, w.program)
	if err := nodes.HostsOf(w.state).InHost(w.host.Name, cmd.Start); err != nil {
		return err
	}
	w.set(ProgramRunning, cmd.Process.Pid, "")
	group := -cmd.Process.Pid
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = syscall.Kill(group, syscall.SIGKILL)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(nodes.KillAfter):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	return <-ended
}

// Died reports whether a program that was started has failed or was started again.
func (p ProgramStatus) Died() bool {
	return p.State == ProgramFailed || p.State == ProgramWaiting || p.Starts > 1
}
