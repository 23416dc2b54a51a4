package scp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/experiments/testbed"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/plan"
)

// site is a controller with a network of real switches and simulated network
// functions of its own.
type site struct {
	*testbed.Controller
	lab *lab.Lab
}

// nfPort is where all network functions listen.
const nfPort = 7777

// labName is the name of an experiment's lab, which no other process has.
func labName(label string) string { return fmt.Sprintf("exp-%d-%s", os.Getpid(), label) }

// everything is a controller with all services of the plan 5gc in one process.
func everything(name string, config map[string]map[string]string) (*testbed.Plan, error) {
	text, err := plans.Read("5gc")
	if err != nil {
		return nil, err
	}
	of, err := plan.Parse("5gc", text)
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
func open(ctx context.Context, label string, plan *testbed.Plan, topo *lab.Topology) (s *site, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the lab makes network namespaces and so needs root; try sudo")
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		return nil, errors.New("the lab needs Open vSwitch: apt-get install openvswitch-switch")
	}
	s = &site{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", label, err), s.Close())
		}
	}()
	if s.Controller, err = testbed.Start(ctx, testbed.Config{Plan: plan, CPU: -1}); err != nil {
		return s, err
	}
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	s.lab, err = lab.Up(ctx, topo, lab.Options{
		Temporary: true, Name: labName(label), Weft: self,
		Controllers: []string{"tcp:" + s.OpenFlow[0]}, KeeperCommand: []string{self, "lab", "keeper"},
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
	return err
}
