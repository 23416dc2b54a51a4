package discovery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// counter is a metric that only grows.
type counter interface{ Add(float64) }

// metrics holds the metrics of an engine.
type metrics struct {
	sent, received, failed, skipped counter
	refused                         [refusals]counter
}

// engineConfig is what an engine needs.
type engineConfig struct {
	config  *Config
	key     []byte
	now     func() int64 // nanoseconds since 1970; never runs back
	send    func(context.Context, *flow.Decision) (failed map[flow.DPID]bool, err error)
	echo    func(context.Context, []string) (trips map[flow.DPID]int64, err error) // round trips, nanoseconds
	publish func(event)
	save    func(ctx context.Context, sw flow.DPID, ports map[flow.Port]memory) error
	alive   func(ctx context.Context, now int64) error // writes a sign of life
	figures metrics
	log     *slog.Logger
}

// An engine runs a topology: it passes events and probes to it, sends the
// probes that it wants, and publishes the changes that it reports, in order.
type engine struct {
	engineConfig
	wake    chan struct{} // wakes the prober
	filled  chan struct{} // wakes the publisher
	returns returns

	mu     sync.Mutex // guards the following
	topo   *topology
	drain  *sync.Cond // events were taken
	closed bool       // publishing has ended

	sends sync.WaitGroup
	lines *rate.Limiter // of the log, about refused frames
}

// The log gets at most linesPerSecond lines about refused frames, and
// linesAtOnce in a burst: an attacker has many ports.
const (
	linesPerSecond = 10
	linesAtOnce    = 50
)

// maxEvents is how many unpublished events make port and switch changes wait.
const maxEvents = 4096

func newEngine(c engineConfig, seed uint64) *engine {
	e := &engine{engineConfig: c, topo: newTopology(c.config, seed),
		wake: make(chan struct{}, 1), filled: make(chan struct{}, 1), returns: make(returns, returnsMost), lines: rate.NewLimiter(linesPerSecond, linesAtOnce)}
	e.drain = sync.NewCond(&e.mu)
	return e
}

// change lets f change the topology, then wakes the prober and the publisher.
func (e *engine) change(f func(now int64, t *topology)) {
	e.mu.Lock()
	for len(e.topo.events) > maxEvents && !e.closed {
		e.drain.Wait()
	}
	f(e.now(), e.topo)
	e.unlock()
	object.Notify(e.wake)
}

// unlock releases the lock and wakes the publisher if there are events.
func (e *engine) unlock() {
	some := len(e.topo.events) > 0
	e.mu.Unlock()
	if some {
		object.Notify(e.filled)
	}
}

// read lets f look at the topology, or record things that others do not see.
func (e *engine) read(f func(t *topology)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.topo)
}

// run probes and publishes until ctx ends.
func (e *engine) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { e.publishAll(ctx) })
	wg.Go(func() { e.saveAll(ctx) })
	wg.Go(func() { e.echoAll(ctx) })
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
			if ev.damped != nil {
				e.logDamping(ev.damped)
			} else {
				if l := ev.link; l != nil && !l.Removed && l.Link.State == held.String() {
					e.logHeld(l.Link)
				}
				e.publish(ev)
			}
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

// turnShare is how long changes cause no turn of probeAll after one, as a
// multiple of its duration: a turn may look through all ports, and changes come
// by the thousand.
const turnShare = 4

// probeAll sends probes, and advances the topology in time.
func (e *engine) probeAll(ctx context.Context) {
	s := newSigner(e.key)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var jobs []job
	planned := e.now()
	patience := e.config.linkTimeout() / 8
	var rested time.Time // until then only timed work has a turn
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-e.wake:
			if rest := time.Until(rested); rest > 0 {
				timer.Reset(min(rest, time.Duration(planned-e.now())))
				continue
			}
		}
		began := time.Now()
		e.mu.Lock()
		now := e.now()
		if now-planned > patience {
			e.topo.extendLinks(now)
		}
		e.topo.advance(now)
		var next int64
		jobs, next = e.topo.probes(now, jobs[:0])
		next = max(min(next, e.topo.deadline), now+e.slot())
		next = min(next, now+int64(time.Second))
		e.unlock()
		e.dispatch(ctx, s, jobs)
		planned = next
		rested = time.Now().Add(turnShare * time.Since(began))
		timer.Reset(time.Duration(next - e.now()))
	}
}

// batchProbes is about how many probes are sent in one decision.
const batchProbes = 256

// dispatch sends probes, those of several switches in one decision. It leaves
// out switches whose last probes are still being sent, so that they delay no
// others.
func (e *engine) dispatch(ctx context.Context, s *signer, jobs []job) {
	batch := make([]job, 0, min(len(jobs), batchProbes))
	for len(jobs) > 0 {
		dp, n := jobs[0].port.dp, 1
		for n < len(jobs) && jobs[n].port.dp == dp {
			n++
		}
		if len(batch) > 0 && len(batch)+n > batchProbes {
			e.launch(ctx, s, batch)
			batch = batch[:0]
		}
		if dp.flight.CompareAndSwap(false, true) {
			batch = append(batch, jobs[:n]...)
		} else {
			e.figures.skipped.Add(float64(n))
		}
		jobs = jobs[n:]
	}
	e.launch(ctx, s, batch)
}

// launch sends a batch of probes in the background.
func (e *engine) launch(ctx context.Context, s *signer, batch []job) {
	if len(batch) == 0 {
		return
	}
	stamp := e.now()
	d := decide(s, batch, stamp)
	ports := make([]*port, len(batch))
	for i := range batch {
		ports[i] = batch[i].port
	}
	e.figures.sent.Add(float64(len(batch)))
	e.sends.Go(func() { e.probe(ctx, d, ports, stamp) })
}

