package flowrules

import (
	"context"
	"slices"
	"sync"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// workerSet is the workers of all switches, and those whose goroutines are to start.
type workerSet struct {
	cfg   *Config
	count *counts

	mu      sync.Mutex // guards workers; may be held when a worker's mu is taken, not the other way round
	workers map[flow.DPID]*worker

	birth  sync.Mutex // guards unborn
	unborn []*worker  // whose goroutines are to start
	bell   chan struct{}
}

// serve starts the goroutines of workers until ctx ends.
func (s *workerSet) serve(ctx context.Context, start func(*worker)) {
	for {
		s.birth.Lock()
		born := s.unborn
		s.unborn = nil
		s.birth.Unlock()
		for _, w := range born {
			start(w)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.bell:
		}
	}
}

// start queues a worker whose goroutine serve starts.
func (s *workerSet) start(w *worker) {
	s.birth.Lock()
	defer s.birth.Unlock()
	s.unborn = append(s.unborn, w)
	object.Notify(s.bell)
}

// worker returns the worker of a switch. Who changes more than what it has already
// claims it.
func (s *workerSet) worker(sw flow.DPID) *worker {
	w := s.claim(sw)
	s.release(w)
	return w
}

// claim is worker, except that the worker stays that of its switch until release.
func (s *workerSet) claim(sw flow.DPID) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.workers[sw]
	if w == nil {
		w = newWorker(newLedger(sw, s.cfg, s.count), s.start)
		s.workers[sw] = w
		w.wake()
	}
	w.users++
	return w
}

func (s *workerSet) release(w *worker) {
	s.mu.Lock()
	w.users--
	s.mu.Unlock()
	s.dropWorker(w)
}

// dropWorker drops a worker whose goroutine has ended, if its ledger is idle.
func (s *workerSet) dropWorker(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life.Lock()
	defer w.life.Unlock()
	if l := w.ledger; s.workers[l.sw] == w && w.users == 0 && !w.running && l.isIdle() {
		delete(s.workers, l.sw)
	}
}

// known returns the worker of a switch, nil if there is none.
func (s *workerSet) known(sw flow.DPID) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers[sw]
}

// all returns the workers of all switches, or of one.
func (s *workerSet) all(dpid string) ([]*worker, error) {
	if dpid != "" {
		sw, err := flow.ParseDPID(dpid)
		if err != nil {
			return nil, invalid(err)
		}
		if w := s.known(sw); w != nil {
			return []*worker{w}, nil
		}
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*worker, 0, len(s.workers))
	for _, w := range s.workers {
		list = append(list, w)
	}
	return list, nil
}

func (s *workerSet) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.workers)
}

// bySwitch calls f for each switch's share of the targets, portion by portion,
// in their order.
func (s *workerSet) bySwitch(targets []target, f func(*worker, []*target) error) error {
	shares := map[flow.DPID][]*target{}
	var order []flow.DPID
	for i := range targets {
		t := &targets[i]
		if shares[t.sw] == nil {
			order = append(order, t.sw)
		}
		shares[t.sw] = append(shares[t.sw], t)
	}
	for _, sw := range order {
		for part := range slices.Chunk(shares[sw], portion) {
			w := s.claim(sw)
			err := f(w, part)
			s.release(w)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
