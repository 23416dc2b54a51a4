package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/testwait"

	"github.com/weft-sdn/weft/internal/testprogram"
)

// threadLimits reads what all threads of a process have: nice, policy, CPUs;
// they must agree.
func threadLimits(t *testing.T, pid int) string {
	t.Helper()
	var got string
	ids, err := threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range ids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
		_, cpus, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
		cpus, _, _ = strings.Cut(cpus, "\n")
		one := fmt.Sprintf("nice %s policy %s cpus %s", f[16], f[38], cpus)
		if got != "" && got != one {
			t.Errorf("threads of %d differ: %s, %s", pid, got, one)
		}
		got = one
	}
	return got
}

// ours are the CPUs of this process.
func ours(t *testing.T) (all string, first int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for !set.IsSet(first) {
		first++
	}
	return formatCPUs(&set), first
}

func TestPriorityAndCPUs(t *testing.T) {
	all, cpu := ours(t)
	s := begin(t, Config{})
	p := sleeper("a")
	own := threadLimits(t, os.Getpid())
	p.Nice, p.CPUs = -5, fmt.Sprint(cpu)
	set(t, s, p, sleeper("b"))
	a := get(t, s, "a")
	if len(a.Unapplied) > 0 {
		t.Fatalf("not applied: %+v", a.Unapplied)
	}
	check := func(name, want string) {
		t.Helper()
		x := get(t, s, name)
		testwait.Until(t, "running with several threads", func() bool { ids, _ := threads(x.PID); return len(ids) > 2 })
		if got := threadLimits(t, x.PID); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		nice := strings.Join(strings.Fields(want)[:2], " ")
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", x.PID)); err == nil && len(b) > 0 && !strings.HasSuffix(strings.TrimSpace(string(b)), nice) {
			t.Errorf("the session of %s: %s, want %s", name, b, nice)
		}
	}
	check("a", fmt.Sprintf("nice -5 policy 0 cpus %d", cpu))
	check("b", "nice 0 policy 0 cpus "+all)
	if got := threadLimits(t, os.Getpid()); got != own {
		t.Errorf("the supervisor itself: %s, want %s as before", got, own)
	}

	// Changed while it runs.
	p.Nice, p.CPUs, p.RealTime = 7, "", true
	set(t, s, p, sleeper("b"))
	if x := get(t, s, "a"); x.PID != a.PID || len(x.Unapplied) > 0 {
		t.Errorf("%+v", x)
	}
	check("a", "nice 7 policy 2 cpus "+all)
	p.RealTime, p.Nice = false, 3
	set(t, s, p, sleeper("b"))
	check("a", "nice 3 policy 0 cpus "+all)

	// From the start.
	r := sleeper("rt")
	r.RealTime = true
	set(t, s, r)
	check("rt", "nice 0 policy 2 cpus "+all)
}

func TestNoSuchCPU(t *testing.T) {
	all, cpu := ours(t)
	s := begin(t, Config{})
	none, some := sleeper("none"), sleeper("some")
	none.CPUs, some.CPUs = "1000-1002", fmt.Sprintf("%d,1000", cpu)
	set(t, s, none, some)
	x, y := get(t, s, "none"), get(t, s, "some")
	if x.State != Up || len(x.Unapplied) != 1 || x.Unapplied[0] != (Unapplied{"cpus", "none of the CPUs 1000-1002 is there for this process; the supervisor has " + all}) {
		t.Errorf("%+v", x)
	}
	if y.State != Up || len(y.Unapplied) != 1 || y.Unapplied[0] != (Unapplied{"cpus", fmt.Sprintf("of the CPUs %d,1000 only %d are there for this process", cpu, cpu)}) {
		t.Errorf("%+v", y)
	}
}

func TestNotAllowed(t *testing.T) {
	s := begin(t, Config{})
	s.places.memory = hierarchy{why: "no memory cgroup hierarchy is mounted"}
	p := sleeper("a")
	p.Memory = 64 << 20
	set(t, s, p)
	if x := get(t, s, "a"); x.State != Up || len(x.Unapplied) != 1 || x.Unapplied[0] != (Unapplied{"memory", "no memory cgroup hierarchy is mounted"}) {
		t.Errorf("%+v", x)
	}
	s.places.memory = hierarchy{version: 1, parent: "/no/such/folder"}
	p.Memory++
	set(t, s, p)
	if x := get(t, s, "a"); x.State != Up || len(x.Unapplied) != 1 || !strings.Contains(x.Unapplied[0].Reason, "make a cgroup: ") {
		t.Errorf("%+v", x)
	}
	s.places = findPlaces()
}