// probe passes probes to the southbound. It gives up probes that take longer
// than their lifetime, because the southbound is away.
func (e *engine) probe(ctx context.Context, d *flow.Decision, ports []*port, stamp int64) {
	limited, cancel := context.WithTimeout(ctx, e.config.MaxAge)
	defer cancel()
	failed, err := e.send(limited, d)
	for _, p := range ports {
		p.dp.flight.Store(false)
	}
	if err != nil {
		if ctx.Err() == nil {
			e.figures.failed.Add(float64(len(ports)))
			e.mu.Lock()
			defer e.mu.Unlock()
			e.topo.recordUnreached(e.now(), ports)
		}
		return
	}
	unsent := func(p *port) bool { return failed[p.at.Switch] }
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(failed) > 0 {
		e.figures.failed.Add(float64(len(failed)))
		e.topo.recordUnreached(e.now(), slices.DeleteFunc(slices.Clone(ports), func(p *port) bool { return !unsent(p) }))
		ports = slices.DeleteFunc(ports, unsent)
	}
	e.topo.recordSent(e.now(), ports, stamp)
}

// decide returns the decision that sends signed probes.
func decide(s *signer, jobs []job, now int64) *flow.Decision {
	size := 0
	for i := range jobs {
		size += len(jobs[i].frame)
	}
	data := make([]byte, 0, size)
	d := &flow.Decision{Ops: make([]flow.Op, 0, len(jobs)), Outs: make([]flow.PacketOut, 0, len(jobs))}
	for i := range jobs {
		j, from := &jobs[i], len(data)
		data = s.appendProbe(data, j.frame, j.at, now)
		d.PacketOut(j.at.Switch, flow.PacketOut{
			BufferID: flow.BufferNone, InPort: flow.PortController, Actions: j.actions, Data: data[from:len(data):len(data)],
		})
	}
	return d
}

// aliveEvery is the time between two signs of life.
const aliveEvery = 5 * time.Second

// saveShare is the least pause after a save, as a multiple of its duration:
// while a large network connects, everything changes all the time.
const saveShare = 5

// saveAll saves the roles of a switch's ports a second after they have changed,
// and regularly a sign of life.
func (e *engine) saveAll(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var rested time.Time
	var alive int64
	for {
		if now := e.now(); now-alive >= int64(aliveEvery) {
			alive = now
			if err := e.alive(ctx, now); err != nil && ctx.Err() == nil {
				e.log.Warn("sign of life not saved: ports may take longer to settle after a restart", "error", err)
			}
			e.read(func(t *topology) { t.mark() })
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if began := time.Now(); began.After(rested) {
			e.saveSome(ctx)
			rested = time.Now().Add(saveShare * time.Since(began))
		}
	}
}

// saveSome saves the changed switches.
func (e *engine) saveSome(ctx context.Context) {
	var todo []flow.DPID
	e.read(func(t *topology) { todo = slices.Collect(maps.Keys(t.dirty)) })
	for _, sw := range todo {
		var ports map[flow.Port]memory
		var ok bool
		e.read(func(t *topology) {
			delete(t.dirty, sw)
			ports, ok = t.memories(e.now(), sw)
		})
		if !ok {
			continue
		}
		if err := e.save(ctx, sw, ports); err != nil && ctx.Err() == nil {
			e.log.Warn("ports of a switch not saved: they may take longer to settle after a restart", "dpid", sw, "error", err)
			e.read(func(t *topology) { t.dirty[sw] = struct{}{} })
		}
	}
}

// remember restores what a port was in an earlier run.
func (e *engine) remember(at flow.Location, m memory) {
	e.read(func(t *topology) { t.remember(at, m) })
}

// links and ports answer ListLinks and ListPortRoles.
func (e *engine) links() (r *api.ListLinksResponse) {
	e.read(func(t *topology) {
		r = &api.ListLinksResponse{Links: t.listLinks(e.now()), Allowed: t.listAllowed(), Settings: t.listSettings()}
	})
	return r
}

func (e *engine) ports() (r *api.ListPortRolesResponse) {
	e.read(func(t *topology) { r = &api.ListPortRolesResponse{Ports: t.listPorts(e.now())} })
	return r
}

// count counts the links in a state or the ports in a role.
func (e *engine) count(f func(*topology) int) (n int) {
	e.read(func(t *topology) { n = f(t) })
	return n
}

// echoAll measures the round trips to switches (toEcho), until ctx ends.
func (e *engine) echoAll(ctx context.Context) {
	tick := time.NewTicker(echoEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var wanted []string
		e.read(func(t *topology) {
			for sw := range t.toEcho() {
				wanted = append(wanted, sw.String())
			}
		})
		if len(wanted) == 0 {
			continue
		}
		began := e.now()
		trips, err := e.echo(ctx, wanted)
		if err != nil {
			continue // the southbound is away, and so are the probes
		}
		took, longest := e.now()-began, int64(0)
		for _, trip := range trips {
			longest = max(longest, trip)
		}
		if len(trips) < len(wanted) {
			longest = max(longest, int64(echoPatience))
		}
		e.change(func(now int64, t *topology) { t.recordEchoes(now, began, trips, max(0, took-longest)) })
	}
}

// echoEvery is the time between two rounds of echoes, while switches are to be measured.
const echoEvery = 200 * time.Millisecond

// echoPatience is how long to wait for the answer to an echo.
const echoPatience = time.Second
