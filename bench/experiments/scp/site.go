package scp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/test/testbed"
)

// site is a controller with a network of real switches and simulated network
// functions of its own.
type site struct {
	*testbed.Controller
	lab  *lab.Lab
	done func() // ends what would sweep
}

// nfPort is where all network functions listen.
const nfPort = 7777

// labName is the name of an experiment's lab, which no other process has.
func labName(label string) string { return fmt.Sprintf("exp-%d-%s", os.Getpid(), label) }

// everything is a controller with all services of the plan 5gc in one process.
func everything(name string, config map[string]map[string]string) (*testbed.Plan, error) {
	return builtIn("5gc", name, config)
}

// builtIn is a controller with the processes of a plan that is built in.
func builtIn(base, name string, config map[string]map[string]string) (*testbed.Plan, error) {
	text, err := plans.Read(base)
	if err != nil {
		return nil, err
	}
	of, err := plan.Parse(base, text)
	if err != nil {
		return nil, err
	}
	p := &testbed.Plan{Name: name, Config: config}
	for _, w := range of.Workers {
		p.Workers = append(p.Workers, testbed.Worker{Name: w.Name, Services: w.Services})
	}
	return p, nil
}

// open starts a controller and a network, and waits until the one knows the
// other. On an error nothing is left.
// If this process is killed, that is swept away, and dirs.
func open(ctx context.Context, label string, plan *testbed.Plan, topo *topology.Topology, dirs ...string) (s *site, err error) {
	return openBy(ctx, "", label, plan, topo, dirs...)
}

// openBy is open with a weft binary; empty is this process's own.
func openBy(ctx context.Context, weft, label string, plan *testbed.Plan, topo *topology.Topology, dirs ...string) (s *site, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the lab makes network namespaces and so needs root; try sudo")
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		return nil, errors.New("the lab needs Open vSwitch: apt-get install openvswitch-switch")
	}
	if weft == "" {
		if weft, err = companion.Find("weft"); err != nil {
			return nil, err
		}
	}
	s = &site{done: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", label, err), s.Close())
		}
	}()
	if s.Controller, err = testbed.Start(ctx, testbed.Config{Program: weft, Plan: plan, CPU: -1}); err != nil {
		return s, err
	}
	if s.done, err = sweep(weft, labName(label), s.PID(), append(dirs, s.Dir())...); err != nil {
		return s, err
	}
	s.lab, err = lab.Up(ctx, topo, lab.Options{
		Temporary: true, Name: labName(label), Weft: weft,
		Controllers: []string{"tcp:" + s.OpenFlow[0]}, KeeperCommand: []string{weft, "lab", "keeper"},
	})
	if err != nil {
		return s, err
	}
	return s, s.Ready(ctx, s.lab.Topology())
}

// Close takes network and controller down.
func (s *site) Close() (err error) {
	if s.lab != nil {
		err = s.lab.Down(context.Background())
	}
	s.Stop()
	s.done()
	return err
}

// sweep starts a process that ends a controller, which does not end with this
// process because it has left root, takes a lab down and removes directories when
// this process ends without having called done.
func sweep(self, lab string, controller int, dirs ...string) (done func(), err error) {
	alive, cmd, err := sweeper(self, lab, controller, dirs...)
	if err != nil {
		return func() {}, err
	}
	return func() {
		_, _ = io.WriteString(alive, "done\n")
		_ = cmd.Wait()
	}, nil
}

// sweeper starts that process, which sweeps when alive is closed before it has read
// a line.
func sweeper(self, lab string, controller int, dirs ...string) (alive io.WriteCloser, cmd *exec.Cmd, err error) {
	const script = `read -r line && exit
kill "$3"
"$1" lab down "$2"
sleep 10 # in which the controller ends
shift 3
rm -rf "$@"`
	cmd = exec.Command("sh", append([]string{"-c", script, "sweep", self, lab, strconv.Itoa(controller)}, dirs...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if alive, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	return alive, cmd, cmd.Start()
}
