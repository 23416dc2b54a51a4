package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
)

// Commands runs commands in the nodes of a lab.
type Commands struct{ state *layout.Lab }

// CommandsOf returns what runs commands in the nodes of a lab.
func CommandsOf(s *layout.Lab) Commands { return Commands{s} }

// StartCmd starts a prepared command in a host, where it finds the lab's hosts
// by name. It must not have a Pdeathsig: the thread that starts it ends.
func (l Commands) StartCmd(host string, cmd *exec.Cmd) error {
	h, err := l.state.FindHost(host)
	if err != nil {
		return err
	}
	cmd.Env = HostsOf(l.state).Environment(cmd.Environ(), &h)
	if err := HostsOf(l.state).InHost(host, cmd.Start); err != nil {
		return fmt.Errorf("host %s: start %s: %w", host, cmd.Args[0], err)
	}
	return nil
}

// Start starts a command in a host and returns without waiting for its end,
// which the caller awaits with Wait; when ctx ends it is killed. Its output is
// discarded: use StartCmd to have it.
func (l Commands) Start(ctx context.Context, host string, argv ...string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		return nil, errors.New("no command given")
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	return cmd, l.StartCmd(host, cmd)
}

// Exec runs a command in a host or at a switch to its end and returns what it wrote
// to stdout and stderr.
func (l Commands) Exec(ctx context.Context, node string, argv ...string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("no command given")
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = machine.OutputDelay
	if err := l.StartAt(node, cmd); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return out.String(), fmt.Errorf("%s: %s: %w: %s", node, strings.Join(argv, " "), err, machine.LastLine(out.String()))
	}
	return out.String(), nil
}

// Become replaces this process by a command in a host or at a switch, terminal and
// all; it returns only if that fails.
func (l Commands) Become(node string, argv ...string) error {
	place, err := l.state.PlaceOf(node)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	runtime.LockOSThread() // for good: execve makes this thread the process
	if err := HostsOf(l.state).EnterSpace(place.Namespace, node); err != nil {
		return err
	}
	return fmt.Errorf("%s: run %s: %w", node, path, syscall.Exec(path, argv, HostsOf(l.state).EnvironmentAt(os.Environ(), node)))
}

// StartAt is StartCmd for a host or a switch.
func (l Commands) StartAt(node string, cmd *exec.Cmd) error {
	place, err := l.state.PlaceOf(node)
	if err != nil {
		return err
	}
	return l.StartIn(place.Namespace, node, cmd)
}

// StartIn is StartAt in another namespace of the lab.
func (l Commands) StartIn(namespace, node string, cmd *exec.Cmd) error {
	cmd.Env = HostsOf(l.state).EnvironmentAt(cmd.Environ(), node)
	if err := HostsOf(l.state).InSpace(namespace, node, cmd.Start); err != nil {
		return fmt.Errorf("%s: start %s: %w", node, cmd.Args[0], err)
	}
	return nil
}

// AttendAt runs a command in a node as Attend does.
func (l Commands) AttendAt(ctx context.Context, node string, cmd *exec.Cmd, a machine.Attended) error {
	return machine.Attend(ctx, cmd, a, func() error { return l.StartAt(node, cmd) })
}
