package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is where cgroups with a controller are made.
type hierarchy struct {
	controller string // memory or cpu
	version    int    // 1 or 2; 0: nowhere
	parent     string // folder below which ours are made
	why        string // there is no place
}

// places are the hierarchies of both controllers.
type places struct{ memory, cpu hierarchy }

// findPlaces finds the places for cgroups on this machine.
func findPlaces() places {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err, err2); err != nil {
		why := fmt.Sprintf("cgroups cannot be found: %v", err)
		return places{hierarchy{controller: "memory", why: why}, hierarchy{controller: "cpu", why: why}}
	}
	p := places{findIn("/", string(mounts), string(own), "memory"), findIn("/", string(mounts), string(own), "cpu")}
	if p.memory.version == 2 && p.cpu.version == 2 && p.memory.parent != p.cpu.parent {
		p.cpu = hierarchy{controller: "cpu", why: fmt.Sprintf("cgroup %s does not pass the cpu controller on, which %s does; have it delegated (systemd: Delegate=yes)", p.memory.parent, p.cpu.parent)}
	}
	return p
}

// findIn finds the hierarchy of a controller from the contents of
// /proc/self/mountinfo and /proc/self/cgroup; files are looked for below root.
func findIn(root, mounts, own, controller string) hierarchy {
	h := hierarchy{controller: controller}
	var at1, root1, at2, root2 string
	for line := range strings.Lines(mounts) {
		// 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		switch options := "," + g[2] + ","; {
		case g[0] == "cgroup" && strings.Contains(options, ","+controller+","):
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
		case at1 != "" && strings.Contains(","+part[1]+",", ","+controller+","):
			return hierarchy{controller, 1, inside(at1, root1, part[2]), ""}
		case at2 != "" && part[0] == "0":
			h = findUnified(inside(at2, root2, part[2]), filepath.Join(root, at2), controller)
		}
	}
	if h.version == 0 && h.why == "" {
		h.why = "no " + controller + " cgroup hierarchy is mounted"
	}
	return h
}

// findUnified finds a cgroup of v2 that delegates a controller: our own, if it
// may have children with that controller, or else its parent.
func findUnified(own, mount, controller string) hierarchy {
	for _, dir := range []string{own, filepath.Dir(own)} {
		if dir != mount && !strings.HasPrefix(dir, mount+"/") {
			break
		}
		if passes(dir, controller) {
			return hierarchy{controller, 2, dir, ""}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err == nil && passes(dir, controller) {
			return hierarchy{controller, 2, dir, ""}
		}
	}
	return hierarchy{controller: controller, why: fmt.Sprintf("cgroup %s does not pass the %s controller on, and that cannot be changed; have it delegated (systemd: Delegate=yes)", own, controller)}
}

func passes(dir, controller string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return err == nil && strings.Contains(" "+strings.TrimSpace(string(b))+" ", " "+controller+" ")
}

// group is the cgroups made for one run of a process. In v2 both controllers
// are in one.
type group struct {
	Version int    `json:"version"`
	Path    string `json:"path,omitempty"` // with the memory limit; empty: none
	CPU     string `json:"cpu,omitempty"`  // with the quota; empty: none
}

// folders returns the cgroups, each once.
func (g *group) folders() []string {
	list := slices.DeleteFunc([]string{g.Path, g.CPU}, func(s string) bool { return s == "" })
	return slices.Compact(list)
}

// name returns the name of the cgroups.
func (g *group) name() string { return filepath.Base(g.folders()[0]) }

// named returns our cgroups of a name; nil if there are none.
func (p places) named(name string) *group {
	g := &group{}
	there := func(h hierarchy, path *string) {
		at := filepath.Join(h.parent, name)
		if st, err := os.Stat(at); h.version > 0 && err == nil && st.IsDir() {
			g.Version, *path = h.version, at
		}
	}
	there(p.memory, &g.Path)
	there(p.cpu, &g.CPU)
	if g.Version == 0 {
		return nil
	}
	return g
}

// groupOf returns our cgroups of a process, whose name begins with prefix; nil
// if there are none.
func (p places) groupOf(pid int, prefix string) *group {
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(own)) {
		if name := filepath.Base(strings.TrimSpace(line)); strings.HasPrefix(name, prefix) {
			if g := p.named(name); g != nil {
				return g
			}
		}
	}
	return nil
}

// sweep removes our cgroups that are left over from runs with no other trace.
// Cgroups in use cannot be removed, and stay.
func (p places) sweep(prefix string) {
	for _, h := range []hierarchy{p.memory, p.cpu} {
		left, _ := filepath.Glob(filepath.Join(h.parent, prefix+"*"))
		for _, path := range left {
			_ = unix.Rmdir(path)
		}
	}
}

