package test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
)

// sighting is what weft get workers said once.
type sighting struct {
	asked, told time.Time
	workers     map[string]*api.Worker // by process; nil if nobody answered
	err         error
}

// watch asks for the workers again and again, to be compared with the truth.
type watch struct {
	d    *deployment
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex // guards what follows
	list    []sighting
	outages []outage
	known   map[string]int // processes' numbers at the beginning
}

// outage is a time in which a process did not answer, as the test knows: from
// when it was killed, stopped or told to end; it was gone until it ran again,
// and later ready.
type outage struct {
	process               string
	from, gone, to, ready time.Time
	pid                   int // afterwards
}

// watch begins to ask.
func (d *deployment) watch() *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{d: d, stop: cancel, done: make(chan struct{}), known: d.pids()}
	d.t.Cleanup(cancel)
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			s := sighting{asked: time.Now()}
			m, err := d.workers(context.WithoutCancel(ctx))
			if s.told, s.err = time.Now(), err; err == nil {
				s.workers = map[string]*api.Worker{}
				for _, worker := range m.Workers {
					s.workers[worker.Process] = worker
				}
			}
			w.mu.Lock()
			w.list = append(w.list, s)
			w.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return w
}

// last returns the last answer about a process that was asked for after a time,
// nil if there is none yet.
func (w *watch) last(process string, after time.Time) *api.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.list) {
		if s.asked.Before(after) {
			return nil
		}
		if s.workers != nil {
			return s.workers[process]
		}
	}
	return nil
}

// note notes an outage once it is over.
func (w *watch) note(o outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, o)
}

// truthful ends the watch, all of whose answers must have been true: nobody was
// up who was not, and whoever ran was up, with the number it had then. north is
// the process that answers.
func (w *watch) truthful(north string) {
	w.d.t.Helper()
	w.stop()
	<-w.done
	lies := 0
	for _, s := range w.list {
		for process, pid := range w.known {
			if lie := w.judge(s, north, process, pid); lie != "" {
				lies++
				w.d.t.Errorf("weft get workers, asked at %s, answered %v later: %s", s.asked.Format("05.000"), s.told.Sub(s.asked).Round(time.Millisecond), lie)
			}
		}
	}
	if lies > 0 {
		for _, o := range w.outages {
			w.d.t.Logf("%s was away from %s to %s, ready at %s", o.process, o.from.Format("05.000"), o.to.Format("05.000"), o.ready.Format("05.000"))
		}
	}
	w.d.t.Logf("weft get workers: %d answers, %d of them wrong", len(w.list), lies)
}

// judge says what is wrong with an answer about a process, nothing if empty.
func (w *watch) judge(s sighting, north, process string, pid int) string {
	away, unsure := false, false // throughout, or at some time of it
	for _, o := range w.outages {
		during := s.asked.Before(o.ready) && s.told.After(o.from)
		if o.process == north && during {
			return "" // who is to answer?
		}
		if o.process != process {
			continue
		}
		if !s.told.Before(o.from) {
			pid = o.pid
		}
		if during {
			unsure = true
			away = away || s.asked.After(o.gone) && s.told.Before(o.to)
		}
	}
	if s.err != nil {
		return s.err.Error()
	}
	// Who is not heard for two seconds is unresponsive; where an answer takes as
	// long as that, the machine may have kept anybody from running.
	unsure = unsure || s.told.Sub(s.asked) > 2*time.Second
	worker := s.workers[process]
	switch {
	case worker == nil:
		return process + " is not there"
	case away && worker.State == "up":
		return fmt.Sprintf("%s is up, which it was not", process)
	case unsure:
	case worker.State != "up":
		return fmt.Sprintf("%s is %s, but it was up", process, worker.State)
	case int(worker.Pid) != pid:
		return fmt.Sprintf("%s is process %d, but it was %d", process, worker.Pid, pid)
	}
	return ""
}
