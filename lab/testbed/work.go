package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// linkTime bounds what is asked of a machine about links, and the list of its labs.
// HalfApplied is the state of a lab whose apply was not finished.
const HalfApplied = "half applied: apply its file again"

const linkTime = 30 * time.Second

// Status says how the lab is, having asked its machines.
func (l *Lab) Status(ctx context.Context) lab.Status {
	t := l.Topology
	s := lab.Status{
		Name: l.Name, State: "up", Created: l.Created, Switches: len(t.Switches), Hosts: len(t.Hosts), Links: len(t.Links), Controllers: l.Controllers(),
	}
	if !l.Ready {
		s.State = "half made"
		return s
	}
	if l.Was != nil {
		s.State = HalfApplied
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	states := make([]lab.Status, len(l.Machines.List))
	err := l.each(func(at int, k *Machine) error {
		var labs []lab.Status
		if err := l.ask(ctx, k, &labs, nil, "list"); err != nil {
			return err
		}
		i := slices.IndexFunc(labs, func(s lab.Status) bool { return s.Name == PartName(l.Name, k.Name) })
		if i < 0 {
			return k.failed(errors.New("its part of the lab is not up"))
		}
		if states[at] = labs[i]; labs[i].State != "up" {
			return k.failed(errors.New(labs[i].State))
		}
		return nil
	})
	for _, p := range states {
		s.Programs += p.Programs
		s.Running += p.Running
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		s.State = "broken: " + first
	}
	return s
}

// Controllers are where the switches connect.
func (l *Lab) Controllers() []string {
	if l.Machines.Controller != "" {
		return []string{l.Machines.Controller}
	}
	return l.Topology.Controllers
}

// Links is every link as it is now, those of hosts first, of their eth1 last.
func (l *Lab) Links(ctx context.Context) ([]layout.LinkStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	found := make([][]layout.LinkStatus, len(l.Machines.List))
	err := l.each(func(at int, k *Machine) error {
		return l.ask(ctx, k, &found[at], nil, "link", "--name", PartName(l.Name, k.Name))
	})
	if err != nil {
		return nil, err
	}
	now := map[string]layout.LinkStatus{}
	for at, links := range found {
		for _, is := range links {
			if was, ok := now[is.A+" "+is.B]; ok { // cut: the other part's end of it
				is = joined(was, is)
			}
			now[is.A+" "+is.B], now[is.B+" "+is.A] = is, is
			if len(now) > 4*(len(l.Topology.Links)+2*len(l.Topology.Hosts)) {
				return nil, l.Machines.List[at].failed(errors.New("it has links that are not of the lab"))
			}
		}
	}
	all := lab.GraphOf(l.Topology).Links
	for i, is := range all {
		k, ok := now[is.A+" "+is.B]
		if !ok {
			return nil, fmt.Errorf("lab %s: no machine knows the link %s to %s", l.Name, is.A, is.B)
		}
		all[i].State, all[i].Shape, all[i].Made = k.State, k.Shape, k.Made
	}
	return all, nil
}

// joined is one link of what its two ends in different parts are.
func joined(a, b layout.LinkStatus) layout.LinkStatus {
	if a.State == layout.LinkIsUp {
		a.State = b.State
	}
	if a.Rate == 0 && a.Delay == 0 && a.Jitter == 0 && a.Loss == 0 {
		a.Shape = b.Shape
	}
	return a
}

// Link is the link between a and b as it is now; see lab.Lab.LinkDown for what a and b are.
func (l *Lab) Link(ctx context.Context, a, b string) (layout.LinkStatus, error) {
	links, err := l.Links(ctx)
	if err != nil {
		return layout.LinkStatus{}, err
	}
	i, err := find(links, a, b)
	if err != nil {
		return layout.LinkStatus{}, fmt.Errorf("lab %s: %w", l.Name, err)
	}
	return links[i], nil
}

// find returns the index of the one link between a and b.
func find(links []layout.LinkStatus, a, b string) (int, error) {
	is := func(end, ref string) bool {
		node, _, _ := strings.Cut(end, ":")
		return end == ref || node == ref
	}
	found, names := -1, []string{}
	for i, k := range links {
		if is(k.A, a) && is(k.B, b) || is(k.A, b) && is(k.B, a) {
			found = i
			names = append(names, k.A+" "+k.B)
		}
	}
	switch len(names) {
	case 0:
		return 0, fmt.Errorf("no link joins %s and %s; `weft lab link` shows those there are", a, b)
	case 1:
		return found, nil
	}
	return 0, fmt.Errorf("%d links join %s and %s: name one by its ports; allowed: %s", len(names), a, b, strings.Join(names, ", "))
}

// SetLink does to a link what `weft lab link A B` does with the action and flags: at both
// ends if its carrier is concerned, else where its rate, delay and loss are.
func (l *Lab) SetLink(ctx context.Context, a, b, action string, flags ...string) (layout.LinkStatus, error) {
	links := lab.GraphOf(l.Topology).Links
	i, err := find(links, a, b)
	if err != nil {
		return layout.LinkStatus{}, fmt.Errorf("lab %s: %w", l.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	first, second := links[i].A, links[i].B
	if _, ok := l.Topology.HostByName(second); ok { // a host has what its link does
		first, second = second, first
	}
	var at []*Machine
	for _, end := range []string{first, second} {
		node, _, _ := strings.Cut(end, ":")
		k, err := l.machine(node)
		if err != nil {
			return layout.LinkStatus{}, err
		}
		if len(at) == 0 || at[0].Name != k.Name {
			at = append(at, k)
		}
	}
	is := make([]layout.LinkStatus, len(at))
	errs := make([]error, len(at))
	var wg sync.WaitGroup
	for i, k := range at {
		wg.Go(func() {
			if i > 0 && action == "set" { // the first end's machine has the link's shape
				var all []layout.LinkStatus
				errs[i] = l.ask(ctx, k, &all, nil, "link", "--name", PartName(l.Name, k.Name))
				if at := slices.IndexFunc(all, func(s layout.LinkStatus) bool { return s.A == second && s.B == first }); at >= 0 {
					is[i] = all[at]
				}
				return
			}
			args := append([]string{"link", first, second, action, "--name", PartName(l.Name, k.Name)}, flags...)
			errs[i] = l.ask(ctx, k, &is[i], nil, args...)
		})
	}
	wg.Wait()
	now := links[i]
	now.State, now.Shape, now.Made = is[0].State, is[0].Shape, is[0].Made
	if len(is) > 1 && now.State == layout.LinkIsUp && is[1].State != "" {
		now.State = is[1].State
	}
	return now, errors.Join(errs...)
}

// Ping pings pairs of hosts from the machines that have the first of each. Lost packets are no
// error.
func (l *Lab) Ping(ctx context.Context, pairs []topology.Pair, opt traffic.PingOptions) ([]traffic.PingResult, error) {
	if opt.Count < 0 {
		return nil, errors.New("pinging until interrupted does not go over several machines: give a number by -c")
	}
	opt.Count, opt.Size, opt.Parallel = cmp.Or(opt.Count, 3), cmp.Or(opt.Size, 56), cmp.Or(opt.Parallel, 16)
	opt.Interval, opt.Timeout = cmp.Or(opt.Interval, 200*time.Millisecond), cmp.Or(opt.Timeout, time.Second)
	for _, p := range pairs {
		for _, h := range []string{p.From, p.To} {
			if _, ok := l.Topology.HostByName(h); !ok {
				return nil, fmt.Errorf("lab %s has no host %q", l.Name, h)
			}
		}
	}
	rounds := time.Duration(len(pairs)/max(1, opt.Parallel) + 1)
	ctx, cancel := context.WithTimeout(ctx, time.Minute+2*rounds*(time.Duration(opt.Count)*opt.Interval+opt.Timeout))
	defer cancel()
	found := map[topology.Pair]traffic.PingResult{}
	answers := make([][]traffic.PingResult, len(l.Machines.List))
	err := l.each(func(at int, k *Machine) error {
		var lines strings.Builder
		for _, p := range pairs {
			if l.Mapping.MachineOf(p.From) == k.Name {
				fmt.Fprintln(&lines, p.From, p.To)
			}
		}
		if lines.Len() == 0 {
			return nil
		}
		args := []string{
			"ping", "--pairs", "--name", PartName(l.Name, k.Name), "-c", strconv.Itoa(opt.Count), "-i", opt.Interval.String(),
			"-W", opt.Timeout.String(), "--size", strconv.Itoa(opt.Size), "--parallel", strconv.Itoa(opt.Parallel),
		}
		if opt.IPv6 {
			args = append(args, "-6")
		}
		err := l.ask(ctx, k, &answers[at], []byte(lines.String()), args...)
		if traffic.AnyLost(answers[at]) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		for _, r := range a {
			found[topology.Pair{From: r.From, To: r.To}] = r
		}
	}
	results := make([]traffic.PingResult, len(pairs))
	for i, p := range pairs {
		r, ok := found[p]
		if !ok {
			return nil, fmt.Errorf("the machine of %s did not say how %s answered", p.From, p.To)
		}
		results[i] = r
	}
	return results, nil
}
