package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// identity identifies a process by what /proc says: a pid alone may have been
// reused.
type identity struct {
	pid     int
	started uint64 // in clock ticks since boot: /proc/PID/stat field 22
}

// stat is what we read of /proc/PID/stat.
type stat struct {
	state   byte // field 3: R, S, D, Z, T …
	session int  // field 6
	started uint64
	status  int // field 52, of one that has ended: as wait(2) reports it
	known   bool
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads a line of /proc/PID/stat. Field 2, the command in brackets,
// may itself contain spaces and brackets.
func parseStat(line []byte) (s stat, err error) {
	end := bytes.LastIndexByte(line, ')')
	fields := strings.Fields(string(line[end+1:])) // from field 3 on
	if end < 0 || len(fields) < 20 {
		return stat{}, fmt.Errorf("/proc/PID/stat is not as expected: %q", line)
	}
	s.state = fields[0][0]
	s.session, _ = strconv.Atoi(fields[3])
	if s.started, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return stat{}, fmt.Errorf("/proc/PID/stat field 22: %w", err)
	}
	if len(fields) >= 50 && s.state == 'Z' {
		s.status, err = strconv.Atoi(fields[49])
		s.known = err == nil && os.Geteuid() == 0 // to others it may read 0
	}
	return s, nil
}

// needPidfd returns an error if the kernel lacks what we need.
func needPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("the kernel has no pidfd (%w); Linux 5.3 or later is needed", err)
	}
	return unix.Close(fd)
}

// open returns a pidfd of a process, for polling; it fails if the process has
// ended, even if its pid is in use again.
func (id identity) open() (*os.File, error) {
	fd, err := unix.PidfdOpen(id.pid, 0)
	if err != nil {
		return nil, err
	}
	// The pidfd refers to the process that had the pid when it was opened; it
	// is the right one if the start time is unchanged.
	s, err := readStat(id.pid)
	if err == nil && (s.started != id.started || s.state == 'Z' || s.state == 'X') {
		err = errors.New("it has ended")
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // for the runtime's poller
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// threads returns the ids of the threads of a process.
func threads(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// markKey is the environment variable that marks a supervised process. It finds
// a process that the state file lacks because the supervisor ended just after
// the start.
const markKey = "WEFT_SUPERVISED"

// mark is the value of markKey.
type mark struct{ directory, name, nonce string }

func (m mark) String() string { return m.nonce + ":" + m.name + ":" + m.directory }

func parseMark(s string) (m mark, ok bool) {
	part := strings.SplitN(s, ":", 3)
	if len(part) < 3 {
		return mark{}, false
	}
	return mark{nonce: part[0], name: part[1], directory: part[2]}, true
}

// listMarked returns the processes that a supervisor of the directory started, oldest
// first. They lead their session; processes that they start do not.
func listMarked(directory string) (list []markedProcess) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil {
			continue // ended, or not ours
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		for v := range bytes.SplitSeq(env, []byte{0}) {
			value, ok := strings.CutPrefix(string(v), markKey+"=")
			if !ok {
				continue
			}
			m, ok := parseMark(value)
			if s, err := readStat(pid); ok && err == nil && m.directory == directory && s.session == pid {
				list = append(list, markedProcess{m, identity{pid, s.started}})
			}
		}
	}
	slices.SortFunc(list, func(a, b markedProcess) int {
		if a.started < b.started {
			return -1
		}
		return 1
	})
	return list
}

type markedProcess struct {
	mark
	identity
}
