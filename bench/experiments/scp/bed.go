package scp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/agents"
	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/lab/topology"
)

// setup is one way from consumer to producer.
type setup struct {
	kind      agents.Kind // empty: no agent
	name      string
	colocated bool
}

// The setups without agents: plain forwarding, and a virtual address with entries
// for each pair of consumer and producer.
const (
	direct = "direct"
	sdn    = "sdn"
)

// setups are those that can be measured here: with every kind of agent that is
// installed.
func setups() []setup {
	list := []setup{{name: direct}, {name: sdn}}
	for _, k := range installed() {
		list = append(list, setup{k, "independent-" + string(k), false}, setup{k, "co-located-" + string(k), true})
	}
	return list
}

// installed are the kinds of agents that there are here.
func installed() []agents.Kind {
	return slices.DeleteFunc(agents.Kinds(), func(k agents.Kind) bool {
		_, err := exec.LookPath(string(k))
		return k != agents.Go && err != nil
	})
}

// The addresses of the bed, and the ports of the first agents.
var (
	producerAt = netip.MustParseAddr("10.0.0.4")
	agentAt    = netip.MustParseAddr("10.0.0.3")
	vipAt      = netip.MustParseAddr("10.0.0.200")
)

const (
	independentPort = 8000
	consumerPort    = 8100
	behindPort      = 8200
	// userHost asks by the virtual address: a consumer of its own at the same switch,
	// because the entries of a pair are in the way of the consumer's connections to the
	// member's own address.
	userHost = "user"
)

// bed is consumer and producer at a switch each, and agents of all kinds in both
// and in a host of their own, which idle while it is not their turn.
type bed struct {
	*site
	scripts string // directory of the agents'
	self    string
	switchd int // Open vSwitch's process
}

