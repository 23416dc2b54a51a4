package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// record is what the state file keeps of a process, for the next supervisor.
// It does not keep the environment, which may contain secrets.
type record struct {
	Name     string    `json:"name"`
	Nonce    string    `json:"nonce,omitempty"` // of its mark; "" if it does not run
	PID      int       `json:"pid,omitempty"`   // 0 with a nonce: about to be started
	Started  uint64    `json:"started,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Hash     string    `json:"hash,omitempty"` // of path, arguments, environment
	Restarts int       `json:"restarts,omitempty"`
	Group    *group    `json:"cgroup,omitempty"`
}

// state is the state file.
type state struct {
	Boot      string   `json:"boot"` // the records are of this boot of the machine
	Processes []record `json:"processes"`
}

const stateFile = "state.json"

// lockPatience is how long the lock of a directory is waited for.
const lockPatience = 500 * time.Millisecond

// lockDirectory makes a directory, and locks it until the file is closed.
func lockDirectory(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// A supervisor that was killed while it started a process leaves the lock
	// to that process, until it executes its program. That takes only a moment,
	// and then its mark is visible.
	for end := time.Now().Add(lockPatience); ; time.Sleep(5 * time.Millisecond) {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		by, _ := os.ReadFile(f.Name())
		return nil, fmt.Errorf("%s is in use by another supervisor, process %s; end that one, or use another directory", dir, strings.TrimSpace(string(by)))
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// boot identifies this boot of the machine: pids and start times of other boots
// mean nothing.
func boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// save writes the state file; the caller holds mu, or is alone.
func (s *Supervisor) save() {
	st := state{Boot: s.boot, Processes: []record{}}
	for _, c := range s.children {
		st.Processes = append(st.Processes, c.record)
	}
	slices.SortFunc(st.Processes, func(a, b record) int { return strings.Compare(a.Name, b.Name) })
	b, err := json.MarshalIndent(st, "", "  ")
	path := filepath.Join(s.config.Directory, stateFile)
	if err == nil {
		err = os.WriteFile(path+".new", append(b, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.log.Error("the state of the processes was not written; a supervisor that is started now may not find them", "error", err)
	}
}

// load reads the state file. If it is unreadable, load uses the marks of the
// running processes.
func (s *Supervisor) load() state {
	b, err := os.ReadFile(filepath.Join(s.config.Directory, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}
	}
	var st state
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	if err != nil {
		s.log.Warn("the state file cannot be read; looking for the processes themselves", "error", err)
		return s.search()
	}
	return st
}

// search reconstructs the state from the marks of the running processes.
func (s *Supervisor) search() state {
	st := state{Boot: s.boot}
	for _, m := range listMarked(s.config.Directory) {
		if !slices.ContainsFunc(st.Processes, func(r record) bool { return r.Name == m.name }) {
			st.Processes = append(st.Processes, record{Name: m.name, Nonce: m.nonce, PID: m.pid, Started: m.started, Since: time.Now(), Group: s.places.groupOf(m.pid, s.groupPrefix())})
		}
	}
	return st
}

// complete adds the pids of processes that were about to start when the file
// was written.
func (s *Supervisor) complete(list []record) {
	missing := func(r record) bool { return r.Nonce != "" && r.PID == 0 }
	for try := 0; try < 2 && slices.ContainsFunc(list, missing); try++ {
		if try > 0 {
			time.Sleep(20 * time.Millisecond) // one may be executing its program just now
		}
		found := listMarked(s.config.Directory)
		for i := range list {
			if j := slices.IndexFunc(found, func(m markedProcess) bool { return m.nonce == list[i].Nonce }); j >= 0 && missing(list[i]) {
				list[i].PID, list[i].Started, list[i].Since = found[j].pid, found[j].started, time.Now()
			}
		}
	}
}

// adopt takes over the processes of an earlier supervisor, and cleans up after
// the others.
func (s *Supervisor) adopt() {
	st := s.load()
	sameBoot := st.Boot == s.boot
	if sameBoot {
		s.complete(st.Processes)
	}
	for _, r := range st.Processes {
		var run *run
		if sameBoot && r.PID != 0 {
			if fd, err := (identity{r.PID, r.Started}).open(); err == nil {
				run = newRun(identity{r.PID, r.Started}, fd, r.Group)
			} else if !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist) {
				s.log.Debug("not adopted", "process", r.Name, "pid", r.PID, "reason", err)
			}
		}
		pid, group := r.PID, r.Group
		if run == nil {
			r = record{Name: r.Name, Restarts: r.Restarts, Hash: r.Hash}
		}
		c := s.add(r)
		switch {
		case run != nil:
			s.log.Info("adopted", "process", r.Name, "pid", r.PID)
			c.status.State, c.status.PID, c.status.Adopted, c.status.Started = Starting, r.PID, true, r.Since
			if s.config.Probe == nil {
				c.status.State = Up
			}
		case pid != 0:
			e := Exit{Time: time.Now(), PID: pid, Code: -1, Text: "ended while no supervisor ran"}
			if group != nil && sameBoot && group.countKills() > 0 {
				e.Signal, e.OutOfMemory = syscall.SIGKILL, true
				e.Text += "; the kernel killed it at its memory limit"
			}
			c.status.LastExit = &e
			c.died = true
			s.log.Warn("a process is gone", "process", r.Name, "pid", pid)
		}
		if run == nil && group != nil && sameBoot {
			if err := s.rights.removeGroup(group); err != nil {
				s.log.Warn("left of an earlier run", "error", err)
			}
		}
		go c.keep(run)
	}
	s.rights.sweepGroups(s.groupPrefix())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save()
}

// groupName names the cgroup of a run.
func (s *Supervisor) groupName(name, nonce string) string {
	return s.groupPrefix() + name + "-" + nonce
}

// groupPrefix is the prefix of the names of all cgroups of a supervisor of this
// directory.
func (s *Supervisor) groupPrefix() string { return groupPrefix(s.config.Directory) }

func groupPrefix(directory string) string {
	h := sha256.Sum256([]byte(directory))
	return "weft-" + hex.EncodeToString(h[:4]) + "-"
}
