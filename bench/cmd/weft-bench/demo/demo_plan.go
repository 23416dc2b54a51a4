package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/lab/traffic"
	"github.com/weft-sdn/weft/plan"
)

// planned shows a controller that a plan has divided.
type planned struct{ *Demo }

// planSteps is what is shown of a controller in several processes.
func (d planned) planSteps() []demoStep {
	other := "scale"
	if d.plan == other {
		other = "split"
	}
	return []demoStep{
		{"weft get workers", d.showWorkers},
		{"routing worker killed (SIGKILL) under traffic", d.killRouting},
		{"plan " + other + " applied under traffic", func(ctx context.Context) (string, error) { return d.applyNamed(ctx, other) }},
		{"plan " + d.plan + " applied again under traffic", func(ctx context.Context) (string, error) { return d.applyNamed(ctx, d.plan) }},
		{"transports exchanged under traffic", d.exchangeTransports},
	}
}

// workers asks the controller for its processes.
func (d planned) workers(ctx context.Context) (m *api.ListWorkersResponse, err error) {
	err = d.Ask(ctx, func(n *cli.Controller) error {
		m, err = n.ListWorkers(n.Ctx, &api.ListWorkersRequest{})
		return err
	})
	return m, err
}

func (d planned) showWorkers(ctx context.Context) (string, error) {
	m, err := d.workers(ctx)
	if err != nil {
		return "", err
	}
	t := &cli.Table{Writer: tabwriter.NewWriter(d.out, 0, 8, 2, ' ', 0)}
	get.WorkersTable(t, m)
	if err := t.Flush(); err != nil {
		return "", err
	}
	up := count(m.Workers, func(w *api.Worker) bool { return w.State == "up" && w.Current })
	figure := fmt.Sprintf("%d processes of plan %s up", up, m.Plan)
	if up < len(m.Workers) {
		return figure, fmt.Errorf("of %d", len(m.Workers))
	}
	return figure, nil
}

// runs reports whether a worker runs a service.
func runs(w *api.Worker, service string) bool {
	return slices.ContainsFunc(w.Services, func(s *api.WorkerService) bool { return s.Name == service })
}

// killRouting kills the worker that programs routes, or one of its replicas,
// while packets run on routes that it has programmed and hosts look for others,
// and waits until it is back.
func (d planned) killRouting(ctx context.Context) (string, error) {
	m, err := d.workers(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(m.Workers, func(w *api.Worker) bool { return runs(w, "forwarding") })
	if i < 0 {
		return "", errors.New("no worker runs forwarding")
	}
	victim := m.Workers[i]
	var killed, back time.Time
	figure, err := d.underTraffic(ctx, func() error {
		killed = time.Now()
		if err := syscall.Kill(int(victim.Pid), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill %s: %w", victim.Process, err)
		}
		for time.Since(killed) < 15*time.Second && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			m, err := d.workers(ctx)
			if err != nil {
				continue // the gateway may be in the same process
			}
			for _, w := range m.Workers {
				if w.Process == victim.Process && w.State == "up" && w.Pid != victim.Pid {
					back = time.Now()
					return nil
				}
			}
		}
		return fmt.Errorf("%s is not back after 15 s; see weft get workers", victim.Process)
	})
	if !back.IsZero() {
		figure = fmt.Sprintf("%s, pid %d, back after %.1f s; %s", victim.Process, victim.Pid, back.Sub(killed).Seconds(), figure)
	}
	return figure, err
}

// applyNamed applies a plan under traffic.
func (d planned) applyNamed(ctx context.Context, name string) (string, error) {
	p, err := planner.ReadPlan(name)
	if err != nil {
		return "", err
	}
	var took time.Duration
	figure, err := d.underTraffic(ctx, func() (err error) {
		took, err = d.apply(ctx, p)
		return err
	})
	return fmt.Sprintf("%d processes, carried out in %.1f s; %s", len(p.Instances()), took.Seconds(), figure), err
}