// openBed brings it up. A controller with settings other than a user's has config.
func openBed(ctx context.Context, label string, config map[string]map[string]string) (b *bed, err error) {
	b = &bed{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.self, err = companion.Find("weft"); err != nil {
		return b, err
	}
	if b.scripts, err = os.MkdirTemp("", "weft-experiment-"); err != nil {
		return b, err
	}
	scripts, err := agents.Write(filepath.Join(b.scripts, "agents"))
	if err != nil {
		return b, err
	}
	plan, err := everything("scp-"+label, config)
	if err != nil {
		return b, err
	}
	if b.site, err = open(ctx, label, plan, bedTopology(scripts), b.scripts); err != nil {
		b.site = nil
		return b, err
	}
	text, err := os.ReadFile(filepath.Join(b.lab.Dir(), "ovs-vswitchd.pid"))
	if err == nil {
		b.switchd, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return b, err
}

// bedTopology is the network with its programs.
func bedTopology(s agents.Scripts) *topology.Topology {
	host := func(name, sw, address string, run ...topology.Program) topology.Host {
		return topology.Host{Name: name, Switch: sw, IPv4: netip.MustParsePrefix(address + "/16"), Run: run}
	}
	producer := []topology.Program{{Name: "udm", Command: "weft nf udm --nrf http://10.0.0.1:7777"}}
	var consumer, agent []topology.Program
	at := func(a netip.Addr, port int) netip.AddrPort { return netip.AddrPortFrom(a, uint16(port)) }
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for i, k := range installed() {
		agent = append(agent, s.Program(k, at(agentAt, independentPort+i), at(producerAt, nfPort)))
		consumer = append(consumer, s.Program(k, at(loopback, consumerPort+i), at(producerAt, behindPort+i)))
		producer = append(producer, s.Behind(k, at(producerAt, behindPort+i), at(producerAt, nfPort)))
	}
	return &topology.Topology{
		Switches: []topology.Switch{{Name: "s1"}, {Name: "s2"}}, Links: []topology.Link{{A: "s1", B: "s2"}},
		Hosts: []topology.Host{
			host("nrf", "s1", "10.0.0.1", topology.Program{Name: "nrf", Command: "weft nf nrf"}), host("consumer", "s1", "10.0.0.2", consumer...), host(userHost, "s1", "10.0.0.5"),
			host("agent", "s2", agentAt.String(), agent...), host("producer", "s2", producerAt.String(), producer...),
		},
	}
}

// Close takes all of it down.
func (b *bed) Close() (err error) {
	if b.site != nil {
		err = b.site.Close()
	}
	return errors.Join(err, os.RemoveAll(b.scripts))
}

// prepare makes what a setup needs, and waits until requests get through.
func (b *bed) prepare(ctx context.Context, of setup) error {
	if of.name == sdn {
		conn, err := b.Northbound()
		if err != nil {
			return err
		}
		_, err = api.NewBalancerClient(conn).SetVip(ctx, &api.SetVipRequest{Vip: &api.Vip{
			Name: "udm", Address: vipAt.String(), Protocol: "tcp", Port: nfPort, Per: "pair", Pool: []*api.PoolMember{{Address: producerAt.String(), Port: nfPort}},
		}})
		if err != nil {
			return b.Failed(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		r, err := b.load(ctx, of, 200*time.Millisecond, "--connections", "1", "--timeout", "1s")
		if err == nil && r.Done > 0 && len(r.Failures) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return b.Failed(fmt.Errorf("no request gets through by %s: %w", of.name, err))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// target is where the consumer sends its requests.
func (of setup) target() string {
	at := netip.AddrPortFrom(producerAt, nfPort)
	i := slices.Index(installed(), of.kind)
	switch {
	case of.name == sdn:
		at = netip.AddrPortFrom(vipAt, nfPort)
	case of.colocated:
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(consumerPort+i))
	case of.kind != "":
		at = netip.AddrPortFrom(agentAt, uint16(independentPort+i))
	}
	return "http://" + at.String() + "/nudm-sdm/v2/imsi-1/am-data"
}

// consumer is the host that asks.
func (of setup) consumer() string {
	if of.name == sdn {
		return userHost
	}
	return "consumer"
}

// loaded is what a load has measured.
type loaded struct {
	*httpload.Result
	cpu     time.Duration // of all processes on the path but the consumer's
	packets int64         // that the switches have taken in
}

// failed is how many requests were not answered well.
func (l loaded) failed() (n int) {
	for _, k := range l.Failures {
		n += k
	}
	return n
}

// load has the consumer send requests for a time.
func (b *bed) load(ctx context.Context, of setup, length time.Duration, flags ...string) (l loaded, err error) {
	path, err := b.path(ctx, of)
	if err != nil {
		return l, err
	}
	packets, err := b.packets(ctx)
	if err != nil {
		return l, err
	}
	before := b.used(path)
	cmd := exec.CommandContext(ctx, b.self, slices.Concat([]string{"bench", "http", of.target(), "-o", "json", "--warmup", "0s", "--duration", length.String()}, flags)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	if err := b.lab.StartCmd(of.consumer(), cmd); err != nil {
		return l, err
	}
	err = cmd.Wait()
	l.cpu = b.used(path) - before
	if err != nil {
		return l, fmt.Errorf("load %s: %w: %s", of.name, err, bytes.TrimSpace(said.Bytes()))
	}
	if l.packets, err = b.packets(ctx); err != nil {
		return l, err
	}
	l.packets -= packets
	return l, json.Unmarshal(out.Bytes(), &l.Result)
}

// packets is how many packets Open vSwitch has received at all ports of its switches.
func (b *bed) packets(ctx context.Context) (n int64, err error) {
	out, err := exec.CommandContext(ctx, "ovs-appctl", "-t", filepath.Join(b.lab.Dir(), "ovs-vswitchd.ctl"), "dpif-netdev/pmd-stats-show").Output()
	_, text, found := strings.Cut(string(out), "packets received:")
	if err != nil || !found {
		return 0, fmt.Errorf("count packets: %w: %q", err, out)
	}
	_, err = fmt.Sscan(text, &n)
	return n, err
}

// path returns the processes between consumer and producer, that of the producer
// among them, and the agents' of the setup; without the controller's.
func (b *bed) path(ctx context.Context, of setup) ([]int, error) {
	list := []int{b.switchd}
	for _, p := range b.lab.Programs(ctx) {
		on := p.Host == "producer" && p.Name == "udm"
		if of.kind != "" && p.Name == string(of.kind) {
			on = on || of.colocated == (p.Host != "agent")
		}
		if on && p.PID == 0 {
			return nil, fmt.Errorf("%s of host %s is %s: %s", p.Name, p.Host, p.State, b.lab.LastWords(p.Host, p.Name))
		}
		if on {
			list = append(list, p.PID)
		}
	}
	return list, nil
}

// used is the processor time of processes, of their children, and of the
// controller.
func (b *bed) used(list []int) time.Duration {
	return b.CPUTime() + cputime.Sum(cputime.Descendants(list...)...)
}

// common is a bed that cases share.
type common = experiments.Shared[*bed]

// user is a setup that is measured on a common bed.
type user struct {
	*bed
	of     setup
	from   *common
	sample func(ctx context.Context, u *user) ([][]string, error)
}

// Sample takes the samples of a round.
func (u *user) Sample(ctx context.Context, _ int) ([][]string, error) { return u.sample(ctx, u) }

// Close gives the bed back.
func (u *user) Close() error { return u.from.Leave() }

// use is the case of a setup on a common bed.
func use(from *common, of setup, sample func(context.Context, *user) ([][]string, error)) experiments.Case {
	return experiments.Case{Name: of.name, Setup: experiments.Setup{Services: "all of the plan 5gc, one controller for all setups", Priority: experiments.AsStarted,
		Processors: experiments.AsStarted, Load: "weft bench http, alike"}, Open: func(ctx context.Context, _ *experiments.Context) (experiments.Subject, error) {
		b, err := from.Take(ctx)
		if err != nil {
			return nil, err
		}
		if err := b.prepare(ctx, of); err != nil {
			return nil, errors.Join(err, from.Leave())
		}
		return &user{b, of, from, sample}, nil
	}}
}

// kindOf is what the paper compares: direct, sdn, or agents independent or co-located.
func kindOf(name string) string {
	for _, kind := range []string{"independent", "co-located"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	return name
}
