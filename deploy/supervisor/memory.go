package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is where memory cgroups are made.
type hierarchy struct {
	version int    // 1 or 2; 0: nowhere
	parent  string // folder below which ours are made
	why     string // there is no place
}

// findMemory finds the place for memory cgroups on this machine.
func findMemory() hierarchy {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err, err2); err != nil {
		return hierarchy{why: fmt.Sprintf("cgroups cannot be found: %v", err)}
	}
	return findMemoryIn("/", string(mounts), string(own))
}

// findMemoryIn is findMemory for the contents of /proc/self/mountinfo and
// /proc/self/cgroup; files are looked for below root.
func findMemoryIn(root, mounts, own string) hierarchy {
	var h hierarchy
	var at1, root1, at2, root2 string
	for line := range strings.Lines(mounts) {
		// 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		switch options := "," + g[2] + ","; {
		case g[0] == "cgroup" && strings.Contains(options, ",memory,"):
			root1, at1 = f[3], f[4]
		case g[0] == "cgroup2":
			root2, at2 = f[3], f[4]
		}
	}
	inside := func(mount, mountRoot, path string) string {
		rel, err := filepath.Rel(mountRoot, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			rel = "." // our own cgroup is not visible from here
		}
		return filepath.Join(root, mount, rel)
	}
	for line := range strings.Lines(own) {
		// 4:memory:/a/b, or of v2 0::/a/b
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) < 3:
		case at1 != "" && strings.Contains(","+part[1]+",", ",memory,"):
			return hierarchy{version: 1, parent: inside(at1, root1, part[2])}
		case at2 != "" && part[0] == "0":
			h = findUnified(inside(at2, root2, part[2]), filepath.Join(root, at2))
		}
	}
	if h.version == 0 && h.why == "" {
		h.why = "no memory cgroup hierarchy is mounted"
	}
	return h
}

// findUnified finds a cgroup of v2 that delegates the memory controller: our
// own, if it may have children with that controller, or else its parent.
func findUnified(own, mount string) hierarchy {
	for _, dir := range []string{own, filepath.Dir(own)} {
		if dir != mount && !strings.HasPrefix(dir, mount+"/") {
			break
		}
		if passesMemory(dir) {
			return hierarchy{version: 2, parent: dir}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0); err == nil && passesMemory(dir) {
			return hierarchy{version: 2, parent: dir}
		}
	}
	return hierarchy{why: fmt.Sprintf("cgroup %s does not pass the memory controller on, and that cannot be changed; have it delegated (systemd: Delegate=yes)", own)}
}

func passesMemory(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return err == nil && strings.Contains(" "+strings.TrimSpace(string(b))+" ", " memory ")
}

// group is a memory cgroup made for one run of a process.
type group struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
}

// groupOf returns our cgroup of a process, whose name begins with prefix; nil
// if there is none.
func (h hierarchy) groupOf(pid int, prefix string) *group {
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil || h.version == 0 {
		return nil
	}
	for line := range strings.Lines(string(own)) {
		name := filepath.Base(strings.TrimSpace(line))
		if g := (&group{h.version, filepath.Join(h.parent, name)}); strings.HasPrefix(name, prefix) && g.kills() >= 0 {
			return g
		}
	}
	return nil
}

// sweep removes our cgroups that are left over from runs with no other trace.
// Cgroups in use cannot be removed, and stay.
func (h hierarchy) sweep(prefix string) {
	left, _ := filepath.Glob(filepath.Join(h.parent, prefix+"*"))
	for _, path := range left {
		_ = unix.Rmdir(path)
	}
}

// make makes a cgroup with a limit in bytes.
func (h hierarchy) make(name string, limit int64) (*group, error) {
	if h.version == 0 {
		return nil, errors.New(h.why)
	}
	g := &group{h.version, filepath.Join(h.parent, name)}
	if err := os.Mkdir(g.Path, 0o755); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w (needs root, or a cgroup that is delegated to this user; systemd: Delegate=yes)", err)
		}
		return nil, fmt.Errorf("make a cgroup: %w", err)
	}
	if err := g.limit(limit); err != nil {
		_ = g.remove()
		return nil, err
	}
	return g, nil
}

// limit sets the limit in bytes, swap included; 0 removes it.
func (g *group) limit(bytes int64) error {
	if g.Version == 2 {
		text := strconv.FormatInt(bytes, 10)
		if bytes == 0 {
			text = "max"
		}
		_ = g.write("memory.swap.max", "0") // absent where swap is not accounted for
		return g.write("memory.max", text)
	}
	text := strconv.FormatInt(bytes, 10)
	if bytes == 0 {
		text = "-1"
	}
	// Memory with swap can never be less than memory: which of the two must be
	// first depends on the direction.
	_ = g.write("memory.memsw.limit_in_bytes", text)
	err := g.write("memory.limit_in_bytes", text)
	_ = g.write("memory.memsw.limit_in_bytes", text)
	return err
}

func (g *group) write(file, text string) error {
	err := os.WriteFile(filepath.Join(g.Path, file), []byte(text), 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the process already uses more than %s bytes, which cannot be reclaimed: %w", text, err)
	}
	return err
}

// joinThread moves a thread (v1), which must not be its process's first, into
// the cgroup; its children start there.
func (g *group) joinThread(tid int) error {
	return g.write("tasks", strconv.Itoa(tid))
}

// join moves a process into the cgroup.
func (g *group) join(pid int) error {
	return g.write("cgroup.procs", strconv.Itoa(pid))
}

// kills returns how many processes the kernel has killed in the cgroup because
// it was at its limit; -1 if there is no such cgroup.
func (g *group) kills() int {
	file := "memory.oom_control"
	if g.Version == 2 {
		file = "memory.events"
	}
	f, err := os.Open(filepath.Join(g.Path, file))
	if err != nil {
		return -1
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

// remove removes the cgroup, in which no process may be left.
func (g *group) remove() error {
	var err error
	for range 20 { // a process that has just ended may still be leaving
		if err = unix.Rmdir(g.Path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return &fs.PathError{Op: "remove cgroup", Path: g.Path, Err: err}
}
