package stats

import (
	"cmp"
	"context"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// Network is the part of the southbound that the service uses.
type Network interface {
	// ReadPorts returns the port counters of a switch.
	ReadPorts(ctx context.Context, sw flow.DPID) ([]*api.PortStats, error)
	// ReadTables returns the table counters of a switch.
	ReadTables(ctx context.Context, sw flow.DPID) ([]*api.TableStats, error)
	// ReadFlows returns the flow entries of a switch, with their counters.
	ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error)
}

// Poller reads the counters of all connected switches again and again. One
// goroutine at a time reads a switch, so readings never overlap.
type Poller struct {
	net     Network
	metrics *metrics
	seed    maphash.Seed

	mu       sync.Mutex // guards what follows
	cfg      *Config
	switches map[flow.DPID]*target
	entries  int // flow entries of all switches
	up       int // switches that are connected
	waiting  queue
	last     time.Time     // when the switch that connected last is read first
	busy     int           // switches being read
	bell     chan struct{} // holds one: something is due earlier
}

// target is one switch to be read.
type target struct {
	sw        flow.DPID
	connected bool
	session   uint64 // grows with each connection
	began     string // when and from where that was, as the southbound reports it
	polling   bool
	metrics   bool // it has some of its own
	due       time.Time
	flowsDue  time.Time
	pace      pace
	sample    sample
	at        int // place in the queue, -1 outside
}

// NewPoller returns a poller of no switches yet.
func NewPoller(cfg *Config, net Network, m Meters) *Poller {
	p := &Poller{cfg: cfg, net: net, seed: maphash.MakeSeed(), switches: map[flow.DPID]*target{}, bell: make(chan struct{}, 1)}
	p.metrics = newMetrics(m, p)
	return p
}

// SwitchChanged follows a switch that comes or goes.
func (p *Poller) SwitchChanged(e *api.SwitchChanged) {
	p.switchChanged(e.GetSwitch(), time.Now(), rand.Float64())
}

// SwitchForgotten handles the event: it drops the switch, except that one with
// metrics of its own keeps these, at 0.
func (p *Poller) SwitchForgotten(_ context.Context, e *api.SwitchForgotten) {
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.switches[sw]; t != nil && !t.connected {
		if t.sample = (sample{}); !t.metrics {
			delete(p.switches, sw)
		}
	}
}

// switchChanged applies the state of a switch. A switch that connects without
// having left has a new session, because the southbound has restarted; an event
// about the same session changes nothing.
func (p *Poller) switchChanged(s *api.Switch, now time.Time, jitter float64) {
	sw, err := flow.ParseDPID(s.GetDpid())
	if err != nil {
		return
	}
	var fresh *target
	defer func() {
		if fresh != nil { // after unlocking: whoever reads figures locks, too
			p.metrics.register(p, fresh)
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.switches[sw]
	if t == nil {
		t = &target{sw: sw, at: -1}
		p.switches[sw] = t
		if p.metrics.admit() {
			t.metrics, fresh = true, t
		}
	}
	began := s.GetSince() + " " + s.GetAddress()
	if s.GetConnected() && t.connected && s.GetSince() != "" && began == t.began {
		return
	}
	t.began = began
	switch {
	case s.GetConnected() && !t.connected:
		p.up++
		p.entries += t.sample.sum.entries
	case !s.GetConnected() && t.connected:
		p.up--
		p.entries -= t.sample.sum.entries
	}
	t.connected = s.GetConnected()
	p.waiting.remove(t)
	t.sample.restart()
	if !t.connected {
		return
	}
	t.session++
	t.pace = pace{}
	t.due, t.flowsDue = firstReadings(p.cfg, p.load(), p.last, now, jitter)
	p.last = t.due
	if !t.polling {
		p.enqueue(t)
	}
}

// Reconfigure applies a configuration with another pace: readings that are due
// later than it allows are moved forward.
func (p *Poller) Reconfigure(c *Config) { p.reconfigure(c, time.Now(), rand.Float64) }

func (p *Poller) reconfigure(c *Config, now time.Time, jitter func() float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg = c
	for _, t := range p.switches {
		if !t.connected || t.polling {
			continue
		}
		p.waiting.remove(t)
		if due := now.Add(jittered(portInterval(c, p.load(), t.pace), jitter())); due.Before(t.due) {
			t.due = due
		}
		if due := now.Add(jittered(flowInterval(c, p.load(), t.pace), jitter())); due.Before(t.flowsDue) {
			t.flowsDue = due
		}
		p.waiting.add(t)
	}
	p.ring()
}

// load returns the size of the network. The caller holds mu.
func (p *Poller) load() load { return load{switches: p.up, entries: p.entries} }

// enqueue queues a switch for when it is due. The caller holds mu.
func (p *Poller) enqueue(t *target) {
	p.waiting.add(t)
	if p.waiting.first() == t {
		p.ring()
	}
}

func (p *Poller) ring() { object.Notify(p.bell) }

// gather is how long readings wait for others, so that the process wakes up
// for several at a time.
const gather = 50 * time.Millisecond

// Serve reads switches until ctx ends.
func (p *Poller) Serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		jobs, wake := p.take(time.Now())
		for _, j := range jobs {
			wg.Go(func() { p.poll(ctx, j) })
		}
		var alarm <-chan time.Time
		if !wake.IsZero() {
			timer.Reset(max(time.Until(wake), gather))
			alarm = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-p.bell:
		case <-alarm:
		}
	}
}

