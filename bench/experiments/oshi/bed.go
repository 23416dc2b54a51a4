package oshi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/test/measure"
	"github.com/weft-sdn/weft/test/testbed"
)

// bed is a lab. Without a controller its entries are written here, as the services
// of Weft would write them.
type bed struct {
	*lab.Lab
	control *testbed.Controller // nil: none
	topo    *topology.Topology
	stops   []func()         // of processes that were started in it
	made    map[string]error // what cases need there, and why they do not have it
}

// openBed brings a lab up, with a controller or none, and waits until its nodes
// route. On an error the controller is left to the caller.
func openBed(ctx context.Context, label string, topo *topology.Topology, control *testbed.Controller) (b *bed, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the lab makes network namespaces and so needs root; try sudo")
	}
	weft, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	controller, keep := topology.ControllerNone, []string{weft, "lab", "keeper"}
	if control != nil {
		controller = "tcp:" + control.OpenFlow[0]
		keep = append([]string{"env", "WEFT_SERVER=http://" + control.North[0]}, keep...) // to whom nodes are reported
	}
	l, err := lab.Up(ctx, topo, lab.Options{
		Temporary: true, Name: fmt.Sprintf("exp-%d-%s", os.Getpid(), label), Weft: weft,
		Controllers: []string{controller}, KeeperCommand: keep,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	b = &bed{Lab: l, control: control, topo: l.Topology(), made: map[string]error{}}
	if err := b.routed(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", label, err), b.Down(context.Background()))
	}
	return b, nil
}

// openFirst is openBed without a controller and with an Open vSwitch that runs before all else.
func openFirst(ctx context.Context, label string, topo *topology.Topology) (*bed, error) {
	b, err := openBed(ctx, label, topo, nil)
	if err != nil {
		return nil, err
	}
	if err := b.first(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close takes it down.
func (b *bed) Close() error {
	for _, stop := range b.stops {
		stop()
	}
	if b.control != nil {
		defer b.control.Stop()
	}
	return b.Down(context.Background())
}

// routingTime is how long OSPF may take until all neighbours are known.
const routingTime = 60 * time.Second

// routed waits until every node has all its neighbours.
func (b *bed) routed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, routingTime)
	defer cancel()
	for {
		nodes, err := b.Nodes(ctx)
		if err != nil {
			return err
		}
		open := ""
		for _, n := range nodes {
			if n.OSPFFull != n.OSPFExpected || n.Dark {
				open = fmt.Sprintf("node %s has %d of %d neighbours", n.Name, n.OSPFFull, n.OSPFExpected)
			}
		}
		if open == "" {
			return nil
		}
		if backoff.Sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("no routing after %v: %s", routingTime, open)
		}
	}
}

// port is a switch's port to a host or another switch.
func (b *bed) port(sw, to string) int {
	for _, h := range b.topo.Hosts {
		if h.Name == to && h.Switch == sw {
			return int(h.Port)
		}
	}
	for _, l := range b.topo.Links {
		switch {
		case l.A == sw && l.B == to:
			return int(l.APort)
		case l.A == to && l.B == sw:
			return int(l.BPort)
		}
	}
	panic(fmt.Sprintf("no link between %s and %s", sw, to)) // a mistake of the program
}

// add adds a flow entry to a switch: its match and its actions, as ovs-ofctl has
// them.
func (b *bed) add(ctx context.Context, sw string, table uint8, match, actions string) error {
	entry := fmt.Sprintf("table=%d,priority=%d,%s,actions=%s", table, flow.PriorityOperator, match, actions)
	if _, err := b.OfCtl(ctx, sw, "add-flow", entry); err != nil {
		return fmt.Errorf("switch %s: %s: %w", sw, entry, err)
	}
	return nil
}

// dir is the directory of the Open vSwitch of a switch.
func (b *bed) dir(sw string) (string, error) {
	of, ok := b.topo.SwitchByName(sw)
	if b.topo.OVS != topology.OVSOwn || ok && of.Kind != topology.KindHybrid {
		return b.Dir(), nil
	}
	bridge, err := b.Bridge(sw)
	return filepath.Join(b.Dir(), bridge), err
}

// vsctl runs ovs-vsctl on the database of a switch.
func (b *bed) vsctl(ctx context.Context, sw string, args ...string) (string, error) {
	dir, err := b.dir(sw)
	if err != nil {
		return "", err
	}
	return tool(ctx, "ovs-vsctl", append([]string{"--db=unix:" + filepath.Join(dir, "db.sock"), "--timeout=20"}, args...)...)
}

// appctl runs ovs-appctl on the ovs-vswitchd of a switch.
func (b *bed) appctl(ctx context.Context, sw string, args ...string) (string, error) {
	dir, err := b.dir(sw)
	if err != nil {
		return "", err
	}
	return tool(ctx, "ovs-appctl", append([]string{"-t", filepath.Join(dir, "ovs-vswitchd.ctl")}, args...)...)
}

// tool runs a program to its end and returns what it wrote.
func tool(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// switching is the processor time of the ovs-vswitchd of a switch. What the kernel
// does with a packet that it sends is in it: the routing of hybrid nodes.
func (b *bed) switching(sw string) (time.Duration, error) {
	dir, err := b.dir(sw)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "ovs-vswitchd.pid"))
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, err
	}
	return cputime.Of(pid)
}

// first has Open vSwitch run before all else on the machine, so that how many
// packets it deals with at once, and what each costs it, is not others' doing.
func (b *bed) first(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(b.Dir(), "*", "ovs-vswitchd.pid"))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(b.Dir(), "ovs-vswitchd.pid")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%s/task/*", strings.TrimSpace(string(text))))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(filepath.Base(thread))
			if err == nil {
				err = threadFirst(tid)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("set the scheduling of ovs-vswitchd: %w", err)
			}
		}
	}
	measure.Differs(ctx, "Open vSwitch and the source of packets before all else (SCHED_FIFO)")
	return nil
}

// threadFirst has a thread run before all else; 0 is this one.
func threadFirst(tid int) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10}, 0)
}

// common is a bed that cases share.
type common = experiments.Shared[*bed]

// user is a case on a common bed.
type user struct {
	from   *common
	sample func(ctx context.Context) ([][]string, error)
}

// Sample takes the samples of a round.
func (u *user) Sample(ctx context.Context, _ int) ([][]string, error) { return u.sample(ctx) }

// Close gives the bed back.
func (u *user) Close() error { return u.from.Leave() }

// use is a case on a common bed: prepare makes what it needs there, once.
func use(from *common, name string, prepare func(context.Context, *bed) error, sample func(context.Context, *bed) ([][]string, error)) experiments.Case {
	return experiments.Case{Name: name, Setup: experiments.Setup{Services: "the lab's nodes, all there at once", Priority: "Open vSwitch as the lab starts it",
		Processors: experiments.AsStarted, Load: "the same packets at the same rates"}, Open: func(ctx context.Context, _ *experiments.Context) (experiments.Subject, error) {
		b, err := from.Take(ctx)
		if err != nil {
			return nil, err
		}
		err, made := b.made[name]
		if !made {
			err = prepare(ctx, b)
			b.made[name] = err
		}
		if err != nil {
			return nil, errors.Join(err, from.Leave())
		}
		return &user{from, func(ctx context.Context) ([][]string, error) { return sample(ctx, b) }}, nil
	}}
}
