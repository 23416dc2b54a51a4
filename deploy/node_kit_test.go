package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/port"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/shm"
	"github.com/weft-sdn/weft/transport/ws"
	"github.com/weft-sdn/weft/wefttest"
)

// cluster is several processes of a plan in one, connected by sockets.
type cluster struct {
	t      testing.TB
	store  *wefttest.Store
	bases  []weft.Spec // what the services declare
	setup  map[string]func(*actor)
	log    *bytes.Buffer
	tracer local.Tracer // of the nodes that are started
	// withdrawAfter is, if set, that of the nodes that are started.
	withdrawAfter time.Duration
	logMu         sync.Mutex

	mu        sync.Mutex // guards what follows
	processes map[string]*process
	live      map[string][]*actor // by service
	most      map[string]int      // by service: how many ran at once
	starts    map[string]int
}

// actor is one run of a service.
type actor struct {
	c       *cluster
	process string
	env     *weft.Env
	ctx     context.Context
}

// process is one that runs.
type process struct {
	name     string
	node     *deploy.Node
	gate     *gate
	registry *prometheus.Registry
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
}

// newCluster makes one whose services do what setup says; a service that is not
// named there does nothing.
func newCluster(t testing.TB, bases []weft.Spec, setup map[string]func(*actor)) *cluster {
	t.Helper()
	c := &cluster{
		t: t, store: wefttest.NewStore(), bases: bases, setup: setup, log: &bytes.Buffer{},
		processes: map[string]*process{}, live: map[string][]*actor{}, most: map[string]int{}, starts: map[string]int{},
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		c.mu.Lock()
		for _, p := range c.processes {
			all.Go(func() { p.gate.thaw(); p.stop() })
		}
		c.mu.Unlock()
		all.Wait()
		if t.Failed() {
			c.logMu.Lock()
			t.Log(c.log.String())
			c.logMu.Unlock()
		}
	})
	return c
}

// Write takes the log.
func (c *cluster) Write(b []byte) (int, error) {
	c.logMu.Lock()
	defer c.logMu.Unlock()
	return c.log.Write(b)
}

// specs returns the declarations, with Runs that take down who runs.
func (c *cluster) specs(process string) []weft.Spec {
	list := slices.Clone(c.bases)
	for i := range list {
		name := list[i].Name
		list[i].Run = func(ctx context.Context, env *weft.Env) error {
			p := &actor{c: c, process: process, env: env, ctx: ctx}
			c.mu.Lock()
			c.live[name] = append(c.live[name], p)
			c.starts[name]++
			c.most[name] = max(c.most[name], len(c.live[name]))
			c.mu.Unlock()
			defer func() {
				c.mu.Lock()
				c.live[name] = slices.DeleteFunc(c.live[name], func(o *actor) bool { return o == p })
				c.mu.Unlock()
			}()
			if f := c.setup[name]; f != nil {
				f(p)
			}
			return weft.Serve(ctx, env)
		}
	}
	return list
}

