package test

import (
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/test/testbed"
)

// stopped stops every worker in turn with SIGSTOP and lets it go on with
// SIGCONT before the supervisor loses patience; then one for longer, which is
// killed and started again.
func (f *faults) stopped(t *testing.T, transport string) {
	d := f.deploy(t, fourWorkers(transport, transport))
	l := d.network("ring:4")
	source := d.connect()
	e, w := d.establish(l), d.watch()
	for _, process := range append([]string{"southbound"}, passers...) {
		load := d.load(source)
		time.Sleep(500 * time.Millisecond)
		o := d.pause(w, process, time.Second)
		time.Sleep(500 * time.Millisecond)
		d.report(load.end(), process+" stopped for a second", o)
	}
	load := d.load(source)
	time.Sleep(500 * time.Millisecond)
	restarts := w.restarts("routing")
	old := d.pids()["routing"]
	o := outage{process: "routing", from: time.Now()}
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	o.gone = time.Now()
	eventually(t, "routing killed and started again", func() bool { o.pid = d.pids()["routing"]; return o.pid != 0 && o.pid != old })
	var err error
	if o.to, err = testbed.StartTime(o.pid); err != nil {
		t.Fatal(err)
	}
	d.again(w, &o, restarts+1)
	time.Sleep(500 * time.Millisecond)
	d.report(load.end(), "routing stopped for good", o)
	pingAll(t, l, false)
	e.undisturbed(t)
	w.truthful("north")
}

// pause stops a worker for a while.
func (d *deployment) pause(w *watch, process string, duration time.Duration) outage {
	d.t.Helper()
	o := outage{process: process, pid: d.pids()[process]}
	restarts := w.restarts(process)
	if err := syscall.Kill(o.pid, syscall.SIGSTOP); err != nil {
		d.t.Fatal(err)
	}
	o.from = time.Now()
	o.gone = o.from
	time.Sleep(duration)
	o.to = time.Now()
	if err := syscall.Kill(o.pid, syscall.SIGCONT); err != nil {
		d.t.Fatal(err)
	}
	d.again(w, &o, restarts)
	return o
}
