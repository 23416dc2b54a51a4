package virtual

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/services/southbound"
	"github.com/weft-sdn/weft/transport"
)

// process is one run of a process of the plan.
type process struct {
	name     string
	run      int
	gate     *gate
	registry *prometheus.Registry
	listener io.Closer
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
}

// cluster is the controller: the processes of the plan in force, which it starts,
// and starts again, as the supervisor does.
type cluster struct {
	w     *world
	log   io.Writer
	skews func() time.Duration // of the store's clock, as the next process will read it

	mu        sync.Mutex // guards what follows
	processes map[string]*process
	current   *members.Current // what is in force
	runs      int
	stopping  bool
	witnesses []*witness
}

// specs are the services of a process of the plan: all, the southbound on the
// network in memory, and the witness.
func (c *cluster) specs(g *gate) []weft.Spec {
	list := services.All(gateway.Process{Name: g.process})
	for i := range list {
		if list[i].Name == "southbound" {
			list[i] = southbound.SpecOn(c.w.wires.listen(g))
		}
	}
	list = slices.DeleteFunc(list, func(s weft.Spec) bool { return s.Name == "gateway" || s.Name == "ryu" || s.Name == "intake" })
	return append(list, c.witness(g))
}

// apply brings a plan into force, over the one that is.
func (c *cluster) apply(ctx context.Context, text string) error {
	p, err := plan.Parse("virtual", []byte(text))
	if err != nil {
		return err
	}
	specs := c.specs(newGate("check"))
	if err := config.CheckPlan(p, specs); err != nil {
		return err
	}
	d, err := members.OpenDirectory(ctx, c.w.bus.Store)
	if err != nil {
		return err
	}
	old, revision, err := d.Current(ctx)
	if err != nil {
		return err
	}
	next, err := members.Succeed(old, p, specs)
	if err != nil {
		return err
	}
	if err := d.Put(ctx, next, revision); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = next
	return nil
}

// supervise keeps one process for each instance of the plan in force until ctx
// ends, and ends those that are in it no more.
func (c *cluster) supervise(ctx context.Context) {
	d, err := members.OpenDirectory(ctx, c.w.bus.Store)
	if err != nil {
		panic(err)
	}
	failed := map[string]int{}
	for {
		c.mu.Lock()
		current := c.current
		c.mu.Unlock()
		if current != nil {
			wanted := map[string]bool{}
			for _, i := range current.InForce().Instances() {
				wanted[current.ProcessOf(i.Name)] = true
			}
			for _, name := range sorted(wanted) {
				p := c.process(name)
				if p != nil && !p.ended() {
					continue
				}
				if p != nil { // as the supervisor: it is not there any more, whatever it says
					c.w.logf("process %s has ended: %v", name, p.err)
					failed[name]++
					_ = d.Remove(ctx, name)
				}
				c.start(ctx, name)
			}
			for _, p := range c.all() {
				if !wanted[p.name] && p.ended() {
					_ = d.Remove(ctx, p.name)
					c.forget(p)
				}
			}
			c.endUnwanted(wanted)
		}
		if !rest(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// endUnwanted ends, in order, processes of which the plan has no instance any more.
func (c *cluster) endUnwanted(wanted map[string]bool) {
	for _, p := range c.all() {
		if !wanted[p.name] {
			p.cancel()
		}
	}
}

func (c *cluster) process(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[name]
}

func (c *cluster) forget(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.processes[p.name] == p {
		delete(c.processes, p.name)
	}
}

// all returns the processes in the order of their names.
func (c *cluster) all() (list []*process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range sorted(c.processes) {
		list = append(list, c.processes[name])
	}
	return list
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return p.gate.dead()
	}
}

// start starts a process.
func (c *cluster) start(ctx context.Context, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	c.runs++
	p := &process{name: name, run: c.runs, gate: newGate(name), registry: prometheus.NewRegistry(), done: make(chan struct{})}
	own, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	c.processes[name] = p
	log := slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelInfo})).With("process", fmt.Sprintf("%s#%d", name, p.run))
	config := deploy.NodeConfig{
		Process: name, Specs: c.specs(p.gate), Store: &seat{c.w.bus, p.gate, c.skews()}, Registry: p.registry, Gatherer: p.registry, Log: log,
		Transports: map[string]transport.Transport{"grpc": end{c.w.paths, p.gate}},
		Listen: func(h transport.Handler) (map[string]string, io.Closer, error) {
			l, err := end{c.w.paths, p.gate}.Listen(fmt.Sprintf("%s#%d", name, p.run), h)
			if err != nil {
				return nil, nil, err
			}
			c.mu.Lock()
			p.listener = l
			c.mu.Unlock()
			return map[string]string{"grpc": l.Address()}, l, nil
		},
	}
	c.w.work.Go(func() {
		defer close(p.done)
		n, err := deploy.Join(own, config)
		if err == nil {
			err = n.Run(own)
		}
		p.err = err
		p.gate.kill() // with a process, all that it has open is closed
	})
}

// kill ends a process as SIGKILL does.
func (c *cluster) kill(p *process) {
	c.mu.Lock()
	listener := p.listener
	c.mu.Unlock()
	p.gate.kill()
	if listener != nil {
		_ = listener.Close()
	}
	p.cancel()
}

// stop ends all processes, in order.
func (c *cluster) stop() {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	for _, p := range c.all() {
		p.gate.resume()
		p.cancel()
	}
}

// witness is a service of the test's: it calls the others and hears their events.
type witness struct {
	process string
	env     *weft.Env
	gate    *gate
	facts   *facts
}
