package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// KeeperEnv is the environment variable that marks a lab's keeper, with the
// lab's directory as its value.
const KeeperEnv = "WEFT_LAB_KEEPER"

// Inode names a namespace.
type Inode struct{ dev, ino uint64 }

func InodeOf(path string) (Inode, bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return Inode{}, false
	}
	return Inode{st.Dev, st.Ino}, true
}

// labEnv is the environment variable by which what a lab starts, its keeper
// apart, is known as the lab's; its value is the lab's directory.
const labEnv = "WEFT_LAB_DIR"

// Mark returns an environment with the mark of a lab.
func Mark(env []string, lab string) []string {
	return append(env[:len(env):len(env)], labEnv+"="+Dir(lab))
}

// MarksOf returns the directories of the labs that a process says it belongs to:
// the lab that started it, and the lab of which it is the keeper.
func MarksOf(pid int) (started, kept string) {
	for _, v := range environOf(pid) {
		switch name, value, _ := strings.Cut(v, "="); name {
		case labEnv:
			started = value
		case KeeperEnv:
			kept = value
		}
	}
	return started, kept
}

// environOf returns the environment in which a process was started, each as NAME=VALUE.
func environOf(pid int) []string {
	env, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")) // it may have ended
	return strings.Split(strings.Trim(string(env), "\x00"), "\x00")
}

// Members says whether a process is one of the lab's: it is in one of its
// namespaces, or bears its mark. Nothing else is asked, so that processes
// are found whatever became of those that started them.
type Members struct {
	spaces map[Inode]bool
	marks  map[string]bool // variables of the environment, NAME=VALUE
}

func MembersOf(lab string) Members {
	b := Members{spaces: map[Inode]bool{}, marks: map[string]bool{labEnv + "=" + Dir(lab): true, KeeperEnv + "=" + Dir(lab): true}}
	home, _ := InodeOf("/proc/self/ns/net")
	for _, ns := range LabNetns(lab) {
		if in, ok := InodeOf(NetnsPath(ns)); ok && in != home {
			b.spaces[in] = true
		}
	}
	return b
}

func (b Members) has(pid int) bool {
	if in, ok := InodeOf(filepath.Join("/proc", strconv.Itoa(pid), "ns/net")); ok && b.spaces[in] {
		return true
	}
	for _, v := range environOf(pid) {
		if b.marks[v] {
			return true
		}
	}
	return false
}

// EndMarked ends the processes that have a variable in the environment in which they were
// started: SIGTERM, and SIGKILL after a second. It returns when none is left.
func EndMarked(ctx context.Context, name, value string) error {
	if name == "" || value == "" { // others may have that
		return fmt.Errorf("%s=%s does not tell processes apart", name, value)
	}
	return Members{marks: map[string]bool{name + "=" + value: true}}.End(ctx)
}

// AllProcesses lists every process of this machine but this one.
func AllProcesses() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Processes lists every process of the lab but this one.
func (b Members) Processes() ([]int, error) {
	pids, err := AllProcesses()
	return slices.DeleteFunc(pids, func(pid int) bool { return !b.has(pid) }), err
}

// starting reports whether a process may just be going over to another program: for a moment
// it has no environment then, and so no marks. Kernel threads never have one.
func starting(pid int) bool {
	const begun, size = 22, 23
	const young = 5 // seconds: others have none for good
	if statField(pid, size) == 0 || len(environOf(pid)[0]) > 0 {
		return false
	}
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // which every kernel has
	return uint64(now.Sec) < statField(pid, begun)/ticks+young
}

// End ends every process of the lab: SIGTERM, and SIGKILL after a second. It
// returns when none is left. It looks twice: one may have begun another and ended while
// the first look was on its way.
func (b Members) End(ctx context.Context) error {
	deadline := time.Now().Add(time.Second)
	for nothing := 0; ; {
		all, err := AllProcesses()
		if err != nil {
			return err
		}
		pids := slices.DeleteFunc(slices.Clone(all), func(pid int) bool { return !b.has(pid) })
		switch {
		case len(pids) > 0:
			nothing = 0
		case time.Now().Before(deadline) && slices.ContainsFunc(all, starting):
			time.Sleep(time.Millisecond)
			continue
		case nothing == 1:
			return nil
		default:
			nothing++
			continue
		}
		sig := unix.SIGTERM
		if time.Now().After(deadline) {
			sig = unix.SIGKILL
		}
		var fds []unix.PollFd
		for _, pid := range pids {
			if fd, ok := b.signal(pid, sig); ok {
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
		}
		waitAll(fds, time.Until(deadline))
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("end processes %v: %w", pids, err)
		}
	}
}

// signal signals a process, having made sure through its pidfd that it is
// still the one that belongs to the lab.
func (b Members) signal(pid int, sig unix.Signal) (int, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, false
	}
	if !b.has(pid) {
		unix.Close(fd)
		return 0, false
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		unix.Close(fd)
		return 0, false
	}
	return fd, true
}

// waitAll waits until every process has ended, at least 20 ms and at most
// until the given time has passed, and closes the pidfds.
func waitAll(fds []unix.PollFd, most time.Duration) {
	until := time.Now().Add(max(most, 20*time.Millisecond))
	for i := range fds {
		PollUntil(fds[i].Fd, until)
		unix.Close(int(fds[i].Fd))
	}
}

// PollUntil waits until a file can be read, a pidfd's process has ended, or the time has
// come, and reports whether it was the former. Signals, such as those of Go's scheduler,
// do not end it.
func PollUntil(fd int32, until time.Time) bool {
	for {
		left := max(time.Until(until), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// EndIn ends what runs in a namespace.
func EndIn(ctx context.Context, ns string) error {
	inside := Members{spaces: map[Inode]bool{}}
	here, _ := InodeOf("/proc/self/ns/net")
	if in, ok := InodeOf(NetnsPath(ns)); ok && in != here {
		inside.spaces[in] = true
	}
	return inside.End(ctx)
}
