package supervisor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// autogroupTries is how often applySession tries to set a session's nice value:
// for unprivileged processes the kernel permits one change in 100 ms,
// system-wide.
const autogroupTries = 3

// applySession sets the nice value of the session that a process leads. Where
// the kernel groups processes by session (autogroup, sched(7)), the nice values
// of threads count only within their session, and all sessions have the same
// share of a processor.
func (l limits) applySession(pid int) (un []Unapplied) {
	path := fmt.Sprintf("/proc/%d/autogroup", pid)
	now, err := os.ReadFile(path) // such as "/autogroup-21921 nice 0"
	if err != nil || len(now) == 0 {
		return nil // there are no such groups, or the process has ended
	}
	if s, err := readStat(pid); err != nil || s.session != pid {
		return nil // it also holds other processes
	}
	want := fmt.Sprint(l.Nice)
	if fields := strings.Fields(string(now)); fields[len(fields)-1] == want {
		return nil
	}
	for try := 1; ; try++ {
		err = os.WriteFile(path, []byte(want), 0)
		if try == autogroupTries || !errors.Is(err, unix.EAGAIN) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err == nil || errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return []Unapplied{{"nice", fmt.Sprintf("nice %d of its session was refused: %s", l.Nice, permission(err))}}
}
