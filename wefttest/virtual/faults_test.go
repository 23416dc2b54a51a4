package virtual

import (
	"context"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// fault is something that befalls the network or the controller at a moment.
type fault struct {
	name string
	of   kind
	do   func(context.Context, *world)
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
	{"switch hangs up", devices, func(_ context.Context, w *world) { pick(w.chance, w.devices).Disconnect() }},
	{"switch silent", devices, silentSwitch},
	{"switch does not read", devices, deafSwitch},
	{"switch restarts", devices, restartSwitch},
	{"cables exchanged", devices, exchangeCables},
	{"process killed", processes, killProcess}, {"process killed", processes, killProcess},
	{"process stopped", processes, stopProcess},
	{"store away", store, storeAway},
	{"store slow", store, func(_ context.Context, w *world) {
		w.bus.slow(w.chance.between(10*time.Millisecond, 300*time.Millisecond))
	}},
	{"store out of reach", store, func(_ context.Context, w *world) {
		if p := w.somebody(); p != nil {
			w.logf("of %s", p.name)
			w.bus.away(p.name)
		}
	}},
	{"processes parted", between, partProcesses},
	{"messages late and lost", between, func(_ context.Context, w *world) {
		w.paths.worsen(w.chance.between(time.Millisecond, 100*time.Millisecond), w.chance.n(50))
	}},
	{"plan applied", plans, applyPlan}, {"plan applied", plans, applyPlan},
}

func cutLink(ctx context.Context, w *world) {
	if c := pick(w.chance, w.links); !c.cut {
		w.logf("%v-%v", c.a, c.b)
		c.cut = true
		w.net.Cut(c.a)
		if w.chance.n(2) == 0 {
			w.later(ctx, w.chance.within(3*time.Second), func() { w.mendLink(c) })
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
func flapLink(ctx context.Context, w *world) {
	c := pick(w.chance, w.links)
	if c.cut {
		return
	}
	w.logf("%v-%v", c.a, c.b)
	for range 3 + w.chance.n(7) {
		w.net.Cut(c.a)
		rest(ctx, w.chance.within(300*time.Millisecond))
		w.net.Mend(c.a)
		rest(ctx, w.chance.within(2*time.Second))
	}
}

func muteLink(_ context.Context, w *world) {
	if c := pick(w.chance, w.links); !c.cut {
		w.logf("%v-%v", c.a, c.b)
		c.mute = true
		w.net.Mute(c.a)
	}
}

// moveHost plugs a host in elsewhere.
func moveHost(ctx context.Context, w *world) {
	s, d := pick(w.chance, w.stations), pick(w.chance, w.devices)
	old := s.Location()
	to, ok := w.freePort(d)
	if !ok {
		return
	}
	w.logf("%s from %v to %v", s.name, old, to)
	w.device(old.Switch).SetLink(old.Port, false)
	rest(ctx, w.chance.within(2*time.Second))
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

func silentSwitch(ctx context.Context, w *world) {
	d := pick(w.chance, w.devices)
	d.SetFaults(oftest.Faults{Silent: true})
	w.later(ctx, w.chance.within(20*time.Second), func() {
		d.Disconnect() // what it would have said is lost with its connections, as it is with TCP
		d.SetFaults(oftest.Faults{})
	})
}

func deafSwitch(ctx context.Context, w *world) {
	d := pick(w.chance, w.devices)
	d.SetFaults(oftest.Faults{StopReading: true, BarrierDelay: w.chance.within(time.Second)})
	w.later(ctx, w.chance.within(10*time.Second), func() { d.SetFaults(oftest.Faults{}) })
}

// restartSwitch takes the power off a switch for some time.
func restartSwitch(ctx context.Context, w *world) {
	d := pick(w.chance, w.devices)
	if d.off {
		return
	}
	w.logf("switch %v", d.sw)
	d.off = true
	d.unplug()
	var down []*cable
	for _, c := range w.links {
		if (c.a.Switch == d.sw || c.b.Switch == d.sw) && !c.cut {
			w.net.Cut(c.a)
			down = append(down, c)
		}
	}
	rest(ctx, w.chance.within(8*time.Second))
	d.Do((*oftest.Switch).Restart)
	for _, c := range down {
		if !c.cut {
			w.net.Mend(c.a)
		}
	}
	w.powerOn(w.life, d)
}

// exchangeCables takes the power off the switches at both ends of a link and puts
// the cable into other ports; a host comes to where it was.
func exchangeCables(ctx context.Context, w *world) {
	c := pick(w.chance, w.links)
	a, b := w.device(c.a.Switch), w.device(c.b.Switch)
	if c.cut || a.off || b.off || a.next > ports || b.next > ports {
		return
	}
	w.logf("%v-%v", c.a, c.b)
	old := c.a
	for _, d := range []*device{a, b} {
		d.off = true
		d.unplug()
	}
	w.net.Cut(c.a)
	w.net.Unlink(c.a)
	b.spare = append(b.spare, c.b.Port)
	c.a, c.b, c.mute = a.port(), b.port(), false
	w.net.Link(c.a, c.b)
	w.net.Mend(c.a)
	s := pick(w.chance, w.stations)
	was := s.Location()
	w.device(was.Switch).SetLink(was.Port, false)
	s.Move(old)
	a.SetLink(old.Port, true)
	w.device(was.Switch).spare = append(w.device(was.Switch).spare, was.Port)
	w.logf("%s from %v to %v", s.name, was, old)
	rest(ctx, w.chance.within(5*time.Second))
	w.powerOn(w.life, a)
	w.powerOn(w.life, b)
	s.announce()
}

// somebody returns a process that runs.
func (w *world) somebody() *process {
	if list := w.cluster.all(); len(list) > 0 {
		return pick(w.chance, list)
	}
	return nil
}

func killProcess(_ context.Context, w *world) {
	if p := w.somebody(); p != nil && !p.ended() {
		w.logf("%s#%d", p.name, p.run)
		w.cluster.kill(p)
	}
}

func stopProcess(ctx context.Context, w *world) {
	if p := w.somebody(); p != nil && !p.ended() {
		w.logf("%s#%d", p.name, p.run)
		p.gate.stop()
		w.later(ctx, w.chance.within(8*time.Second), p.gate.resume)
	}
}

// storeAway takes the store away from all. Where nothing else has happened, who is
// master of the switches stays so meanwhile: nobody can take over.
func storeAway(ctx context.Context, w *world) {
	alone := w.kind == store && w.befallen == 1 && w.holders() > 0
	w.bus.away("")
	w.later(ctx, w.chance.between(2*time.Second, 10*time.Second), w.bus.mend)
	for n := 0; alone && n < 15 && rest(ctx, 100*time.Millisecond) && !w.bus.whole(); n++ {
		if w.holders() == 0 {
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

func partProcesses(_ context.Context, w *world) {
	a, b := w.somebody(), w.somebody()
	if a != nil && b != nil && a != b {
		w.logf("%s and %s", a.name, b.name)
		w.paths.cut(a.name, b.name)
	}
}

func applyPlan(ctx context.Context, w *world) {
	p := pick(w.chance, w.plans)
	text := p.with(w.chance)
	w.logf("plan %s", p.name)
	if err := w.cluster.apply(ctx, text); err != nil {
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
func (w *world) heal() {
	w.bus.mend()
	w.paths.mend()
	for _, p := range w.cluster.all() {
		p.gate.resume()
	}
	for _, d := range w.devices {
		d.SetFaults(oftest.Faults{})
	}
	for _, c := range w.links {
		if !c.cut || w.chance.n(3) > 0 {
			w.mendLink(c)
		}
	}
}
