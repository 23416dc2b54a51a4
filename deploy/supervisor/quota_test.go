package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestQuota: a process that would use a whole processor gets its share, with a
// memory limit or without; the quota is changed and removed while it runs.
func TestQuota(t *testing.T) {
	s := begin(t, Config{})
	if s.places.cpu.version == 0 {
		t.Fatalf("this test needs a cpu cgroup: %s", s.places.cpu.why)
	}
	p, q := actor("a", "spin"), actor("b", "spin")
	p.CPUQuota, q.CPUQuota, q.Memory = 0.1, 0.25, 256<<20
	set(t, s, p, q)
	for name, want := range map[string]float64{"a": 0.1, "b": 0.25} {
		x := get(t, s, name)
		if len(x.Unapplied) > 0 {
			t.Fatalf("%s: %+v", name, x.Unapplied)
		}
		if got := share(t, x.PID); got > 1.3*want+0.01 {
			t.Errorf("%s uses %.2f of a processor, want at most %v", name, got, want)
		}
	}
	a := get(t, s, "a")
	p.CPUQuota, p.Memory = 0.05, 128<<20
	set(t, s, p, q)
	if x := get(t, s, "a"); x.PID != a.PID || len(x.Unapplied) > 0 {
		t.Fatalf("%+v", x)
	}
	if got := quotaOf(t, s, "a"); got != 0.05 {
		t.Errorf("quota %v, want 0.05", got)
	}
	if got := memoryLimit(t, s, "a"); got != fmt.Sprint(128<<20) {
		t.Errorf("memory limit %s of a process that had a quota only", got)
	}
	p.CPUQuota = 0
	set(t, s, p, q)
	if got := quotaOf(t, s, "a"); got != 0 {
		t.Errorf("quota %v, want none", got)
	}
}

// TestNoQuota: where there is no place for a cgroup, the process runs and its
// status says why it has no quota.
func TestNoQuota(t *testing.T) {
	s := begin(t, Config{})
	s.places.cpu = hierarchy{controller: "cpu", why: "no cpu cgroup hierarchy is mounted"}
	p := sleeper("a")
	p.CPUQuota, p.Memory = 0.5, 64<<20
	set(t, s, p)
	if x := get(t, s, "a"); x.State != Up || len(x.Unapplied) != 1 || x.Unapplied[0] != (Unapplied{"cpu_quota", "no cpu cgroup hierarchy is mounted"}) {
		t.Errorf("%+v", x)
	}
	if got := memoryLimit(t, s, "a"); got != fmt.Sprint(64<<20) {
		t.Errorf("memory limit %s", got)
	}
	p.CPUQuota = -1
	if err := s.Set(t.Context(), []Process{p}); err == nil || !strings.Contains(err.Error(), "quota of -1 processors; allowed: 0 (none), or 0.01 to 4096") {
		t.Errorf("%v", err)
	}
}

// TestQuotaFiles checks what is written for both versions of cgroups.
func TestQuotaFiles(t *testing.T) {
	for _, c := range []struct {
		version int
		share   float64
		want    string
	}{
		{2, 0.25, "cpu.max 2500 10000"}, {2, 0.01, "cpu.max 1000 100000"}, {2, 2, "cpu.max 20000 10000"}, {2, 0, "cpu.max max"},
		{1, 0.25, "cpu.cfs_period_us 10000 cpu.cfs_quota_us 2500"}, {1, 0, "cpu.cfs_quota_us -1"},
	} {
		dir := t.TempDir()
		for _, f := range []string{"cpu.max", "cpu.cfs_period_us", "cpu.cfs_quota_us"} {
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := limitCPU(dir, c.version, c.share); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range []string{"cpu.max", "cpu.cfs_period_us", "cpu.cfs_quota_us"} {
			if text := readFile(dir, f); text != "" {
				got = append(got, f+" "+text)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("version %d, %v: %s, want %s", c.version, c.share, s, c.want)
		}
	}
}

// share returns the share of a processor that a process uses over a second.
func share(t *testing.T, pid int) float64 {
	t.Helper()
	var clock unix.Timespec
	used := func() time.Duration {
		if err := unix.ClockGettime(int32(^pid<<3|2), &clock); err != nil { // CPUCLOCK_SCHED of the process
			t.Fatal(err)
		}
		return time.Duration(clock.Nano())
	}
	began, before := time.Now(), used()
	time.Sleep(time.Second)
	return float64(used()-before) / float64(time.Since(began))
}

// quotaOf reads the quota of the cgroup in which a process is; 0: none.
func quotaOf(t *testing.T, s *Supervisor, name string) float64 {
	t.Helper()
	s.mu.Lock()
	g := *s.children[name].record.Group
	pid := s.children[name].record.PID
	s.mu.Unlock()
	aloneIn(t, g.CPU, pid)
	text := readFile(g.CPU, "cpu.max")
	if g.Version == 1 {
		text = readFile(g.CPU, "cpu.cfs_quota_us") + " " + readFile(g.CPU, "cpu.cfs_period_us")
	}
	var quota, period float64
	if n, _ := fmt.Sscan(text, &quota, &period); n < 2 || quota < 0 {
		return 0
	}
	return quota / period
}
