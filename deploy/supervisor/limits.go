package supervisor

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// applyThread sets the CPUs, policy and nice value of a thread (0: the calling
// one), and returns the limits that it could not apply. The thread's children
// inherit them, and they last through exec.
func (l limits) applyThread(tid int) (un []Unapplied) {
	fail := func(limit, format string, args ...any) {
		un = append(un, Unapplied{limit, fmt.Sprintf(format, args...)})
	}
	l.applyCPUs(tid, fail)
	if l.RealTime {
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0); err != nil {
			fail("real-time", "SCHED_RR was refused, nice %d instead: %s", l.Nice, permission(err))
		}
	} else if a, err := unix.SchedGetAttr(tid, 0); err == nil && (a.Policy == unix.SCHED_RR || a.Policy == unix.SCHED_FIFO) {
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(l.Nice)}, 0); err != nil {
			fail("real-time", "the real-time priority stays: %s", permission(err))
		}
	}
	// Nice 0 is the default: a refusal of it is not worth reporting.
	if err := unix.Setpriority(unix.PRIO_PROCESS, tid, l.Nice); err != nil && (l.Nice != 0 || err == unix.ESRCH) {
		fail("nice", "nice %d was refused: %s", l.Nice, permission(err))
	}
	return un
}

func (l limits) applyCPUs(tid int, fail func(limit, format string, args ...any)) {
	set, err := parseCPUs(l.CPUs)
	if err != nil {
		fail("cpus", "%v", err)
		return
	}
	var ours unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &ours); err != nil {
		fail("cpus", "the supervisor's own CPUs: %v", err)
		return
	}
	if set == nil {
		set = &ours
	}
	err = unix.SchedSetaffinity(tid, set)
	switch {
	case err == unix.EINVAL:
		fail("cpus", "none of the CPUs %s is there for this process; the supervisor has %s", l.CPUs, formatCPUs(&ours))
	case err != nil:
		fail("cpus", "the CPUs %s were refused: %s", l.CPUs, permission(err))
	default:
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &got); err == nil && l.CPUs != "" && got != *set {
			fail("cpus", "of the CPUs %s only %s are there for this process", l.CPUs, formatCPUs(&got))
		}
	}
}

// permission explains a permission error.
func permission(err error) string {
	switch err {
	case unix.EPERM, unix.EACCES:
		return fmt.Sprintf("%v (needs CAP_SYS_NICE, or an rlimit for it; in a cgroup of v1 also cpu.rt_runtime_us)", err)
	}
	return err.Error()
}

// applyAll is applyThread for all threads of a running process. New threads
// inherit from one that already has the new limits, or the next round finds
// them.
func (l limits) applyAll(id identity) (un []Unapplied, err error) {
	done := map[int]bool{}
	for round := range 10 {
		if s, err := readStat(id.pid); err != nil || s.started != id.started {
			return nil, fmt.Errorf("process %d has ended", id.pid)
		}
		if round == 0 {
			un = l.applySession(id.pid)
		}
		ids, err := threads(id.pid)
		if err != nil {
			return nil, fmt.Errorf("process %d has ended", id.pid)
		}
		ids = slices.DeleteFunc(ids, func(tid int) bool { return done[tid] })
		if len(ids) == 0 {
			return un, nil
		}
		for _, tid := range ids {
			done[tid] = true
			for _, u := range l.applyThread(tid) {
				if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", id.pid, tid)); err != nil {
					break // that thread has ended
				}
				un = merge(un, u)
			}
		}
	}
	return un, nil
}

// merge adds one that is not yet there.
func merge(list []Unapplied, u Unapplied) []Unapplied {
	if slices.ContainsFunc(list, func(x Unapplied) bool { return x.Limit == u.Limit }) {
		return list
	}
	return append(list, u)
}
