package virtual

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// How long a schedule lasts, and one of the services of policies.
const (
	length        = 10 * time.Minute
	managedLength = 2 * time.Minute
)

// stormKinds are the kinds of faults of which one storm has some.
var stormKinds = []kind{network, network | devices, devices, store, processes, processes | store | between, plans | processes, network | devices | processes | store | between | plans}

// schedule runs the controller for ten minutes, with storms of faults that the
// seed determines, and after each has its state compared with what is.
func schedule(t *testing.T, seed uint64, setup func(*world)) (w *world, failure error) {
	synctest.Test(t, func(t *testing.T) {
		for range seed % 65536 {
			_ = rand.Uint64() // the bubble's numbers begin elsewhere for each seed
		}
		cryptotest.SetGlobalRandom(t, seed)
		w = newWorld(t, seed)
		setup(w)
		life, end := context.WithCancel(context.Background())
		w.life = life
		w.build()
		first := pick(w.chance, w.plans)
		w.layout = first
		w.logf("plan %s", first.name)
		if err := w.cluster.apply(life, first.with(w.chance)); err != nil {
			t.Fatal(err)
		}
		w.work.Go(func() { w.cluster.supervise(life) })
		for _, d := range w.devices {
			w.powerOn(life, d)
		}
		talks, quiet := context.WithCancel(life)
		w.quiet = quiet
		if failure = w.live(life, talks); failure != nil {
			w.logf("links %v\nhosts %v\n%s\nthe last events:\n%s", w.trueLinks(), w.trueHosts(), w.tables(), w.trace.latest())
		}
		end()
		w.cluster.stop()
		w.work.Wait()
		time.Sleep(time.Minute) // what processes have left to a timer is over
	})
	return w, failure
}

// build makes a network: a tree of switches, some more links, and hosts.
func (w *world) build() {
	if w.managed != nil {
		w.ring()
		return
	}
	for range 3 + w.chance.n(4) {
		d := w.addSwitch()
		if d.sw > 1 {
			w.addLink(w.devices[w.chance.n(int(d.sw)-1)], d)
		}
	}
	for range w.chance.n(4) {
		if a, b := pick(w.chance, w.devices), pick(w.chance, w.devices); a != b {
			w.addLink(a, b)
		}
	}
	for range 3 + w.chance.n(3) {
		w.addStation(pick(w.chance, w.devices))
	}
}

// talk has a host ping another now and then.
func (w *world) talk(ctx context.Context, s *station) {
	c := newChance(w.seed, uint64(100+len(s.name)+int(s.mac[5])))
	for rest(ctx, c.between(500*time.Millisecond, 4*time.Second)) {
		if to := pick(c, w.stations); to != s {
			s.ping(ctx, to, w.number(), 3*time.Second)
			if w.managed != nil {
				w.use(c, s, to)
			}
		}
	}
}

// live has storm follow storm until the time is over, and then takes down the final
// state. Hosts talk to each other until talks ends.
func (w *world) live(ctx, talks context.Context) error {
	if w.managed != nil {
		if err := w.set(ctx); err != nil {
			return fmt.Errorf("at the start: %w", err)
		}
	}
	for _, s := range w.stations {
		w.work.Go(func() { w.talk(talks, s) })
	}
	if err := w.calm(ctx, time.Minute); err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	lasts := length
	if w.managed != nil {
		lasts = managedLength
	}
	for w.blown < w.storms || w.storms == 0 && time.Since(w.began) < lasts {
		if err := w.blow(ctx, uint64(w.blown+1)); err != nil {
			return err
		}
		w.blown++
	}
	if err := until(ctx, idle, w.stale); err != nil {
		return err
	}
	w.quiet()
	err := w.converge(ctx)
	if errors.Is(err, errUnsettled) {
		w.logf("%v", err)
		return nil
	} else if err != nil {
		return err
	}
	w.final, err = w.observe(ctx)
	return err
}

// blow has the n-th storm, and the calm after it. Storms, the operator and each fault draw
// from numbers of their own, and begin at times of their own: who leaves a fault out
// changes no other.
func (w *world) blow(ctx context.Context, n uint64) error {
	c := newChance(w.seed, n<<16)
	w.kind, w.befallen = pick(c, stormKinds), 0
	w.logf("storm %d of %d", n, w.kind)
	began, lasts := time.Now(), c.between(5*time.Second, 30*time.Second)
	storm, cancel := context.WithCancel(ctx)
	w.storm.Go(func() { // the operator
		c := newChance(w.seed, n<<16+1)
		for rest(storm, c.between(time.Second, 5*time.Second)) {
			ctx, cancel := context.WithTimeout(storm, 10*time.Second)
			w.wish(ctx, c)
			cancel()
		}
	})
	possible := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.of&w.kind == 0 })
	at := time.Duration(0)
	for i := uint64(1); ; i++ {
		at += c.between(100*time.Millisecond, 5*time.Second)
		f := pick(c, possible)
		if !rest(ctx, time.Until(began.Add(min(at, lasts)))) || time.Since(began) >= lasts {
			break
		}
		if id := fmt.Sprintf("%d.%d", n, i); w.only == nil || w.only[id] {
			w.logf("%s %s", id, f.name)
			w.befell = append(w.befell, id)
			w.befallen++
			f.do(storm, w, newChance(w.seed, n<<16+1+i))
		}
	}
	cancel()
	w.storm.Wait()
	w.heal(c)
	w.logf("calm")
	return w.calm(ctx, w.kind.over())
}

// idle is after how long, and a little more, routes are gone over which nothing goes.
const idle = 3 * time.Minute

// over is how long after a storm all must be sound again.
func (k kind) over() time.Duration {
	if k == network {
		return 8 * time.Second // less than the least time for which flapping links are dampened
	}
	return time.Minute + quarantine
}

// quarantine is how long a host waits that has moved while nobody saw it, and whose
// old port is up: another host may be there now (hosts.quarantine).
const quarantine = 30 * time.Second

// calm waits until the network is sound, and looks at what has happened until then.
func (w *world) calm(ctx context.Context, within time.Duration) error {
	err := errors.Join(w.failure, until(ctx, within, w.look))
	w.logf("sound: %v", err == nil)
	if loops := w.net.Loops(); len(loops) > 0 {
		err = errors.Join(err, fmt.Errorf("%d loops; the first: %v", len(loops), loops[0]))
	}
	w.trace.add("entries", []byte(w.tables()))
	w.net.Forget()
	duplicates := 0
	for _, s := range w.stations {
		duplicates += s.duplicates()
	}
	if duplicates > 0 {
		w.logf("%d duplicates", duplicates)
	}
	return err
}