// apply brings a plan into force.
func (c *cluster) apply(text string) *members.Current {
	c.t.Helper()
	p, err := plan.Parse("test", []byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	d := c.directory()
	old, revision, err := d.Current(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	next, err := members.Succeed(old, p, c.bases)
	if err == nil {
		err = d.Put(context.Background(), next, revision)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return next
}

func (c *cluster) directory() *members.Directory {
	c.t.Helper()
	d, err := members.OpenDirectory(context.Background(), c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// start starts a process.
func (c *cluster) start(name string, change ...func(*deploy.NodeConfig)) *process {
	c.t.Helper()
	p := &process{name: name, gate: newGate(), registry: prometheus.NewRegistry(), done: make(chan struct{})}
	config := deploy.NodeConfig{
		Process: name, Specs: c.specs(name), Store: gatedStore{c.store, p.gate}, Registry: p.registry, Gatherer: p.registry, Tracer: c.tracer,
		Log:        slog.New(slog.NewTextHandler(c, nil)).With("process", name),
		Transports: map[string]transport.Transport{},
		Secure:     func(string) (bool, error) { return false, nil },
		Listen: func(h transport.Handler) (map[string]string, io.Closer, error) {
			l, err := port.Listen("127.0.0.1:0", port.Config{Handler: gatedHandler{h, p.gate}})
			if err != nil {
				return nil, nil, err
			}
			memory, err := shm.New(nil).Listen("unix:"+c.t.TempDir()+"/s", gatedHandler{h, p.gate})
			if err != nil {
				return nil, nil, errors.Join(err, l.Close())
			}
			p.gate.listener = both{l, memory}
			return map[string]string{"grpc": l.Address(), "ws": l.Address(), "rest": l.Address(), "shm": memory.Address()}, p.gate.listener, nil
		},
	}
	for name, t := range map[string]transport.Transport{"grpc": grpc.New(nil), "ws": ws.New(nil), "rest": rest.New(nil), "shm": shm.New(nil)} {
		config.Transports[name] = gatedTransport{t, p.gate}
	}
	for _, f := range change {
		f(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n, err := deploy.Join(ctx, config)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.withdrawAfter > 0 {
		n.SetWithdrawAfter(c.withdrawAfter)
	}
	p.node, p.cancel = n, cancel
	c.mu.Lock()
	c.processes[name] = p
	c.mu.Unlock()
	go func() {
		defer close(p.done)
		p.err = n.Run(ctx)
	}()
	return p
}

// startAll starts all processes of the plan in force that do not run, ends
// those that are not in it, as the supervisor does, and waits until all have
// carried the plan out.
func (c *cluster) startAll() {
	c.t.Helper()
	c.reconcile()
	c.settled()
}

func (c *cluster) reconcile() {
	c.t.Helper()
	current, _, err := c.directory().Current(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, i := range current.InForce().Instances() {
		if c.process(current.ProcessOf(i.Name)) == nil {
			c.start(current.ProcessOf(i.Name))
		}
	}
}

func (c *cluster) process(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[name]
}

// settled waits until all processes of the plan have carried it out.
func (c *cluster) settled() {
	c.t.Helper()
	c.eventually("the plan is carried out", func() bool {
		current, _, err := c.directory().Current(context.Background())
		if err != nil {
			c.t.Fatal(err)
		}
		entries, err := c.directory().Entries(context.Background())
		if err != nil {
			c.t.Fatal(err)
		}
		done := map[string]bool{}
		for _, e := range entries {
			done[e.Process] = e.Generation == current.Generation && !slices.ContainsFunc(e.Services, func(s members.ServiceState) bool { return s.State != members.StateReady })
		}
		for _, i := range current.InForce().Instances() {
			if !done[current.ProcessOf(i.Name)] {
				return false
			}
		}
		return true
	})
}

// eventually waits until something is so.
func (c *cluster) eventually(what string, so func() bool) {
	c.t.Helper()
	for end := time.Now().Add(testwait.Limit); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("not within %v: %s", testwait.Limit, what)
		}
	}
}

// runs returns the runs of a service, when there are as many as wanted.
func (c *cluster) runs(service string, count int) []*actor {
	c.t.Helper()
	var list []*actor
	c.eventually(fmt.Sprintf("%d runs of %s", count, service), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		list = slices.Clone(c.live[service])
		return len(list) == count
	})
	slices.SortFunc(list, func(a, b *actor) int {
		if a.process < b.process {
			return -1
		}
		return 1
	})
	return list
}

func (c *cluster) run(service string) *actor { c.t.Helper(); return c.runs(service, 1)[0] }

// stop ends a process in order.
func (p *process) stop() { p.cancel(); <-p.done }

// leave ends a process in order and takes it off the cluster.
func (c *cluster) leave(p *process) error {
	p.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.processes[p.name] == p {
		delete(c.processes, p.name)
	}
	return p.err
}

// kill ends a process without its doing anything about it, and, as the
// supervisor does when it sees that, takes its entry out.
func (c *cluster) kill(p *process) {
	p.gate.kill()
	_ = c.leave(p)
	c.bury(p.name)
}

func (c *cluster) bury(name string) {
	if err := c.directory().Remove(context.Background(), name); err != nil {
		c.t.Fatal(err)
	}
}

// metric returns the sum of a metric of a process over its labels, which
// contain the given value if it is not empty.
func (p *process) metric(t testing.TB, name, label string) (sum float64) {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := label == ""
			for _, l := range m.GetLabel() {
				has = has || l.GetValue() == label
			}
			if f.GetName() == name && has {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// names returns the processes that run.
func (c *cluster) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.processes))
}
