package testbed

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/cputime"
)

// mark is the environment variable by which all that a Process starts is
// known, however it has been adopted since.
const mark = "WEFT_TESTBED"

// Process is a process that was started here, with all that it starts itself.
type Process struct {
	name  string
	cmd   *exec.Cmd
	mark  string // its environment's and that of its children
	tail  Tail
	ended chan struct{}
	err   error // valid when ended is closed
}

// StartProcess starts a program, on one processor if cpu is not negative. It
// and its children do not outlive this process's Stop; itself it does not
// outlive this process.
func StartProcess(name string, cpu int, path string, args ...string) (*Process, error) {
	p := &Process{name: name, cmd: exec.Command(path, args...), mark: mark + "=" + rand.Text(), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.tail, &p.tail
	p.cmd.WaitDelay = time.Second // children may hold the output open
	p.cmd.Env = append(os.Environ(), p.mark)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if cpu >= 0 {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS=1")
	}
	started := make(chan error)
	go func() {
		// The thread lives as long as the child, which is told when it dies.
		runtime.LockOSThread()
		if cpu >= 0 {
			var set unix.CPUSet
			set.Set(cpu)
			_ = unix.SchedSetaffinity(0, &set) // inherited by the child
		}
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the process and all that it has started: politely, after ten
// seconds by force. Stopping twice, or nothing, is no error.
func (p *Process) Stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	for range 100 { // what is left of it; those killed take a moment to go
		left := p.children()
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Signal sends a signal to the process and all that it has started.
func (p *Process) Signal(s syscall.Signal) {
	for _, pid := range p.All() {
		_ = syscall.Kill(pid, s) // it may have gone
	}
}

// Accepts waits until the process accepts connections at an address.
func (p *Process) Accepts(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if err := p.Ended(); err != nil {
			return p.Failed(err)
		}
		if err := backoff.Sleep(ctx, 20*time.Millisecond); err != nil {
			return p.Failed(fmt.Errorf("it does not accept connections on %s: %w", address, err))
		}
	}
}

// All returns the process and all that it has started; nothing of nil.
func (p *Process) All() []int {
	if p == nil {
		return nil
	}
	return append(p.children(), p.PID())
}

// children returns the processes that carry the mark, other than the process
// itself.
func (p *Process) children() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == p.PID() {
			continue
		}
		env, err := os.ReadFile(file) // empty of one that has ended
		if err == nil && bytes.Contains(append(env, 0), append([]byte(p.mark), 0)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// CPUTime is the time of processors that the process and all that it has started
// have used; those that have ended left out.
func (p *Process) CPUTime() time.Duration { return cputime.Sum(p.All()...) }

// statFields returns the fields of /proc/PID/stat after the command's name
// (proc_pid_stat(5)); none of a process that has ended.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name, in parentheses, may hold spaces: count from its end.
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// Failed returns err with what the process said last.
func (p *Process) Failed(err error) error {
	if p == nil || err == nil {
		return err
	}
	state := "it runs"
	select {
	case <-p.ended:
		state = fmt.Sprintf("it ended: %v", p.err)
	default:
	}
	if said := p.tail.String(); said != "" {
		return fmt.Errorf("%s: %w (%s); it said:\n%s", p.name, err, state, said)
	}
	return fmt.Errorf("%s: %w (%s)", p.name, err, state)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Ended returns an error if the process has ended.
func (p *Process) Ended() error {
	select {
	case <-p.ended:
		return errors.New("the process has ended")
	default:
		return nil
	}
}

// StartTime returns when a process was started, to a hundredth of a second.
func StartTime(pid int) (time.Time, error) {
	f := statFields(pid)
	if len(f) < 20 {
		return time.Time{}, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(f))
	}
	ticks, err := strconv.ParseInt(f[19], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Time{}, err
	}
	since := time.Duration(now.Nano()) - time.Duration(ticks)*(time.Second/100)
	return time.Now().Add(-since), nil
}

// Tail keeps the end of what is written to it.
type Tail struct {
	mu sync.Mutex // guards b
	b  []byte
}

// TailSize is how much of it, in octets.
const TailSize = 4 << 10

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - TailSize; n > 0 {
		t.b = t.b[:copy(t.b, t.b[n:])]
	}
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
