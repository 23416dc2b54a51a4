package hydra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/classbench"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/test/testbed"
)

// slicing is how the controller of one partition is divided into processes, as
// the paper has it (§2).
type slicing string

const (
	topologicalSlicing slicing = "topological" // all in one process, path computation with the rest
	hybridSlicing      slicing = "hybrid"      // path computation in another
	functionalSlicing  slicing = "functional"  // besides, what is real-time in a process of its own
)

// sliceConfig is the controller of one of several equal partitions of the
// paper's network, and what it is to do.
type sliceConfig struct {
	slicing    slicing
	partitions int  // of the network
	rules      int  // of the firewall
	heartbeats bool // the service heartbeat runs
	all        bool // and all others
	// shipped: one process as weft up starts it, and simulated switches beside it
	// as any other process: what a user gets.
	shipped bool
}

// String is the name of a case of it.
func (c sliceConfig) String() string {
	if c.shipped {
		return fmt.Sprintf("as a user gets it, 1 of %d", c.partitions)
	}
	return fmt.Sprintf("%s, 1 of %d", c.slicing, c.partitions)
}

// slice is such a controller at work, with its simulated switches.
type slice struct {
	sliceConfig
	topo    *sim.Topology
	control *testbed.Controller
	north   *grpc.ClientConn
	net     *sim.Network
	end     context.CancelFunc
	ended   chan error
}

// Hosts of each edge switch, and the ports that they share.
const (
	edgeHosts = 8
	edgePorts = 4
)

// plan is what runs where: on the first processor what is measured, on the
// second, beside the simulated switches, what is not on the way of a packet.
func (c sliceConfig) plan() *testbed.Plan {
	here := []string{"southbound", "discovery", "hosts", "firewall", "forwarding", "flowrules"}
	var elsewhere []string
	if c.slicing == topologicalSlicing {
		here = append(here, "paths")
	} else {
		elsewhere = append(elsewhere, "paths")
	}
	var first []string
	if c.slicing == functionalSlicing {
		first, here = here[:2:2], here[2:]
	}
	if c.heartbeats && first != nil {
		first = append(first, "heartbeat")
	} else if c.heartbeats {
		here = append(here, "heartbeat")
	}
	elsewhere = append(elsewhere, "stats", "gateway")
	if c.all {
		elsewhere = append(elsewhere, "ryu")
		for _, policy := range api.OptionalServices() {
			if policy != "heartbeat" && policy != "firewall" {
				here = append(here, policy)
			}
		}
	}
	p := &testbed.Plan{
		Name: fmt.Sprintf("hydra-%s-%d", c.slicing, c.partitions), Transport: "grpc",
		Workers: []testbed.Worker{
			{Name: "partition", Services: here, CPUs: firstCPU(), Nice: -15},
			{Name: "apart", Services: elsewhere, CPUs: secondCPU(), Nice: -20}, // before the simulated switches, which never rest
		},
		// The load comes from all ports of a switch alike, and is no flood.
		Config: map[string]map[string]string{"southbound": {"flood_rate": "0"}},
	}
	if first != nil {
		// Of equal priority: heartbeats alone would keep the processor busy, one by
		// one, and the stages would starve; so they gather while these work.
		p.Workers = append([]testbed.Worker{{Name: "first", Services: first, CPUs: firstCPU(), Nice: -15}}, p.Workers...)
	}
	return p
}

// setup is what it is measured under: the partition, and its simulated switches.
func (c sliceConfig) setup() experiments.Setup {
	p := c.plan()
	if c.shipped {
		p = nil
	}
	s := experiments.SetupOf(p, fmt.Sprintf("one of %d partitions, %d rules", c.partitions, c.rules))
	if !c.shipped {
		s.Priority += fmt.Sprintf("; switches at nice %d", generatorNice)
		s.Processors = "the first, path computation too"
		if c.slicing != topologicalSlicing {
			s.Processors = "the first, and the second for path computation"
		}
	}
	return s
}

// two returns the first two processors that there are; the same twice if there is
// one only.
func two() (first, second int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 0, 0
	}
	list := make([]int, 0, 2)
	for i := 0; len(list) < min(2, set.Count()); i++ {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list[0], list[len(list)-1]
}

func firstCPU() string  { first, _ := two(); return strconv.Itoa(first) }
func secondCPU() string { _, second := two(); return strconv.Itoa(second) }

// start starts a slice: the controller, its switches and rules, and waits until
// it knows the network and every host.
func (c sliceConfig) start(ctx context.Context) (s *slice, err error) {
	s = &slice{sliceConfig: c}
	defer func() {
		if err != nil {
			err = errors.Join(s.failed(err), s.Close())
			s = nil
		}
	}()
	if s.topo, err = sim.HydraShare(c.partitions); err != nil {
		return s, err
	}
	if err := s.topo.AttachHostsToEdge(edgeHosts, edgePorts); err != nil {
		return s, err
	}
	config := testbed.Config{Plan: c.plan(), CPU: -1}
	if c.shipped {
		config.Plan = nil
	}
	if s.control, err = testbed.Start(ctx, config); err != nil {
		return s, err
	}
	s.north, err = grpc.NewClient("passthrough:///"+s.control.North[0], grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return s, err
	}
	if err := s.addRules(ctx); err != nil {
		return s, err
	}
	if s.net, err = sim.New(sim.Config{Topology: s.topo, Version: openflow.V13, Address: s.control.OpenFlow[0]}); err != nil {
		return s, err
	}
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end, s.ended = end, make(chan error, 1)
	go func() { s.ended <- s.run(run, s.net) }() // with ctx's values: what it sets is declared
	return s, s.settle(ctx)
}

