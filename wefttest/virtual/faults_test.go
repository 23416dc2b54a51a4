package virtual

import (
	"context"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// fault is something that befalls the network or the controller at a moment.
type fault struct {
	name string
	of   kind
	do   func(context.Context, *world, *chance)
}

// kind says what a fault befalls.
type kind int

const (
	network   kind = 1 << iota // links and hosts
	devices                    // switches and their connections
	processes                  // processes of the controller
	store                      // where state is kept
	between                    // the network between processes
	plans                      // the plan and the configuration in force
)

// faults are all that there are.
var faults = []fault{
	{"link cut", network, cutLink}, {"link cut", network, cutLink},
	{"link flaps", network, flapLink},
	{"link silent", network, muteLink},
	{"host moves", network, moveHost}, {"host moves", network, moveHost},
	{"switch hangs up", devices, func(_ context.Context, w *world, c *chance) { pick(c, w.devices).Disconnect() }},
	{"switch silent", devices, silentSwitch},
	{"switch does not read", devices, deafSwitch},
	{"switch restarts", devices, restartSwitch},
	{"switch connects twice", devices, connectTwice},
	{"control channel stalls", devices, stallChannel},
	{"cables exchanged", devices, exchangeCables},
	{"process killed", processes, killProcess}, {"process killed", processes, killProcess},
	{"process stopped", processes, stopProcess},
	{"store away", store, storeAway},
	{"store slow", store, func(_ context.Context, w *world, c *chance) {
		w.bus.slow(c.between(10*time.Millisecond, 300*time.Millisecond))
	}},
	{"disk full", store, func(ctx context.Context, w *world, c *chance) {
		w.bus.fill()
		w.later(ctx, c.between(time.Second, 15*time.Second), w.bus.mend)
	}},
	{"store out of reach", store, func(_ context.Context, w *world, c *chance) {
		if p := w.somebody(c); p != nil {
			w.logf("of %s", p.name)
			w.bus.away(p.name)
		}
	}},
	{"processes parted", between, partProcesses},
	{"messages late and lost", between, func(_ context.Context, w *world, c *chance) {
		w.paths.worsen(c.between(time.Millisecond, 100*time.Millisecond), c.n(50))
	}},
	{"plan applied", plans, applyPlan}, {"plan applied", plans, applyPlan},
	{"configuration changed", plans, func(ctx context.Context, w *world, c *chance) { w.apply(ctx, w.layout, c) }},
}

func cutLink(ctx context.Context, w *world, c *chance) {
	if l := pick(c, w.links); !l.cut {
		w.logf("%v-%v", l.a, l.b)
		l.cut = true
		w.net.Cut(l.a)
		if c.n(2) == 0 {
			w.later(ctx, c.within(3*time.Second), func() { w.mendLink(l) })
		}
	}
}

func (w *world) mendLink(c *cable) {
	if c.cut {
		c.cut = false
		w.net.Mend(c.a)
	}
	if c.mute {
		c.mute = false
		w.net.Unmute(c.a)
	}
}

// flapLink has a link go down and up some times.
func flapLink(ctx context.Context, w *world, c *chance) {
	l := pick(c, w.links)
	if l.cut {
		return
	}
	w.logf("%v-%v", l.a, l.b)
	for range 3 + c.n(7) {
		w.net.Cut(l.a)
		rest(ctx, c.within(300*time.Millisecond))
		w.net.Mend(l.a)
		rest(ctx, c.within(2*time.Second))
	}
}

func muteLink(_ context.Context, w *world, c *chance) {
	if l := pick(c, w.links); !l.cut {
		w.logf("%v-%v", l.a, l.b)
		l.mute = true
		w.net.Mute(l.a)
	}
}

// moveHost plugs a host in elsewhere.
func moveHost(ctx context.Context, w *world, c *chance) {
	s, d := pick(c, w.stations), pick(c, w.devices)
	old := s.Location()
	to, ok := w.freePort(d)
	if !ok {
		return
	}
	w.logf("%s from %v to %v", s.name, old, to)
	w.device(old.Switch).SetLink(old.Port, false)
	rest(ctx, c.within(2*time.Second))
	s.Move(to)
	d.SetLink(to.Port, true)
	w.device(old.Switch).spare = append(w.device(old.Switch).spare, old.Port)
	s.announce()
}

// freePort returns a port at which nothing is.
func (w *world) freePort(d *device) (flow.Location, bool) {
	if n := len(d.spare); n > 0 {
		p := d.spare[0]
		d.spare = d.spare[1:]
		return flow.Location{Switch: d.sw, Port: p}, true
	}
	if d.next > ports {
		return flow.Location{}, false
	}
	return d.port(), true
}

func silentSwitch(ctx context.Context, w *world, c *chance) {
	d := pick(c, w.devices)
	d.SetFaults(oftest.Faults{Silent: true})
	w.later(ctx, c.within(20*time.Second), func() {
		d.Disconnect() // what it would have said is lost with its connections, as it is with TCP
		d.SetFaults(oftest.Faults{})
	})
}

func deafSwitch(ctx context.Context, w *world, c *chance) {
	d := pick(c, w.devices)
	d.SetFaults(oftest.Faults{StopReading: true, BarrierDelay: c.within(time.Second)})
	w.later(ctx, c.within(10*time.Second), func() { d.SetFaults(oftest.Faults{}) })
}

// restartSwitch takes the power off a switch for some time.
func restartSwitch(ctx context.Context, w *world, c *chance) {
	d := pick(c, w.devices)
	if d.off {
		return
	}
	w.logf("switch %v", d.sw)
	d.off = true
	d.unplug()
	var down []*cable
	for _, l := range w.links {
		if (l.a.Switch == d.sw || l.b.Switch == d.sw) && !l.cut {
			w.net.Cut(l.a)
			down = append(down, l)
		}
	}
	rest(ctx, c.within(8*time.Second))
	d.Do((*oftest.Switch).Restart)
	for _, l := range down {
		if !l.cut {
			w.net.Mend(l.a)
		}
	}
	w.powerOn(w.life, d)
}

// exchangeCables takes the power off the switches at both ends of a link and puts
// the cable into other ports; a host comes to where it was.
func exchangeCables(ctx context.Context, w *world, c *chance) {
	l := pick(c, w.links)
	a, b := w.device(l.a.Switch), w.device(l.b.Switch)
	if l.cut || a.off || b.off || a.next > ports || b.next > ports {
		return
	}
	w.logf("%v-%v", l.a, l.b)
	old := l.a
	for _, d := range []*device{a, b} {
		d.off = true
		d.unplug()
	}
	w.net.Cut(l.a)
	w.net.Unlink(l.a)
	b.spare = append(b.spare, l.b.Port)
	l.a, l.b, l.mute = a.port(), b.port(), false
	w.net.Link(l.a, l.b)
	w.net.Mend(l.a)
	s := pick(c, w.stations)
	was := s.Location()
	w.device(was.Switch).SetLink(was.Port, false)
	s.Move(old)
	a.SetLink(old.Port, true)
	w.device(was.Switch).spare = append(w.device(was.Switch).spare, was.Port)
	w.logf("%s from %v to %v", s.name, was, old)
	rest(ctx, c.within(5*time.Second))
	w.powerOn(w.life, a)
	w.powerOn(w.life, b)
	s.announce()
}

// somebody returns a process that runs.
func (w *world) somebody(c *chance) *process {
	if list := w.cluster.all(); len(list) > 0 {
		return pick(c, list)
	}
	return nil
}

func killProcess(_ context.Context, w *world, c *chance) {
	if p := w.somebody(c); p != nil && !p.ended() {
		w.logf("%s#%d", p.name, p.run)
		w.cluster.kill(p)
	}
}

func stopProcess(ctx context.Context, w *world, c *chance) {
	if p := w.somebody(c); p != nil && !p.ended() {
		w.logf("%s#%d", p.name, p.run)
		p.gate.stop()
		w.later(ctx, c.within(8*time.Second), p.gate.resume)
	}
}

// storeAway takes the store away from all. Where nothing else has happened, who is
// master of the switches stays so meanwhile: nobody can take over. That is so while all
// standbys promise not to; one that ends, such as a former master that has learnt of its
// successor at the end of the storm before, cannot.
func storeAway(ctx context.Context, w *world, c *chance) {
	alone := w.kind == store && w.befallen == 1 && w.holders() > 0
	running := w.cluster.all()
	w.bus.away("")
	w.later(ctx, c.between(2*time.Second, 10*time.Second), w.bus.mend)
	for n := 0; alone && n < 15 && rest(ctx, 100*time.Millisecond) && !w.bus.whole(); n++ {
		if w.holders() == 0 && !slices.ContainsFunc(running, (*process).ended) {
			w.fail("nobody is master since %d ms after the store has gone", (n+1)*100)
			return
		}
	}
}

// holders returns how many processes hold the mastership of their switches.
func (w *world) holders() (n int) {
	for _, p := range w.cluster.all() {
		if figures, err := p.figures(); err == nil && figures["weft_southbound_lease_held"] > 0 {
			n++
		}
	}
	return n
}

func partProcesses(_ context.Context, w *world, c *chance) {
	a, b := w.somebody(c), w.somebody(c)
	if a != nil && b != nil && a != b {
		w.logf("%s and %s", a.name, b.name)
		w.paths.cut(a.name, b.name)
	}
}

// connectTwice has a switch connect a second time where it is connected, for a while.
func connectTwice(ctx context.Context, w *world, c *chance) {
	d, address, lasts := pick(c, w.devices), pick(c, w.addresses), c.between(time.Second, 20*time.Second)
	if d.off {
		return
	}
	w.logf("switch %v at %s for %v", d.sw, address, lasts)
	w.storm.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, lasts)
		defer cancel()
		if conn, err := w.wires.dial(d.sw, address); err == nil {
			_ = d.Serve(ctx, conn)
		}
	})
}

