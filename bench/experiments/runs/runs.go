// Package runs works off runs of experiments, one at a time, each a process of
// its own, and keeps what comes of them: weft experiment serve. A run is a folder
// of the data folder, so that it outlives the server; one that was interrupted
// goes on with its samples when the server starts again. Only cmd/weft imports
// it.
package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/internal/asowner"
)

// Bounds.
const (
	mostWaiting  = 16
	mostKept     = 100
	mostRounds   = 100
	mostMinutes  = 24 * 60
	usualMinutes = 30
	mostAttempts = 3 // of a run that servers were ended in
)

// The states of runs.
const (
	waiting     = "waiting"
	running     = "running"
	done        = "done"
	failed      = "failed"
	cancelled   = "cancelled"
	interrupted = "interrupted"
)

// Options are what a server needs.
type Options struct {
	// Dir is the data folder, that of weft experiment run. Runs are in its folder runs.
	Dir string
	// All are the experiments that there are.
	All []experiments.Experiment
	// Program is the command that runs one: its name and flags are appended.
	Program []string
	// Patience is how long a run that is to end may take to clean up before it is
	// killed; 0 is a minute.
	Patience time.Duration
	Log      *slog.Logger
}

// Server keeps runs and works them off.
type Server struct {
	api.UnimplementedExperimentsServer
	Options

	lock *os.File
	wake chan struct{}

	mu   sync.Mutex // guards what follows, and the records of runs
	runs []*run     // the oldest first
	last int        // the highest number of a run that there was
	old  map[string]earlier
}

// run is a run and what goes on with it.
type run struct {
	record
	dir  string
	kept error              // why its record could not be written; nil if it was
	stop context.CancelFunc // of one that works
	gone chan struct{}      // closed when it has ended for good
}

// Open takes a data folder: one server at a time may have it. Runs that another
// server was ended in wait again.
func Open(o Options) (*Server, error) {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	s := &Server{Options: o, wake: make(chan struct{}, 1), old: map[string]earlier{}}
	if err := asowner.MkdirAll(s.folder(), 0o755); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = asowner.OpenFile(filepath.Join(s.folder(), "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another weft experiment serve works in it; give another --dir", s.folder()), s.lock.Close())
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// Close gives the data folder back.
func (s *Server) Close() error { return s.lock.Close() }

func (s *Server) folder() string { return filepath.Join(s.Dir, "runs") }

// load reads the runs that are kept.
func (s *Server) load() error {
	entries, err := os.ReadDir(s.folder())
	if err != nil {
		return err
	}
	for _, e := range entries {
		n := numberOf(e.Name())
		if !e.IsDir() || n == 0 {
			continue
		}
		dir := filepath.Join(s.folder(), e.Name())
		rec, err := readRecord(dir)
		if err != nil || rec.Run != e.Name() {
			s.Log.Warn("left alone: it is no run", "folder", dir, "error", err)
			continue
		}
		s.last = max(s.last, n)
		r := &run{record: rec, dir: dir, gone: make(chan struct{})}
		if !rec.over() {
			leftovers(rec, s.Patience, s.Log)
			r.State = waiting
			if r.Attempts >= mostAttempts {
				r.finish(failed, fmt.Sprintf("the server was ended in it %d times", r.Attempts))
			}
			if err := r.save(dir); err != nil {
				return err
			}
		}
		if r.over() {
			close(r.gone)
		}
		s.runs = append(s.runs, r)
	}
	slices.SortFunc(s.runs, func(a, b *run) int { return numberOf(a.Run) - numberOf(b.Run) })
	return nil
}

// numberOf returns the number of a run's name, EXPERIMENT.NUMBER; 0 if it is none.
func numberOf(name string) int {
	_, number, _ := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 1<<30 {
		return 0
	}
	return n
}

// Run works runs off until ctx ends; then it interrupts the one at work, and
// returns when that has cleaned up.
func (s *Server) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		r := s.next(ctx)
		if r == nil {
			select {
			case <-ctx.Done():
			case <-s.wake:
			case <-time.After(keepAgain):
			}
			s.keepLate()
			continue
		}
		s.work(ctx, r)
	}
	return nil
}

