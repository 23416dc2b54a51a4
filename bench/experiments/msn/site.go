package msn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
)

// site is a controller with a network of real switches of its own.
type site struct {
	*testbed.Controller
	lab   *lab.Lab
	hosts map[string]*testbed.ColdHost
	next  int // number of the next new host
}

// needLab says what is missing for networks of real switches.
func needLab() error {
	if os.Geteuid() != 0 {
		return errors.New("the lab makes network namespaces and so needs root; try sudo")
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		return errors.New("the lab needs Open vSwitch: apt-get install openvswitch-switch")
	}
	return nil
}

// open starts a controller and a network, and waits until the one knows the
// other. On an error nothing is left.
func open(ctx context.Context, label string, plan *testbed.Plan, topo *topology.Topology) (s *site, err error) {
	if err := needLab(); err != nil {
		return nil, err
	}
	s = &site{hosts: map[string]*testbed.ColdHost{}, next: 1}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", label, err), s.Close())
		}
	}()
	if s.Controller, err = testbed.New(testbed.Config{Plan: plan, CPU: -1}); err != nil {
		return s, err
	}
	several := len(s.OpenFlow) > 1
	if !several {
		if err := s.Run(ctx); err != nil {
			return s, err
		}
	}
	self, err := companion.Find("weft")
	if err != nil {
		return s, err
	}
	var controllers []string
	for _, address := range s.OpenFlow {
		controllers = append(controllers, "tcp:"+address)
	}
	s.lab, err = lab.Up(ctx, topo, lab.Options{
		Temporary: true,
		Name:      fmt.Sprintf("exp-%d-%s", os.Getpid(), label), Controllers: controllers, KeeperCommand: []string{self, "lab", "keeper"},
	})
	if err != nil {
		return s, err
	}
	if several { // before they run, so that no switch is ever seen by two
		if err := s.divide(ctx, plan); err != nil {
			return s, err
		}
		if err := s.Run(ctx); err != nil {
			return s, err
		}
	}
	return s, s.Ready(ctx, s.lab.Topology())
}

// Close takes network and controller down.
func (s *site) Close() error {
	var err error
	if s.lab != nil {
		err = s.lab.Down(context.Background())
	}
	s.Stop()
	return err
}

// divide leaves every switch connected to the controller of its partition
// only, as the paper's load balancer in the network does.
func (s *site) divide(ctx context.Context, plan *testbed.Plan) error {
	measure.Differs(ctx, plan.Name+": each switch connected to the controller of its partition only, out of band, max_backoff 1000")
	for _, sw := range s.lab.Topology().Switches {
		bridge, err := s.lab.Bridge(sw.Name)
		if err != nil {
			return err
		}
		out, err := s.lab.VSCtl(ctx, "get-controller", bridge)
		if err != nil {
			return err
		}
		// Sockets of the lab's keeper end in the number of the controller.
		targets := strings.Fields(out)
		at := plan.PartitionOf(uint64(sw.DPID))
		if at < 0 || len(targets) != len(s.OpenFlow) {
			return fmt.Errorf("switch %s: partition %d of %d, controllers %q", sw.Name, at, len(s.OpenFlow), targets)
		}
		sortTargets(targets)
		if _, err := s.lab.VSCtl(ctx, "set-controller", bridge, targets[at]); err != nil {
			return err
		}
		if _, err := s.lab.VSCtl(ctx, "set", "controller", bridge, "connection-mode=out-of-band", "max_backoff=1000"); err != nil {
			return err
		}
	}
	return nil
}

// cold returns a host of the network as one that takes new addresses.
func (s *site) cold(ctx context.Context, name string) (*testbed.ColdHost, error) {
	if h := s.hosts[name]; h != nil {
		return h, nil
	}
	h, err := testbed.NewColdHost(ctx, s.lab, name)
	if err == nil {
		s.hosts[name] = h
	}
	return h, err
}

// Waits of first packets.
const (
	firstWait   = 900 * time.Millisecond // for an answer: before ARP would ask again
	steadyWait  = 500 * time.Millisecond
	steadyCount = 20
	settleTime  = 20 * time.Millisecond // until what a run has set off has come to its end
)

// firstPacket sends a first packet from one host to another, both with
// addresses that nobody has heard of, and then some more. Lost is true if the
// first one was not answered.
func (s *site) firstPacket(ctx context.Context, from, to string) (m latency, err error) {
	a, err := s.cold(ctx, from)
	if err != nil {
		return m, err
	}
	b, err := s.cold(ctx, to)
	if err != nil {
		return m, err
	}
	for _, h := range []*testbed.ColdHost{a, b} {
		if err := h.Become(ctx, s.next); err != nil {
			return m, err
		}
		s.next++
	}
	first, err := a.Ping(b, 1, 0, firstWait)
	if errors.Is(err, testbed.ErrNoAnswer) {
		m.lost = true
		return m, nil
	}
	if err != nil {
		return m, s.Failed(err)
	}
	time.Sleep(settleTime)
	steady, err := a.Ping(b, steadyCount, time.Millisecond, steadyWait)
	if errors.Is(err, testbed.ErrNoAnswer) {
		m.lost = true
		return m, nil
	}
	if err != nil {
		return m, s.Failed(err)
	}
	m.first, m.steady, m.from, m.to = milliseconds(first[0]), milliseconds(quantile.Median(steady)), a, b
	return m, nil
}

// latency is what a run has measured, round trips in milliseconds.
type latency struct {
	first, steady float64
	lost          bool
	from, to      *testbed.ColdHost
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// written writes a figure into a sample.
func written(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

// read reads a figure of a sample; false if there is none.
func read(cell string) (float64, bool) {
	v, err := strconv.ParseFloat(cell, 64)
	return v, err == nil
}