// apply brings a plan into force and waits until all processes have carried it
// out.
func (d planned) apply(ctx context.Context, p *plan.Plan) (time.Duration, error) {
	text, err := p.YAML()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = d.Ask(ctx, func(n *cli.Controller) error {
		m, err := n.ApplyPlan(n.Ctx, &api.ApplyPlanRequest{Text: string(text)})
		if err != nil {
			return err
		}
		return planner.AwaitPlan(ctx, n, m.Generation, 20*time.Second, io.Discard)
	})
	return time.Since(began), err
}

// exchangeTransports has the processes speak to each other in every other way,
// and at last in the plan's own again, under traffic.
func (d planned) exchangeTransports(ctx context.Context) (string, error) {
	p, err := planner.ReadPlan(d.plan)
	if err != nil {
		return "", err
	}
	order := slices.DeleteFunc(plan.Transports(), func(t string) bool { return t == p.Transport })
	order = append(order, p.Transport)
	figure, err := d.underTraffic(ctx, func() error {
		for _, t := range order {
			next := *p
			next.Transport = t
			if _, err := d.apply(ctx, &next); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			time.Sleep(500 * time.Millisecond) // for packets to go that way
		}
		return nil
	})
	return fmt.Sprintf("%s, %s; %s", p.Transport, strings.Join(order, ", "), figure), err
}

// underTraffic does something while a host sends to another every 2 ms on
// routes that are there, and two others forget each other's address again and
// again and greet, which packets the controller has to answer. None may be
// lost.
func (d planned) underTraffic(ctx context.Context, do func() error) (string, error) {
	from, to, _, _, err := d.route(ctx)
	if err != nil {
		return "", err
	}
	var others []string
	for _, h := range d.Lab.Topology().Hosts {
		if h.Name != from && h.Name != to {
			others = append(others, h.Name)
		}
	}
	if len(others) < 2 {
		return "", errors.New("the network has fewer than four hosts")
	}
	ends, end := context.WithCancel(ctx)
	defer end()
	send := func(one func() traffic.PingResult) <-chan traffic.PingResult {
		result := make(chan traffic.PingResult, 1)
		go func() {
			var sum traffic.PingResult
			for ends.Err() == nil {
				r := one()
				sum.Sent, sum.Received, sum.Max = sum.Sent+r.Sent, sum.Received+r.Received, max(sum.Max, r.Max)
				if r.Error != "" {
					sum.Error = r.Error
				}
			}
			result <- sum
		}()
		return result
	}
	steady := send(func() traffic.PingResult { return <-d.stream(ctx, from, to, 50, wholeStream) })
	anew := send(func() traffic.PingResult {
		_, err := d.Lab.Exec(ctx, others[0], "ip", "neigh", "flush", "dev", "eth0")
		var r traffic.PingResult
		if err == nil {
			r, err = d.Lab.Ping(ctx, others[0], others[1], traffic.PingOptions{Count: 1, Timeout: 5 * time.Second})
		}
		if err != nil {
			r.Error = err.Error()
		}
		return r
	})
	time.Sleep(300 * time.Millisecond)
	err = do()
	time.Sleep(300 * time.Millisecond)
	end()
	s, a := <-steady, <-anew
	figure := fmt.Sprintf("%s to %s every 2 ms: %d of %d lost; %s to %s anew: %d of %d lost, slowest %.0f ms",
		from, to, s.Lost(), s.Sent, others[0], others[1], a.Lost(), a.Sent, a.Max)
	switch {
	case err != nil:
		return figure, err
	case s.Error+a.Error != "":
		return figure, errors.New(strings.TrimSpace(s.Error + " " + a.Error))
	case s.Lost()+a.Lost() > 0:
		return figure, errors.New("packets were lost")
	}
	return figure, nil
}

// endWorkers ends the processes of a plan that have outlived the one that kept
// them.
func (d planned) endWorkers() error {
	secret := filepath.Join(d.dir, "data", "bus.secret")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var left []int
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // it may have ended meanwhile
			args := strings.Split(string(line), "\x00")
			if len(args) > 2 && args[1] == "worker" && slices.Contains(args, secret) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes of the controller do not end: %v", left)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}