// next returns the run that has waited longest, now running; nil if none waits.
func (s *Server) next(ctx context.Context) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.runs, func(r *run) bool { return r.State == waiting })
	if i < 0 || ctx.Err() != nil {
		return nil
	}
	r := s.runs[i]
	r.State, r.began = running, time.Now()
	r.Attempts++
	if r.Started == "" {
		r.Started = stamp(r.began)
	}
	return r
}

// work has a run run, and says what came of it.
func (s *Server) work(ctx context.Context, r *run) {
	of, stop := context.WithCancel(ctx)
	defer stop()
	s.mu.Lock()
	r.stop = stop
	if r.cancelled { // since it was chosen
		stop()
	}
	rec := r.record
	s.mu.Unlock()
	s.Log.Info("experiment begins", "run", rec.Run)
	err := s.child(of, &rec, r.dir, func(rec record) { // its process is known
		s.mu.Lock()
		defer s.mu.Unlock()
		r.Process, r.Mark = rec.Process, rec.Mark
		s.keep(r)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stop = nil
	r.Seconds += time.Since(r.began).Seconds()
	p, _ := readProgress(r.dir)
	r.Done, r.Total = max(r.Done, p.Done), max(r.Total, p.Total)
	switch {
	case err == nil:
		r.finish(done, "")
	case r.cancelled:
		r.finish(cancelled, "")
	case ctx.Err() != nil:
		r.State = interrupted
		r.Attempts-- // it is no fault of the run
		s.keep(r)
		return
	default:
		r.finish(failed, err.Error())
	}
	s.Log.Info("experiment has ended", "run", r.Run, "state", r.State, "error", r.Error)
	s.keep(r)
	close(r.gone)
}

// keepAgain is how soon a record is written again that could not be written.
const keepAgain = 10 * time.Second

// keep writes the record of a run; where there is no room, later. Locked.
func (s *Server) keep(r *run) {
	before := r.kept
	if r.kept = r.save(r.dir); r.kept != nil && before == nil {
		s.Log.Error("a run could not be kept, which is tried again", "run", r.Run, "error", r.kept)
	}
}

// keepLate writes the records that could not be written.
func (s *Server) keepLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.kept != nil {
			s.keep(r)
		}
	}
}

// disk returns an error of writing with its kind.
func disk(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return api.Errorf(codes.ResourceExhausted, "%w: make room there, such as by deleting runs", err)
	}
	return err
}

// add puts a run behind those that wait, and removes the oldest that have ended
// beyond what is kept.
func (s *Server) add(rec record) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.runs {
		if r.State == waiting {
			n++
		}
	}
	if n >= mostWaiting {
		return nil, api.Errorf(codes.ResourceExhausted, "%d runs wait already, which is as many as may; cancel one, or wait", n)
	}
	for len(s.runs) >= mostKept {
		i := slices.IndexFunc(s.runs, func(r *run) bool { return r.over() })
		if i < 0 {
			break // at most mostWaiting and one
		}
		if err := s.remove(i); err != nil {
			return nil, err
		}
	}
	s.last++
	rec.Run, rec.State, rec.Created = fmt.Sprintf("%s.%d", rec.Experiment, s.last), waiting, stamp(time.Now())
	r := &run{record: rec, dir: filepath.Join(s.folder(), rec.Run), gone: make(chan struct{})}
	if err := asowner.Do(s.folder(), func() error { return os.Mkdir(r.dir, 0o755) }); err != nil {
		return nil, disk(err)
	}
	if err := r.save(r.dir); err != nil {
		return nil, disk(errors.Join(err, asowner.RemoveAll(r.dir)))
	}
	s.runs = append(s.runs, r)
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return r, nil
}

// remove removes a run that has ended. Locked.
func (s *Server) remove(i int) error {
	if err := asowner.RemoveAll(s.runs[i].dir); err != nil {
		return err
	}
	s.runs = slices.Delete(s.runs, i, i+1)
	return nil
}

// find returns a run that is kept; nil if there is none. Locked.
func (s *Server) find(name string) *run {
	for _, r := range s.runs {
		if r.Run == name {
			return r
		}
	}
	return nil
}