// job is one reading of one switch.
type job struct {
	target  *target
	session uint64
	flows   bool // tables and flow entries, too
}

// take returns the readings that are due, as many as may run, and when the next
// is due; zero if that depends on the end of another.
func (p *Poller) take(now time.Time) (jobs []job, wake time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		t := p.waiting.first()
		switch {
		case t == nil || p.busy >= p.cfg.Parallel:
			return jobs, time.Time{}
		case t.due.After(now):
			return jobs, t.due
		}
		p.waiting.remove(t)
		t.polling = true
		p.busy++
		p.metrics.waited.Observe(now.Sub(t.due).Seconds())
		jobs = append(jobs, job{t, t.session, !t.flowsDue.After(now)})
	}
}

// reading is the result of one job.
type reading struct {
	ports    []*api.PortStats
	tables   []*api.TableStats
	flows    []*api.FlowEntry
	took     time.Duration
	flowTook time.Duration
	err      error
}

func (p *Poller) poll(ctx context.Context, j job) {
	var r reading
	began := time.Now()
	r.ports, r.err = limited(ctx, p, p.net.ReadPorts, j.target.sw)
	r.took = time.Since(began)
	portsAt := time.Now()
	if j.flows && r.err == nil {
		if r.tables, r.err = limited(ctx, p, p.net.ReadTables, j.target.sw); r.err == nil {
			r.flows, r.err = limited(ctx, p, p.net.ReadFlows, j.target.sw)
		}
		r.flowTook = time.Since(portsAt)
	}
	if ctx.Err() == nil {
		p.finish(j, r, portsAt, time.Now(), rand.Float64())
	}
}

func limited[T any](ctx context.Context, p *Poller, ask func(context.Context, flow.DPID) ([]T, error), sw flow.DPID) ([]T, error) {
	p.mu.Lock()
	deadline := p.cfg.Deadline
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return ask(ctx, sw)
}

// finish records the result of a job and sets when the next is due.
func (p *Poller) finish(j job, r reading, portsAt, now time.Time, jitter float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := j.target
	t.polling = false
	p.busy--
	defer p.ring() // a place is free
	p.metrics.took.Observe((r.took + r.flowTook).Seconds())
	if r.err != nil {
		p.metrics.failed.Add(1)
	} else {
		p.metrics.done.Add(1)
	}
	if !t.connected {
		return
	}
	if t.session != j.session {
		p.enqueue(t) // at the time set by its connection
		return
	}
	if r.ports != nil {
		t.sample.setPorts(r.ports, portsAt)
	}
	if r.err != nil {
		t.pace.failures++
	} else {
		t.pace.failures, t.pace.took = 0, r.took
	}
	if j.flows && r.err == nil {
		t.pace.flowTook = r.flowTook
		t.sample.tables = r.tables
		p.entries += len(r.flows) - t.sample.sum.entries
		t.sample.setFlows(r.flows, p.seed, now)
	}
	if j.flows {
		t.flowsDue = now.Add(jittered(flowInterval(p.cfg, p.load(), t.pace), jitter))
	}
	t.due = now.Add(jittered(portInterval(p.cfg, p.load(), t.pace), jitter))
	p.enqueue(t)
}

// samples calls f for the samples of one switch, or of all if dpid is empty,
// in the order of their identities.
func (p *Poller) samples(dpid string, f func(*target)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*target
	if dpid != "" {
		sw, err := flow.ParseDPID(dpid)
		if err != nil {
			return api.Errorf(codes.InvalidArgument, "%w", err)
		}
		t := p.switches[sw]
		if t == nil {
			return api.Errorf(codes.NotFound, "unknown switch %v; weft get switches lists those that have connected", sw)
		}
		list = append(list, t)
	} else {
		for _, t := range p.switches {
			list = append(list, t)
		}
		slices.SortFunc(list, func(a, b *target) int { return cmp.Compare(a.sw, b.sw) })
	}
	for _, t := range list {
		f(t)
	}
	return nil
}

// ListPortStats answers the call.
func (p *Poller) ListPortStats(_ context.Context, req *api.ListPortStatsRequest) (*api.ListPortStatsResponse, error) {
	resp := &api.ListPortStatsResponse{}
	return resp, p.samples(req.GetDpid(), func(t *target) { resp.Ports = append(resp.Ports, t.sample.portStats()...) })
}

// ListTableStats answers the call.
func (p *Poller) ListTableStats(_ context.Context, req *api.ListTableStatsRequest) (*api.ListTableStatsResponse, error) {
	resp := &api.ListTableStatsResponse{}
	return resp, p.samples(req.GetDpid(), func(t *target) { resp.Tables = append(resp.Tables, t.sample.tableStats()...) })
}

// ListFlowStats answers the call.
func (p *Poller) ListFlowStats(_ context.Context, req *api.ListFlowStatsRequest) (*api.ListFlowStatsResponse, error) {
	resp := &api.ListFlowStatsResponse{}
	return resp, p.samples(req.GetDpid(), func(t *target) { resp.Flows = append(resp.Flows, t.sample.flowStats(t.sw.String())...) })
}
