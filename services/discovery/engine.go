package discovery

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"weft/api"
	"weft/flow"
)

// counter is a figure that only grows.
type counter interface{ Add(float64) }

// figures is what an engine counts.
type figures struct {
	sent, received, failed, skipped counter
	refused                         [refusals]counter
}

// engineConfig is what an engine needs.
type engineConfig struct {
	config  *Config
	key     []byte
	now     func() int64 // nanoseconds since 1970, never running back
	send    func(context.Context, *flow.Decision) error
	publish func(event)
	save    func(ctx context.Context, sw flow.DPID, ports map[flow.Port]memory) error
	alive   func(ctx context.Context, now int64) error // keeps a sign of life
	figures figures
	log     *slog.Logger
}

// An engine runs a topology: it hands it events and probes, sends the probes
// that it asks for, and publishes what it says has changed, in order.
type engine struct {
	engineConfig
	wake   chan struct{} // the prober is to look again
	filled chan struct{} // events wait

	mu     sync.Mutex // guards the following
	topo   *topology
	drain  *sync.Cond // events were taken
	closed bool       // nobody publishes any more

	sends  sync.WaitGroup
	flight sync.Map // DPID -> *atomic.Bool: probes of this switch are being sent
}

// maxEvents is how many unpublished events make port and switch changes wait.
const maxEvents = 4096

func newEngine(c engineConfig, seed uint64) *engine {
	e := &engine{engineConfig: c, topo: newTopology(c.config, seed),
		wake: make(chan struct{}, 1), filled: make(chan struct{}, 1)}
	e.drain = sync.NewCond(&e.mu)
	return e
}

// change lets f change the topology, and has probes sent and events published.
func (e *engine) change(f func(now int64, t *topology)) {
	e.mu.Lock()
	for len(e.topo.events) > maxEvents && !e.closed {
		e.drain.Wait()
	}
	f(e.now(), e.topo)
	e.unlock()
	poke(e.wake)
}

// unlock releases the lock and has events published.
func (e *engine) unlock() {
	some := len(e.topo.events) > 0
	e.mu.Unlock()
	if some {
		poke(e.filled)
	}
}

// read lets f look at the topology, or note in it what changes nothing for
// others.
func (e *engine) read(f func(t *topology)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.topo)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run probes and publishes until ctx ends.
func (e *engine) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { e.publishAll(ctx) })
	wg.Go(func() { e.saveAll(ctx) })
	e.probeAll(ctx)
	e.mu.Lock()
	e.closed = true
	e.drain.Broadcast()
	e.mu.Unlock()
	wg.Wait()
	e.sends.Wait()
}

// publishAll publishes the events in order.
func (e *engine) publishAll(ctx context.Context) {
	var events []event
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.filled:
		}
		e.mu.Lock()
		events, e.topo.events = e.topo.events, events[:0]
		e.drain.Broadcast()
		e.mu.Unlock()
		for i, ev := range events {
			if ctx.Err() != nil {
				return
			}
			e.publish(ev)
			events[i] = event{}
		}
	}
}

// slot is the shortest time between two looks at the schedules.
func (e *engine) slot() int64 {
	interval := e.config.Interval
	if l := e.config.Liveness.Interval; l > 0 {
		interval = l
	}
	return min(int64(interval)/20, int64(50*time.Millisecond))
}

// probeAll sends probes, and lets time pass for the topology.
func (e *engine) probeAll(ctx context.Context) {
	s := newSigner(e.key)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var jobs []job
	planned := e.now()
	patience := e.config.linkTimeout() / 8
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-e.wake:
		}
		e.mu.Lock()
		now := e.now()
		if now-planned > patience {
			e.topo.late(now)
		}
		e.topo.advance(now)
		var next int64
		jobs, next = e.topo.probes(now, jobs[:0])
		next = max(min(next, e.topo.deadline), now+e.slot())
		next = min(next, now+int64(time.Second))
		e.unlock()
		e.dispatch(ctx, s, jobs)
		planned = next
		timer.Reset(time.Duration(next - e.now()))
	}
}