// limit sets the limits of cgroups, and makes those of the name that g (nil:
// none yet) lacks. It returns them, nil if there are none, and the limits that
// could not be applied.
func (p places) limit(g *group, name string, l limits) (*group, []Unapplied) {
	var un []Unapplied
	all := group{}
	if g != nil {
		all = *g
	}
	apply := func(what string, h hierarchy, path *string, wanted bool, set func(string) error) {
		if !wanted && *path == "" {
			return
		}
		made := false
		var err error
		if *path == "" {
			*path, made, err = h.make(name)
		}
		if err == nil {
			err = set(*path)
		}
		if err != nil {
			un = append(un, Unapplied{what, err.Error()})
			if made {
				_ = unix.Rmdir(*path)
				*path = ""
			}
			return
		}
		all.Version = h.version
	}
	apply("memory", p.memory, &all.Path, l.Memory > 0, func(path string) error { return limitMemory(path, p.memory.version, l.Memory) })
	apply("cpu_quota", p.cpu, &all.CPU, l.CPUQuota > 0, func(path string) error { return limitCPU(path, p.cpu.version, l.CPUQuota) })
	if all.Version == 0 {
		return nil, un
	}
	return &all, un
}

// make makes a cgroup; made is false if it was there.
func (h hierarchy) make(name string) (path string, made bool, err error) {
	if h.version == 0 {
		return "", false, errors.New(h.why)
	}
	path = filepath.Join(h.parent, name)
	switch err := os.Mkdir(path, 0o755); {
	case errors.Is(err, fs.ErrExist):
		return path, false, nil
	case errors.Is(err, fs.ErrPermission):
		return "", false, fmt.Errorf("make a cgroup: %w (needs root, or a cgroup that is delegated to this user; systemd: Delegate=yes)", err)
	case err != nil:
		return "", false, fmt.Errorf("make a cgroup: %w", err)
	}
	return path, true, nil
}

// limitMemory sets the limit of a cgroup in bytes, swap included; 0 removes it.
func limitMemory(path string, version int, bytes int64) error {
	if version == 2 {
		text := strconv.FormatInt(bytes, 10)
		if bytes == 0 {
			text = "max"
		}
		_ = write(path, "memory.swap.max", "0") // absent where swap is not accounted for
		return write(path, "memory.max", text)
	}
	text := strconv.FormatInt(bytes, 10)
	if bytes == 0 {
		text = "-1"
	}
	// Memory with swap can never be less than memory: which of the two must be
	// first depends on the direction.
	_ = write(path, "memory.memsw.limit_in_bytes", text)
	err := write(path, "memory.limit_in_bytes", text)
	_ = write(path, "memory.memsw.limit_in_bytes", text)
	return err
}

// quotaPeriod is how often a process gets its quota: a short time, because it
// may have to wait for the rest of it. The kernel wants quotas of at least 1 ms.
func quotaPeriod(share float64) time.Duration {
	return max(10*time.Millisecond, time.Duration(float64(time.Millisecond)/share))
}

// limitCPU sets the share of a processor that a cgroup may use; 0 removes the
// limit.
func limitCPU(path string, version int, share float64) error {
	if share == 0 {
		if version == 2 {
			return write(path, "cpu.max", "max")
		}
		return write(path, "cpu.cfs_quota_us", "-1")
	}
	period := quotaPeriod(share)
	us := strconv.FormatInt(period.Microseconds(), 10)
	quota := strconv.FormatInt(int64(math.Ceil(share*float64(period.Microseconds()))), 10)
	if version == 2 {
		return write(path, "cpu.max", quota+" "+us)
	}
	if err := write(path, "cpu.cfs_period_us", us); err != nil {
		return err
	}
	return write(path, "cpu.cfs_quota_us", quota)
}

func write(path, file, text string) error {
	err := os.WriteFile(filepath.Join(path, file), []byte(text), 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the process already uses more than %s bytes, which cannot be reclaimed: %w", text, err)
	}
	return err
}

// joinThread moves a thread (v1), which must not be its process's first, into
// the cgroups; its children start there.
func (g *group) joinThread(tid int) error {
	return g.each("tasks", tid)
}

// join moves a process into the cgroups.
func (g *group) join(pid int) error {
	return g.each("cgroup.procs", pid)
}

func (g *group) each(file string, id int) error {
	var errs []error
	for _, path := range g.folders() {
		errs = append(errs, write(path, file, strconv.Itoa(id)))
	}
	return errors.Join(errs...)
}

// countKills returns the number of processes that the kernel killed in the cgroup at
// its memory limit, or -1 if there is no such cgroup.
func (g *group) countKills() int {
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

// remove removes the cgroups, in which no process may be left.
func (g *group) remove() error {
	var errs []error
	for _, path := range g.folders() {
		var err error
		for range 20 { // a process that has just ended may still be leaving
			if err = unix.Rmdir(path); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err != nil {
			errs = append(errs, &fs.PathError{Op: "remove cgroup", Path: path, Err: err})
		}
	}
	return errors.Join(errs...)
}
