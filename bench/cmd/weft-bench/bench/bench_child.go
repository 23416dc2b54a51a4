package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/test/testbed"
)

// benchServices is which services of Weft's a bench starts.
type benchServices string

const (
	benchAll      benchServices = "all"
	benchLearning benchServices = "learning" // those of a learning switch
	benchFirewall benchServices = "firewall" // the same behind a firewall
)

// benchWeftArgs is how bench starts Weft's own controller.
func benchWeftArgs(openflow, http, dir string, services benchServices) []string {
	args := []string{"up", "--listen", openflow, "--http", http, "--data-dir", dir, "--quiet"}
	switch services {
	case benchLearning:
		args = append(args, "--services", "southbound,forwarding", "--set", "forwarding.mode=learning")
	case benchFirewall:
		args = append(args, "--services", "southbound,firewall,forwarding,flowrules,gateway", "--set", "forwarding.mode=learning")
	}
	return args
}

// benchCPUs is the processors that bench divides: one for what is measured,
// one for the load; -1 where there are not two.
type benchCPUs struct{ subject, load int }

// benchPin divides the processors and moves this process to its own; undo
// brings it back. If they are to be shared, it divides nothing: what runs in
// several processes is there to use several processors.
func benchPin(shared bool) (cpus benchCPUs, undo func(), err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); shared || err != nil || set.Count() < 2 {
		return benchCPUs{-1, -1}, func() {}, nil
	}
	var two []int
	for i := 0; len(two) < 2; i++ {
		if set.IsSet(i) {
			two = append(two, i)
		}
	}
	// One for each simulated network and one for the rest: with fewer, a network
	// that waits for its switches holds up the one that is being measured.
	was := runtime.GOMAXPROCS(3)
	undo = func() {
		runtime.GOMAXPROCS(was)
		_ = benchMove(set)
	}
	var own unix.CPUSet
	own.Set(two[1])
	if err := benchMove(own); err != nil {
		undo()
		return benchCPUs{}, nil, fmt.Errorf("pin the load to processor %d: %w", two[1], err)
	}
	return benchCPUs{two[0], two[1]}, undo, nil
}

// benchMove moves all threads of this process, and those to come, which
// inherit it, to a set of processors.
func benchMove(set unix.CPUSet) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// benchChild is a process that bench has started.
type benchChild struct {
	name   string
	cmd    *exec.Cmd
	output testbed.Tail
	ended  chan struct{}
	err    error // valid when ended is closed
}

// benchStart starts a process on the processor for what is measured; it does
// not outlive this one.
func benchStart(cpus benchCPUs, name, path string, args ...string) (*benchChild, error) {
	c := &benchChild{name: name, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.Env = os.Environ()
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if cpus.subject >= 0 {
		c.cmd.Env = append(c.cmd.Env, "GOMAXPROCS=1")
	}
	started := make(chan error)
	go func() {
		// The thread lives as long as the child, which dies with it.
		runtime.LockOSThread()
		if cpus.subject >= 0 {
			var set unix.CPUSet
			set.Set(cpus.subject)
			_ = unix.SchedSetaffinity(0, &set) // inherited by the child
		}
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// stop ends the process: politely, after five seconds by force.
func (c *benchChild) stop() {
	if c == nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(5 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // what it started and left
}

// signal sends a signal to the process and all below it.
func (c *benchChild) signal(s syscall.Signal) {
	for _, pid := range c.tree() {
		_ = syscall.Kill(pid, s) // it may have gone
	}
}

// accepts waits until the child accepts connections.
func (c *benchChild) accepts(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-c.ended:
			return fmt.Errorf("%s ended (%v) before it accepted connections; it said:\n%s", c.name, c.err, c.output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s does not accept connections on %s; it said:\n%s", c.name, address, c.output.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// over says whether the child has ended.
func (c *benchChild) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// failed returns err with what the child said last.
func (c *benchChild) failed(err error) error {
	if c == nil || err == nil {
		return err
	}
	state := "it runs"
	if c.over() {
		state = fmt.Sprintf("it ended: %v", c.err)
	}
	if said := c.output.String(); said != "" {
		return fmt.Errorf("%s: %w (%s); it said:\n%s", c.name, err, state, said)
	}
	return fmt.Errorf("%s: %w (%s)", c.name, err, state)
}

// cpu returns the processor time that the child has used, zero if unknown.
func (c *benchChild) cpu() time.Duration {
	if c == nil {
		return 0
	}
	return cputime.Sum(c.cmd.Process.Pid)
}

// memory returns the memory of the child in octets, 0 if unknown: VmRSS is what
// is resident now, VmHWM what was at most.
func (c *benchChild) memory(which string) int64 {
	if c == nil {
		return 0
	}
	return benchMemoryOf(c.cmd.Process.Pid, which)
}

// benchMemoryOf returns the memory of a process.
func benchMemoryOf(pid int, which string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, which+":"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