// dispatch sends the probes of each switch in one decision. A switch whose last
// ones are still being sent is left out: it holds up nobody else.
func (e *engine) dispatch(ctx context.Context, s *signer, jobs []job) {
	for len(jobs) > 0 {
		sw, n := jobs[0].at.Switch, 1
		for n < len(jobs) && jobs[n].at.Switch == sw {
			n++
		}
		busy, _ := e.flight.LoadOrStore(sw, &atomic.Bool{})
		if flag := busy.(*atomic.Bool); flag.CompareAndSwap(false, true) {
			stamp := e.now()
			d := decide(s, jobs[:n], stamp)
			ports := make([]flow.Location, n)
			for i, j := range jobs[:n] {
				ports[i] = j.at
			}
			e.figures.sent.Add(float64(n))
			e.sends.Go(func() {
				defer flag.Store(false)
				e.probe(ctx, d, ports, stamp)
			})
		} else {
			e.figures.skipped.Add(float64(n))
		}
		jobs = jobs[n:]
	}
}

// probe has the southbound send probes. Those that take longer than a probe is
// good for, because the southbound is away, are given up.
func (e *engine) probe(ctx context.Context, d *flow.Decision, ports []flow.Location, stamp int64) {
	limited, cancel := context.WithTimeout(ctx, e.config.MaxAge)
	defer cancel()
	if err := e.send(limited, d); err != nil {
		if ctx.Err() == nil {
			e.figures.failed.Add(float64(len(d.Outs)))
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.topo.sent(e.now(), ports, stamp)
}

// decide returns the decision that sends the probes of one switch, signed.
func decide(s *signer, jobs []job, now int64) *flow.Decision {
	size := 0
	for _, j := range jobs {
		size += len(j.frame)
	}
	data := make([]byte, 0, size)
	d := &flow.Decision{Ops: make([]flow.Op, 0, len(jobs)), Outs: make([]flow.PacketOut, 0, len(jobs))}
	for _, j := range jobs {
		from := len(data)
		data = s.appendProbe(data, j.frame, j.at, now)
		d.PacketOut(j.at.Switch, flow.PacketOut{
			BufferID: flow.BufferNone, InPort: flow.PortController, Actions: j.actions, Data: data[from:len(data):len(data)],
		})
	}
	return d
}

// aliveEvery is the time between two signs of life.
const aliveEvery = 5 * time.Second

// saveAll keeps, a second after they have changed, what the ports of a switch
// are, and every now and then that this is still so.
func (e *engine) saveAll(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var alive int64
	for {
		if now := e.now(); now-alive >= int64(aliveEvery) {
			alive = now
			if err := e.alive(ctx, now); err != nil && ctx.Err() == nil {
				e.log.Warn("sign of life not saved: ports may take longer to settle after a restart", "error", err)
			}
			e.read((*topology).mark)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.saveSome(ctx)
	}
}

// saveSome saves what has changed.
func (e *engine) saveSome(ctx context.Context) {
	todo := map[flow.DPID]map[flow.Port]memory{}
	e.read(func(t *topology) {
		now := e.now()
		for sw := range t.dirty {
			if ports, ok := t.memories(now, sw); ok {
				todo[sw] = ports
			}
			delete(t.dirty, sw)
		}
	})
	for sw, ports := range todo {
		if err := e.save(ctx, sw, ports); err != nil && ctx.Err() == nil {
			e.log.Warn("ports of a switch not saved: they may take longer to settle after a restart", "dpid", sw, "error", err)
			e.read(func(t *topology) { t.dirty[sw] = struct{}{} })
		}
	}
}

// remember takes what a port was in an earlier run.
func (e *engine) remember(at flow.Location, m memory) {
	e.read(func(t *topology) { t.remember(at, m) })
}

// links and ports answer ListLinks and ListPortRoles.
func (e *engine) links() (r *api.ListLinksResponse) {
	e.read(func(t *topology) { r = &api.ListLinksResponse{Links: t.listLinks()} })
	return r
}

func (e *engine) ports() (r *api.ListPortRolesResponse) {
	e.read(func(t *topology) { r = &api.ListPortRolesResponse{Ports: t.listPorts()} })
	return r
}

// count returns how many links are in a state, and ports in a role.
func (e *engine) count(f func(*topology) int) (n int) {
	e.read(func(t *topology) { n = f(t) })
	return n
}