// run runs the switches on the second processor and before whatever else is
// there: what is measured is the controller's delay, not the generator's.
func (s *slice) run(ctx context.Context, net *sim.Network) error {
	if s.shipped {
		return net.Run(ctx)
	}
	_, second := two()
	return testbed.Urgent(ctx, "simulated switches", second, generatorNice, func() error { return net.Run(ctx) })
}

// generatorNice is the priority of the simulated switches.
const generatorNice = -15

// How long a controller may take to know a network: any, and for each switch.
const (
	settleWait      = 60 * time.Second
	settleForSwitch = 100 * time.Millisecond
)

// errUnsettled is why a controller cannot be measured.
var errUnsettled = errors.New("the controller does not get to know its network")

// settle waits until the controller knows all links, and lets all hosts speak.
func (s *slice) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWait+time.Duration(len(s.topo.Switches))*settleForSwitch)
	defer cancel()
	if err := s.net.WaitUp(ctx, 300*time.Millisecond); err != nil {
		return fmt.Errorf("%w: %w", errUnsettled, err)
	}
	links, hosts := 0, 0
	for {
		began := time.Now()
		l, err := api.NewDiscoveryClient(s.north).ListLinks(ctx, &api.ListLinksRequest{}) // an error is that it has no time to answer
		if err == nil {
			links = 0
			for _, one := range l.Links {
				if one.State == "up" {
					links++
				}
			}
		}
		if links == 2*len(s.topo.Links) {
			if _, _, err := s.net.Announce(ctx, 16, 50*time.Millisecond); err != nil {
				return err
			}
			h, failed := api.NewHostsClient(s.north).ListHosts(ctx, &api.ListHostsRequest{})
			if err = failed; err == nil {
				hosts = len(h.Hosts)
			}
			if hosts == len(s.topo.Hosts) {
				return nil
			}
		}
		if backoff.Sleep(ctx, min(max(200*time.Millisecond, 4*time.Since(began)), 2*time.Second)) != nil { // to ask for all links costs it something, too
			return fmt.Errorf("%w: %d of %d directions of links and %d of %d hosts: %w", errUnsettled, links, 2*len(s.topo.Links), hosts, len(s.topo.Hosts), cmp.Or(err, ctx.Err()))
		}
	}
}

// addRules loads rules of the generator that let all packets of the load
// pass: those that would not, and are about 10.0.0.0/8, where the hosts are,
// allow.
func (s *slice) addRules(ctx context.Context) error {
	calls := api.NewFirewallClient(s.north)
	rules := firewallRules(s.rules)
	for len(rules) > 0 {
		n := min(len(rules), 2000)
		if _, err := calls.AddFirewallRules(ctx, &api.AddFirewallRulesRequest{Rules: rules[:n], NoWait: true}, grpc.WaitForReady(true)); err != nil {
			return fmt.Errorf("load rules into the firewall: %w", err)
		}
		rules = rules[n:]
	}
	return nil
}

// firewallRules returns n rules like those of real access lists (ClassBench).
func firewallRules(n int) []*api.FirewallRule {
	rules := make([]*api.FirewallRule, 0, n)
	for i, r := range classbench.Generate(classbench.ACL, n, 1) {
		action := "allow"
		if r.Deny && !(overlapsHosts(r.Src) && overlapsHosts(r.Dst)) {
			action = "deny"
		}
		rules = append(rules, &api.FirewallRule{Id: fmt.Sprintf("hydra-%06d", i), Priority: uint32(65000 - i%60000), Action: action, Match: r.Match()})
	}
	return rules
}

// overlapsHosts reports whether a prefix is about hosts of the simulation.
func overlapsHosts(p netip.Prefix) bool { return p.Overlaps(netip.MustParsePrefix("10.0.0.0/8")) }

// fail takes links down and up again, one after the other, each for half of the
// time until the next, until ctx ends.
func (s *slice) fail(ctx context.Context, kind sim.Failure, every time.Duration, seed uint64) error {
	links, err := s.topo.PickLinks(kind, 1<<12, seed)
	if err != nil {
		return err
	}
	for _, link := range links {
		for _, up := range []bool{false, true} {
			if backoff.Sleep(ctx, every/2) != nil {
				return nil
			}
			if err := s.net.SetLink(context.WithoutCancel(ctx), link, up); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed returns err with what the controller said last.
func (s *slice) failed(err error) error {
	if s.control == nil || err == nil {
		return err
	}
	return s.control.Failed(err)
}

// Close ends switches and controller.
func (s *slice) Close() (err error) {
	if s == nil {
		return nil
	}
	if s.end != nil {
		s.end()
		err = <-s.ended
	}
	if s.north != nil {
		s.north.Close()
	}
	s.control.Stop()
	return err
}
