package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
)

// run is one run of a process, from its start, or its adoption, to its end.
type run struct {
	identity
	pidfd *os.File    // stands for this process, never for another with its pid
	group *group      // its cgroups; nil if none
	begun time.Time   // or adopted
	ended chan ending // has one value when it has ended
	why   string      // why we killed it, if we did

	probes chan verdict
	cancel context.CancelFunc // ends probing
}

// ending is an Exit, perhaps with nothing known but the fact.
type ending struct {
	Exit
	unknown bool
}

func newRun(id identity, pidfd *os.File, g *group) *run {
	r := &run{identity: id, pidfd: pidfd, group: g, begun: time.Now(), ended: make(chan ending, 1), probes: make(chan verdict), cancel: func() {}}
	go r.wait()
	return r
}

// wait reports the end of the process. It ends without if the pidfd is closed.
func (r *run) wait() {
	raw, err := r.pidfd.SyscallConn()
	if err != nil {
		return
	}
	over := func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return err == nil && n > 0
	}
	if err := raw.Read(over); err != nil {
		return
	}
	e := ending{Exit: Exit{Time: time.Now(), PID: r.pid, Code: -1}}
	status, known := r.status(raw)
	switch {
	case !known:
		e.unknown = true
		e.Text = "ended; how is not known, as an earlier supervisor had started it"
	case status.Signaled():
		e.Signal = status.Signal()
		e.Text = "killed by " + unix.SignalName(status.Signal())
	default:
		e.Code = status.ExitStatus()
		e.Text = fmt.Sprintf("exit status %d", e.Code)
	}
	r.ended <- e
}

// status reaps the process if it is our child. Otherwise it reads the status
// from /proc until init has reaped the process, and from then on from the
// pidfd, on recent kernels (6.15).
func (r *run) status(raw syscall.RawConn) (status syscall.WaitStatus, known bool) {
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.Waitid(unix.P_PIDFD, int(fd), nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	}); err == nil && failed == nil {
		// It is our child, and until we have waited for it nobody has its pid.
		if pid, err := syscall.Wait4(r.pid, &status, syscall.WNOHANG, nil); err == nil && pid == r.pid {
			return status, true
		}
	}
	for range 4 {
		if s, err := readStat(r.pid); err == nil && s.started == r.started && s.known {
			return syscall.WaitStatus(s.status), true
		}
		info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		_ = raw.Control(func(fd uintptr) { failed = unix.IoctlPidfdInfo(int(fd), &info) })
		if failed == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
			return syscall.WaitStatus(info.Exit_code), true
		}
		if failed != nil && !errors.Is(failed, unix.ESRCH) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, false
}

// signal sends a signal to this process; to none if it has ended, even if
// another process has its pid now.
func (r *run) signal(s unix.Signal) error {
	raw, err := r.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.PidfdSendSignal(int(fd), s, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(failed, unix.ESRCH) {
		return nil // it has ended
	}
	return failed
}

// close ends watching.
func (r *run) close() {
	r.cancel()
	r.pidfd.Close()
}

// spawn starts a process in a session of its own. A dedicated thread forks it
// and passes on its limits, so they are in force before the first instruction,
// and all threads of the process inherit them.
func (s *Supervisor) spawn(p Process, nonce string, g *group, log *os.File) (id identity, pidfd *os.File, un []Unapplied, err error) {
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return identity{}, nil, nil, err
	}
	defer devNull.Close()
	m := mark{s.config.Directory, p.Name, nonce}
	fd := -1
	attr := &os.ProcAttr{
		Env: merged(os.Environ(), p.Env, []string{markKey + "=" + m.String()}), Files: []*os.File{devNull, log, log},
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &fd},
	}
	start := func() {
		un = s.rights.thread(p.limits())
		if g != nil {
			if err := s.rights.beforeFork(g, attr.Sys); err != nil {
				un = append(un, Unapplied{"cgroup", err.Error()})
			}
		}
		var process *os.Process
		if process, err = os.StartProcess(p.Path, append([]string{p.Path}, p.Args...), attr); err == nil {
			id.pid = process.Pid
			_ = process.Release()
			for _, u := range s.rights.session(id.pid, p.limits()) {
				un = merge(un, u)
			}
			if g != nil {
				if err := s.rights.afterFork(g, id.pid); err != nil {
					un = merge(un, Unapplied{"cgroup", err.Error()})
				}
			}
		}
		if attr.Sys.UseCgroupFD {
			unix.Close(attr.Sys.CgroupFD)
		}
	}
	ownthread.Run(start)
	if err != nil {
		return identity{}, nil, un, err
	}
	// It is our child and not reaped yet, so the pid is its own.
	st, err := readStat(id.pid)
	if err == nil && fd < 0 {
		fd, err = unix.PidfdOpen(id.pid, 0)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = syscall.Kill(id.pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(id.pid, nil, 0, nil)
		return identity{}, nil, un, fmt.Errorf("watch the process started: %w", err)
	}
	id.started = st.started
	return id, os.NewFile(uintptr(fd), "pidfd"), un, nil
}

// openFor makes a new process start in a cgroup of v2.
func (g *group) openFor(attr *syscall.SysProcAttr) error {
	fd, err := unix.Open(g.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open cgroup %s: %w", g.Path, err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, fd
	return nil
}

// newNonce returns a name for a run.
func newNonce() string { return strings.ToLower(rand.Text()[:10]) }
