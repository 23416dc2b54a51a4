package test

import (
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/test/testbed"
)

// passers are the workers other than the one that holds the switches'
// connections, in the order in which they suffer.
var passers = []string{"routing", "topology", "north"}

// killed kills every worker in turn with SIGKILL.
func (f *faults) killed(t *testing.T, transport string) {
	d := f.deploy(t, fourWorkers(transport, transport))
	l := d.network("ring:4")
	source := d.connect()
	e, w := d.establish(l), d.watch()
	for _, process := range passers {
		load := d.load(source)
		time.Sleep(700 * time.Millisecond)
		o := d.kill(w, process)
		time.Sleep(700 * time.Millisecond)
		a := load.end()
		d.report(a, process+" killed", o)
	}
	o := d.kill(w, "southbound") // and with it the connections of switches
	source.Close()
	source = d.connect()
	t.Logf("southbound killed: running again after %v, ready %v later, a simulated switch is back %v after that",
		o.to.Sub(o.from), o.ready.Sub(o.to), time.Since(o.ready))
	load := d.load(source)
	time.Sleep(500 * time.Millisecond)
	load.end()
	pingAll(t, l, false)
	e.undisturbed(t)
	w.truthful("north")
}

// kill kills a worker and waits until there is another, which is up.
func (d *deployment) kill(w *watch, process string) outage {
	d.t.Helper()
	old := d.pids()[process]
	if old == 0 {
		d.t.Fatalf("worker %s does not run\n%s", process, d.logs())
	}
	restarts := w.restarts(process)
	o := outage{process: process, from: time.Now()}
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, process+" gone", func() bool { return d.pids()[process] != old })
	o.gone = time.Now()
	eventually(d.t, process+" started again", func() bool { o.pid = d.pids()[process]; return o.pid != 0 && o.pid != old })
	var err error
	if o.to, err = testbed.StartTime(o.pid); err != nil {
		d.t.Fatal(err)
	}
	if o.to.Before(o.gone) { // it is known to a hundredth of a second
		o.to = o.gone
	}
	d.again(w, &o, restarts+1)
	return o
}

// restarts is how often the supervisor has started a process again.
func (w *watch) restarts(process string) (n uint32) {
	w.d.t.Helper()
	began := time.Now()
	eventually(w.d.t, "an answer of weft get workers", func() bool {
		worker := w.last(process, began)
		n = worker.GetRestarts()
		return worker != nil
	})
	return n
}

// again waits until a process is up again after an outage, with its new number
// and so many restarts, and notes that.
func (d *deployment) again(w *watch, o *outage, restarts uint32) {
	d.t.Helper()
	ready := time.Time{}
	eventually(d.t, o.process+" up again, restarts counted", func() bool {
		worker := w.last(o.process, o.from)
		if worker == nil || worker.State != "up" || int(worker.Pid) != o.pid {
			return false
		}
		if ready.IsZero() {
			ready = time.Now()
		}
		return worker.Restarts == restarts
	})
	o.ready = ready
	w.note(*o)
}

// report says what a load has become.
func (d *deployment) report(a account, what string, o outage) {
	d.t.Helper()
	recovery := a.recovery(o.from, o.to)
	d.t.Logf("%s: %d sent, %d answered, %d shed%s, %d lost, %d answered twice, longest delay %v; running again after %v, up %v later, recovery %v",
		what, len(a.messages), a.answered, a.shed, a.reasons, a.lost, a.duplicates, a.longest().Round(time.Millisecond),
		o.to.Sub(o.from).Round(time.Millisecond), o.ready.Sub(o.to).Round(time.Millisecond), recovery.Round(time.Millisecond))
}