// stallChannel delays all that a switch and the controller send each other, for long.
func stallChannel(_ context.Context, w *world, c *chance) {
	d, lasts := pick(c, w.devices), c.between(500*time.Millisecond, 20*time.Second)
	w.logf("switch %v for %v", d.sw, lasts)
	w.wires.stall(d.sw, time.Now().Add(lasts))
}

func applyPlan(ctx context.Context, w *world, c *chance) { w.apply(ctx, pick(c, w.plans), c) }

// apply applies a plan, with a configuration that is drawn.
func (w *world) apply(ctx context.Context, p layout, c *chance) {
	w.layout = p
	w.logf("plan %s", p.name)
	if err := w.cluster.apply(ctx, p.with(c)); err != nil {
		w.logf("refused: %v", err)
	}
}

// later does something after a time, or at the end of the storm.
func (w *world) later(ctx context.Context, d time.Duration, do func()) {
	w.storm.Go(func() {
		rest(ctx, d)
		do()
	})
}

// heal ends all faults; of the links that are cut, some stay so.
func (w *world) heal(c *chance) {
	w.bus.mend()
	w.paths.mend()
	w.wires.mend()
	for _, p := range w.cluster.all() {
		p.gate.resume()
	}
	for _, d := range w.devices {
		d.SetFaults(oftest.Faults{})
	}
	for _, l := range w.links {
		if !l.cut || c.n(3) > 0 {
			w.mendLink(l)
		}
	}
}
