package keeper

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
)

// keepDaemons starts daemons again that end, until ctx ends.
func keepDaemons(ctx context.Context, all []*nodes.Daemon) {
	defer func() {
		for _, d := range all {
			d.Close()
		}
	}()
	for _, d := range all {
		d.Open()
	}
	fds := make([]unix.PollFd, len(all))
	for ctx.Err() == nil {
		for i, d := range all {
			fds[i] = unix.PollFd{Fd: int32(d.Pidfd), Events: unix.POLLIN} // poll passes over -1
		}
		if _, err := unix.Poll(fds, int(pollDaemons.Milliseconds())); err != nil {
			continue
		}
		for i, d := range all {
			if d.Pidfd >= 0 && fds[i].Revents == 0 {
				continue
			}
			d.Close()
			if backoff.Sleep(ctx, firstBackOff) != nil { // the lab is being taken down
				return
			}
			fmt.Fprintf(os.Stderr, "%s has ended: starting it again\n", d.Name)
			if err := startAgain(ctx, d); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", d.Name, err)
			}
		}
	}
}

// pollDaemons is how often the keeper looks whether it is to end itself.
const pollDaemons = 200 * time.Millisecond

func startAgain(ctx context.Context, d *nodes.Daemon) error {
	if d.Open() { // somebody else has
		return nil
	}
	if err := d.Start(ctx); err != nil {
		return err
	}
	for end := time.Now().Add(time.Second); !d.Open() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if d.Then != nil {
		return d.Then()
	}
	return nil
}

// keepEntity runs `weft node run`, and runs it again when it ends, until ctx ends.
func keepEntity(ctx context.Context, s nodes.Routers, out io.Writer) {
	for pauses := (backoff.Exponential{First: firstBackOff, Last: mostBackOff}); ctx.Err() == nil; {
		began := time.Now()
		args := []string{"node", "run", s.NodesFile()}
		if o := s.NodeOptions(); o != "" {
			args = append(args, o)
		}
		cmd := exec.CommandContext(ctx, s.Weft, args...)
		cmd.Dir, cmd.Env = "/", machine.Mark(nodes.WithoutKeeperMark(os.Environ()), s.Name)
		cmd.Stdout, cmd.Stderr = out, out
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = nodes.KillAfter
		err := cmd.Run()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= mostBackOff {
			pauses.Reset()
		}
		fmt.Fprintf(out, noteMark+"weft node run has ended (%v): starting it again\n", err)
		_ = pauses.Wait(ctx)
	}
}
