package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// CheckNode returns an error unless the lab has a node of that name.
func (l *Lab) CheckNode(node string) error {
	_, err := l.machine(node)
	return err
}

// NodeNames returns the names of the nodes: switches first, each in the order of the lab file.
func (l *Lab) NodeNames() []string {
	var names []string
	for _, p := range l.Mapping.Nodes {
		names = append(names, p.Node)
	}
	return names
}

// Host returns a host.
func (l *Lab) Host(name string) (topology.Host, error) {
	if h, ok := l.Topology.HostByName(name); ok {
		return *h, nil
	}
	return topology.Host{}, fmt.Errorf("lab %s has no host %q", l.Name, name)
}

// Samples returns what the nodes use now of each machine that has any.
func (l *Lab) Samples(ctx context.Context) ([]lab.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	all := make([]lab.Sample, len(l.Machines.List))
	return all, l.each(func(at int, k *Machine) error {
		return l.ask(ctx, k, &all[at], nil, "usage", "--name", PartName(l.Name, k.Name))
	})
}

// Show asks every machine what `weft lab show` says of its part; to returns where the answer of one goes.
func (l *Lab) Show(ctx context.Context, to func(machine string) any) error {
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	answers := make([]any, len(l.Machines.List))
	for i, k := range l.Machines.List {
		answers[i] = to(k.Name)
	}
	return l.each(func(at int, k *Machine) error {
		return l.ask(ctx, k, answers[at], nil, "show", "--name", PartName(l.Name, k.Name))
	})
}

// Iperf measures the throughput from one host to another with iperf3, which their machines must have.
func (l *Lab) Iperf(ctx context.Context, from, to string, opt traffic.IperfOptions) (traffic.IperfResult, error) {
	return traffic.Iperf(ctx, l, from, to, opt)
}

// Where says on which machine a node is, such as "machine m2".
func (l *Lab) Where(node string) string { return "machine " + l.Mapping.MachineOf(node) }

// Text is the text of the lab's file, as far as it is known.
func (l *Lab) Text() ([]byte, error) { return []byte(l.File), nil }

// StartAt starts a prepared command in a node, by ssh on its machine. Of its environment goes
// along what it has besides that of this process, but for names of weft's own. A command that
// has its terminal as its own (Setctty) has one there, too, of the same size, and all that
// it leaves behind ends with it.
func (l *Lab) StartAt(node string, cmd *exec.Cmd) error {
	args := []string{"attend"}
	terminal := cmd.SysProcAttr != nil && cmd.SysProcAttr.Setctty
	if terminal {
		args = append(args, "--whole")
	}
	return l.start(node, cmd, terminal, append(args, node), cmd.Args...)
}

// StartCapture starts a command, prepared for lab.CaptureProgram, that writes a capture to
// its standard output. It ends at the end of its input.
func (l *Lab) StartCapture(cmd *exec.Cmd, c lab.Capture) error {
	return l.start(c.Node, cmd, false, []string{"capture", c.Node, "--attended", "--port", fmt.Sprint(c.Port), "--filter", c.Filter})
}

// start starts weft lab on a node's machine in the place of a prepared command.
func (l *Lab) start(node string, cmd *exec.Cmd, terminal bool, args []string, argv ...string) error {
	k, err := l.machine(node)
	if err != nil {
		return err
	}
	if l.Programs[k.Name] == "" {
		return k.failed(errNothing)
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return errNoSSH
	}
	words := []string{"env"}
	if cmd.Dir != "" {
		words = append(words, "-C", cmd.Dir)
	}
	here := os.Environ()
	for _, v := range cmd.Env {
		if !slices.Contains(here, v) && !strings.HasPrefix(v, "WEFT_") {
			words = append(words, v)
		}
	}
	words = append(words, l.Programs[k.Name], "lab")
	words = append(append(words, args...), "--name", PartName(l.Name, k.Name))
	if argv != nil {
		words = append(append(words, "--"), argv...)
	}
	cmd.Path, cmd.Args, cmd.Dir, cmd.Err = ssh, l.Machines.argv(k, terminal, words...), "", nil
	if _, err := k.admit(context.Background()); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return k.failed(err)
	}
	return nil
}

// Exec runs a command in a host or at a switch, on its machine, and returns what it wrote to
// standard output. If ctx ends, so does the command.
func (l *Lab) Exec(ctx context.Context, node string, argv ...string) (string, error) {
	k, err := l.machine(node)
	if err != nil {
		return "", err
	}
	out, err := l.weft(ctx, k, nil, append([]string{"attend", node, "--name", PartName(l.Name, k.Name), "--"}, argv...)...)
	return string(out), err
}

// Become replaces this process by weft lab on the machine of a node, whose words args returns for
// the lab's part there; it returns only if that fails.
func (l *Lab) Become(node string, args func(part string) []string) error {
	k, err := l.machine(node)
	if err != nil {
		return err
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return errNoSSH
	}
	terminal := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
	argv := l.Machines.argv(k, terminal, append([]string{l.Programs[k.Name], "lab"}, args(PartName(l.Name, k.Name))...)...)
	return k.failed(syscall.Exec(ssh, argv, os.Environ()))
}

var errNothing = errors.New("nothing was made there")
