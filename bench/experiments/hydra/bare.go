package hydra

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/openflow"
)

// bare is a bare responder (sim.Responder) with switches of its own: it answers
// echoes, and packet-ins without looking at them, and asks for echoes if the
// controller does.
type bare struct {
	cmd   *exec.Cmd
	ask   io.WriteCloser
	lines *bufio.Reader
	net   *sim.Network
	end   context.CancelFunc
	ended chan error
}

// startBare starts one where the slice has its controller, and connects switches
// as the slice has them.
func (s *slice) startBare(ctx context.Context, asked string, rate int) (b *bare, err error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	args := []string{"bench", "responder", "--listen", address}
	if asked == byController {
		args = append(args, "--beats", fmt.Sprint(rate))
	}
	b = &bare{cmd: exec.Command("/proc/self/exe", args...)}
	b.cmd.Stderr = os.Stderr
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if b.ask, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.lines = bufio.NewReader(out)
	if !s.shipped {
		b.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the child dies with the thread
		if !s.shipped {
			first, _ := two()
			var one unix.CPUSet
			one.Set(first)
			_ = unix.SchedSetaffinity(0, &one) // inherited by the child, as is the next
			_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), generatorNice)
		}
		err := b.cmd.Start()
		started <- err
		if err == nil {
			_ = b.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the bare responder: %w", err)
	}
	if _, err := b.lines.ReadString('\n'); err != nil { // it listens
		return nil, errors.Join(fmt.Errorf("the bare responder: %w", err), b.close())
	}
	if b.net, err = sim.New(sim.Config{Topology: s.topo, Version: openflow.V13, Address: address}); err != nil {
		return nil, errors.Join(err, b.close())
	}
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	b.end, b.ended = end, make(chan error, 1)
	go func() { b.ended <- s.run(run, b.net) }()
	up, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	if err := b.net.WaitUp(up, 300*time.Millisecond); err != nil {
		return nil, errors.Join(fmt.Errorf("the bare responder: %w", err), b.close())
	}
	return b, nil
}

// counts returns what it has asked for, as the controller's are.
func (b *bare) counts() (c beatCounts, err error) {
	if _, err := fmt.Fprintln(b.ask); err != nil {
		return c, err
	}
	line, err := b.lines.ReadString('\n')
	if err != nil {
		return c, fmt.Errorf("the bare responder: %w", err)
	}
	if _, err := fmt.Sscan(strings.TrimSpace(line), &c.beats, &c.missed); err != nil {
		return c, fmt.Errorf("the bare responder says %q: %w", line, err)
	}
	c.buckets = map[float64]float64{.01: c.beats - c.missed} // at 100 a second
	return c, nil
}

// close ends switches and responder.
func (b *bare) close() (err error) {
	if b.end != nil {
		b.end()
		err = <-b.ended
	}
	return errors.Join(err, b.cmd.Process.Kill())
}
