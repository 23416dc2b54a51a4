package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// benchNetworkConfig is the flags of network.
type benchNetworkConfig struct {
	benchDiscoveryConfig
	controller string
	changes    float64 // of links, in a second
	first      uint64  // number of the first switch
}

func benchNetworkCommand() *cobra.Command {
	c := benchNetworkConfig{benchDiscoveryConfig: benchDiscoveryConfig{timeout: time.Minute, rounds: 1, output: "table"}}
	var version string
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Keep a large simulated network on a running controller",
		Long: `Connect simulated switches with links and hosts to a controller that runs, and
keep them there until interrupted: to look at a large network, on the
controller's page say. With --changes links go down and up again, as many times
in a second. Nothing is measured. With --first, a second network, or the load of
throughput, fits beside it on the same controller.`,
		Example: `  weft bench network --switches 1000 --links 3000
  weft bench network --switches 1000 --links 3000 --changes 10
  weft bench network --switches 40 --links 80 --hosts 0 --first 1001
  weft bench network --topology fat-tree:8 --controller 127.0.0.1:6653`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if c.version, err = benchVersion(version); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			if c.changes < 0 || c.changes > 10_000 {
				return cli.Usagef(cmd, "--changes %g: want 0 to 10,000 in a second", c.changes)
			}
			if c.first < 1 || c.first > 1<<40 {
				return cli.Usagef(cmd, "--first %d: want 1 to 2^40", c.first)
			}
			topo, err := c.check(cmd.Flags().Changed)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			for i := range topo.Switches {
				topo.Switches[i].DPID += flow.DPID(c.first - 1)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return c.keep(ctx, topo, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.controller, "controller", "127.0.0.1:6653", "HOST:PORT where the switches connect")
	f.StringVar(&c.topology, "topology", "random", "one of "+benchTopologies)
	f.IntVar(&c.switches, "switches", 1000, "switches of a random, linear or ring topology")
	f.IntVar(&c.links, "links", 3000, "links of a random topology")
	f.Uint64Var(&c.seed, "seed", 1, "of a random topology and of the changes: the same seed gives the same")
	f.IntVar(&c.hosts, "hosts", 1, "hosts of each switch, on a port each")
	f.StringVar(&version, "openflow", "1.3", "OpenFlow version: 1.0 or 1.3")
	f.Float64Var(&c.changes, "changes", 0, "changes of links in a second")
	f.Uint64Var(&c.first, "first", 1, "number of the first switch")
	return cmd
}

// keep connects the network and changes links until ctx ends.
func (c *benchNetworkConfig) keep(ctx context.Context, topo *sim.Topology, out io.Writer) error {
	net, err := sim.New(sim.Config{Topology: topo, Version: c.version, Address: c.controller})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- net.Run(running) }()
	err = c.change(ctx, net, topo, out)
	stop()
	if ended := <-done; err == nil && !errors.Is(ended, context.Canceled) {
		err = ended
	}
	return err
}

func (c *benchNetworkConfig) change(ctx context.Context, net *sim.Network, topo *sim.Topology, out io.Writer) error {
	limit, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("%s: not all switches are connected after %v", c.controller, c.timeout))
	defer cancel()
	began := time.Now()
	if err := net.WaitUp(limit, 0); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted
		}
		return err
	}
	fmt.Fprintf(out, "%d switches and %d links at %s after %.1f s; interrupt to end\n", len(topo.Switches), len(topo.Links), c.controller, time.Since(began).Seconds())
	if c.changes == 0 || len(topo.Links) == 0 {
		<-ctx.Done()
		return nil
	}
	next := time.NewTicker(time.Duration(float64(time.Second) / c.changes))
	defer next.Stop()
	r := rand.New(rand.NewPCG(c.seed, 1))
	var down []int
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		// Of the links few are down at a time, each until its turn comes.
		if len(down) > len(topo.Links)/20 {
			if err := net.SetLink(ctx, down[0], true); err != nil && ctx.Err() == nil {
				return err
			}
			down = down[1:]
			continue
		}
		link := r.IntN(len(topo.Links))
		if err := net.SetLink(ctx, link, false); err != nil && ctx.Err() == nil {
			return err
		}
		down = append(down, link)
	}
}