// modest has a supervisor without privileges run a process with limits, and
// returns its directory and what it says.
func modest(t *testing.T, env ...string) (out string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "supervisor")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		testprogram.Install(t, filepath.Join(dir, "test"), binary)
	}
	for _, d := range []string{dir, filepath.Join(dir, "state")} {
		if err == nil {
			os.Mkdir(d, 0o755)
			err = errors.Join(os.Chmod(d, 0o755), os.Chown(d, stranger, stranger))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range env {
		if v == "ROOTPART" {
			env[i] += "=" + serveRights(t, filepath.Join(dir, "state"))
		}
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=none")
	cmd.Dir = dir
	cmd.Env = append([]string{"ROLE=modest", "DIR=" + filepath.Join(dir, "state")}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text)
}

// stranger is a user who is not root.
const stranger = 65534

// TestUnprivileged: without privileges the processes run all the same, and
// Status says what they run without.
func TestUnprivileged(t *testing.T) {
	out := modest(t)
	for _, want := range []string{"up true\n", "nice nice -5 was refused: ", "real-time SCHED_RR was refused, nice -5 instead: ", "CAP_SYS_NICE", "memory make a cgroup: ", "needs root, or a cgroup that is delegated", "cpus of the CPUs 0-1000 only ", "ended <nil>"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestMemory(t *testing.T) {
	s := begin(t, Config{})
	if s.places.memory.version == 0 {
		t.Fatalf("this test needs a memory cgroup: %s", s.places.memory.why)
	}
	p := actor("a", "eat")
	p.Memory = 48 << 20
	set(t, s, p)
	x := until(t, s, "a", "killed at its limit", func(x Status) bool { return x.LastExit != nil })
	if e := x.LastExit; !e.OutOfMemory || e.Signal != unix.SIGKILL || e.Text != "out of memory: the kernel killed it at its memory limit" || len(x.Unapplied) > 0 {
		t.Fatalf("%+v %+v", x, e)
	}

	// A limit is set, changed and removed while the process runs.
	q := sleeper("b")
	set(t, s, q)
	pid := get(t, s, "b").PID
	for _, limit := range []int64{256 << 20, 128 << 20, 512 << 20} {
		q.Memory = limit
		set(t, s, q)
		x := get(t, s, "b")
		if x.PID != pid || len(x.Unapplied) > 0 {
			t.Fatalf("%+v", x)
		}
		if got := memoryLimit(t, s, "b"); got != fmt.Sprint(limit) {
			t.Errorf("limit %s, want %d", got, limit)
		}
	}
	q.Memory = 0
	set(t, s, q)
	if got := memoryLimit(t, s, "b"); got == fmt.Sprint(512<<20) {
		t.Errorf("the limit %s stayed", got)
	}
}

// memoryLimit reads the limit of the cgroup in which a process is.
func memoryLimit(t *testing.T, s *Supervisor, name string) string {
	t.Helper()
	s.mu.Lock()
	g := s.children[name].record.Group
	pid := s.children[name].record.PID
	s.mu.Unlock()
	if g == nil {
		t.Fatal("no cgroup")
	}
	aloneIn(t, g.Path, pid)
	file := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[g.Version]
	b, err := os.ReadFile(filepath.Join(g.Path, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// aloneIn waits until a process is alone in a cgroup: the thread that started it there ends
// a moment later.
func aloneIn(t *testing.T, cgroup string, pid int) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("process %d is alone in its cgroup", pid), func() bool { return readFile(cgroup, "cgroup.procs") == fmt.Sprint(pid) })
}

func TestFindMemory(t *testing.T) {
	const v1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const docker = "35 31 0:32 /docker/7 /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n"
	const v2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	for _, c := range []struct {
		name, mounts, own string
		passes            []string // cgroups of v2 that pass memory on
		version           int
		parent, why       string
	}{
		{"v1", v1, "4:memory:/a/b\n0::/\n", nil, 1, "/sys/fs/cgroup/memory/a/b", ""},
		{"v1, order", v1, "0::/\n4:memory:/a/b\n", nil, 1, "/sys/fs/cgroup/memory/a/b", ""},
		{"v1 in a container", docker, "4:memory:/docker/7\n", nil, 1, "/sys/fs/cgroup/memory", ""},
		{"v1 in another's", docker, "4:memory:/other\n", nil, 1, "/sys/fs/cgroup/memory", ""},
		{"v2, ours", v2, "0::/weft.slice/a\n", []string{"weft.slice/a", "weft.slice"}, 2, "/sys/fs/cgroup/weft.slice/a", ""},
		{"v2, beside us", v2, "0::/weft.slice/a\n", []string{"weft.slice"}, 2, "/sys/fs/cgroup/weft.slice", ""},
		{"v2, not delegated", v2, "0::/weft.slice/a\n", nil, 0, "", "does not pass the memory controller on"},
		{"none", "22 1 0:1 / / rw - ext4 x rw\n", "0::/\n", nil, 0, "", "no memory cgroup hierarchy is mounted"},
	} {
		root := t.TempDir()
		for _, dir := range c.passes {
			dir = filepath.Join(root, "sys/fs/cgroup", dir)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("cpu memory pids\n"), 0o644)
		}
		h := findIn(root, c.mounts, c.own, "memory")
		if h.version != c.version || strings.TrimPrefix(h.parent, root) != c.parent || !strings.Contains(h.why, c.why) || (h.why == "") != (c.why == "") {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string]string{"0": "0", "0-1,3": "0-1,3", "3, 1,2": "1-3", "1023": "1023"} {
		set, err := parseCPUs(list)
		if err != nil || formatCPUs(set) != want {
			t.Errorf("%q: %v, want %s", list, err, want)
		}
	}
	for _, list := range []string{"a", "1-", "-1", "2-1", "1024", ",", "1,,2"} {
		if _, err := parseCPUs(list); err == nil {
			t.Errorf("%q: no error", list)
		}
	}
}

func TestLogRotation(t *testing.T) {
	s := begin(t, Config{LogSize: 256 << 10})
	set(t, s, actor("a", "print"))
	path := filepath.Join(s.config.Directory, "a.log")
	testwait.Until(t, "rotated", func() bool { _, err := os.Stat(path + ".1"); return err == nil })
	old, err := os.Stat(path + ".1")
	if err != nil || old.Size() < 256<<10 {
		t.Fatalf("%v %v", old, err)
	}
	now, err := os.Stat(path)
	if err != nil || now.Size() >= 16<<20 {
		t.Fatalf("%v %v", now, err)
	}
	size := now.Size()
	testwait.Until(t, "going on", func() bool {
		now, err := os.Stat(path)
		return err == nil && now.Size() != size
	})
	b, _ := os.ReadFile(path)
	if strings.Contains(string(b), "\x00") {
		t.Error("the emptied file has a hole: it was not appended to")
	}

	// What was printed last.
	last := logFile{path: filepath.Join(t.TempDir(), "last.log")}
	for text, want := range map[string]string{"": "", "one\n": "one", "one\ntwo\n": "two", strings.Repeat("ü", 300): strings.Repeat("ü", 250), "bad \xff end": "bad  end"} {
		os.WriteFile(last.path, []byte(text), 0o600)
		if got := last.lastLine(); got != want {
			t.Errorf("the last line of %q is %q", text, got)
		}
	}

	// One that grew while no supervisor ran.
	l := logFile{filepath.Join(t.TempDir(), "x.log"), 10}
	os.WriteFile(l.path, []byte(strings.Repeat("a", 30)+strings.Repeat("b", 20)), 0o600)
	if err := l.rotate(); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(l.path + ".1"); string(b) != strings.Repeat("b", 20) {
		t.Errorf("kept %q", b)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := begin(t, Config{})
	var list []Process
	for i := range 20 {
		list = append(list, sleeper(fmt.Sprintf("p%d", i)))
	}
	began := time.Now()
	set(t, s, list...)
	t.Logf("20 processes in %v", time.Since(began))
	for _, x := range s.Status() {
		unix.Kill(x.PID, unix.SIGKILL)
	}
	for _, p := range list {
		until(t, s, p.Name, "restarted", func(x Status) bool { return x.Restarts == 1 && isUp(x) })
	}
}

// TestLimitsOfAnother: a process that has the pid of one that has ended keeps its
// own limits.
func TestLimitsOfAnother(t *testing.T) {
	other := exec.Command("sleep", "60")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	pid := other.Process.Pid
	session := func() string {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid)) // there may be none
		return string(b)
	}
	before, threads := session(), threadLimits(t, pid)
	if _, err := (limits{Nice: 5}).applyAll(identity{pid: pid, started: 1}); err == nil {
		t.Error("limits are applied to another process")
	}
	if after := session(); after != before {
		t.Errorf("its session was %q and is %q", before, after)
	}
	if after := threadLimits(t, pid); after != threads {
		t.Errorf("it had %s and has %s", threads, after)
	}
}
