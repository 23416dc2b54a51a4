package supervisor

import (
	"fmt"
	"os"
	"time"
)

// effort distinguishes a busy process from one that hangs: it is the time that
// its threads ran on a processor or waited for one. A process that is stopped
// or blocked has neither.
type effort struct {
	at      time.Time
	threads map[int]toil
}

// toil is the effort of one thread so far.
type toil struct {
	spent    uint64 // nanoseconds on a processor and waiting for one
	runnable bool   // it runs or waits for a processor now
}

// look measures the effort of a process.
func (id identity) look(now time.Time) (effort, error) {
	s, err := readStat(id.pid)
	if err == nil && s.started != id.started {
		err = fmt.Errorf("process %d has ended", id.pid)
	}
	if err != nil {
		return effort{}, err
	}
	ids, err := threads(id.pid)
	if err != nil {
		return effort{}, err
	}
	e := effort{at: now, threads: make(map[int]toil, len(ids))}
	for _, tid := range ids {
		t, err := readToil(id.pid, tid)
		if err != nil {
			continue // the thread has ended
		}
		e.threads[tid] = t
	}
	return e, nil
}

// readToil reads the effort of a thread from schedstat: time on a processor and
// time in its queue (Linux, Documentation/scheduler/sched-stats.rst). The
// kernel updates the second only when the thread leaves the queue.
func readToil(pid, tid int) (t toil, err error) {
	dir := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	b, err := os.ReadFile(dir + "stat")
	if err != nil {
		return toil{}, err
	}
	s, err := parseStat(b)
	if err != nil {
		return toil{}, err
	}
	t.runnable = s.state == 'R'
	if b, err = os.ReadFile(dir + "schedstat"); err != nil {
		return toil{}, err
	}
	var ran, waited uint64
	if _, err := fmt.Sscan(string(b), &ran, &waited); err != nil {
		return toil{}, fmt.Errorf("%sschedstat is not as expected: %q", dir, b)
	}
	t.spent = ran + waited
	return t, nil
}

// busy reports whether the process ran on a processor, or waited for one, for
// half of the time since an earlier look.
func (e effort) busy(before effort) bool {
	span := e.at.Sub(before.at)
	var spent time.Duration
	for tid, t := range e.threads {
		was := before.threads[tid] // nothing of a new one
		switch {
		case t.spent > was.spent:
			spent += time.Duration(t.spent - was.spent)
		case t.runnable && was.runnable:
			return true // it waited all the time
		}
	}
	return span > 0 && spent >= span/2
}
