package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/testwait"
)

func TestSet(t *testing.T) {
	s := begin(t, Config{})
	set(t, s, sleeper("a"), sleeper("b"))
	a, b := get(t, s, "a"), get(t, s, "b")
	if a.State != Up || b.State != Up || !runs(a.PID) || !runs(b.PID) || a.Restarts != 0 || len(a.Unapplied) > 0 {
		t.Fatalf("%+v %+v", a, b)
	}
	if st, _ := readStat(a.PID); st.session != a.PID {
		t.Errorf("session %d of process %d, want its own", st.session, a.PID)
	}

	text := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(s.config.Directory, name+".log"))
		return string(b)
	}
	testwait.Until(t, "ready", func() bool { return text("a") != "" && text("b") != "" })

	// a stays, b has another argument, c is new.
	b2 := sleeper("b")
	b2.Args = append(b2.Args, "-test.v")
	set(t, s, sleeper("a"), b2, sleeper("c"))
	if x := get(t, s, "a"); x.PID != a.PID {
		t.Errorf("a: process %d became %d", a.PID, x.PID)
	}
	if x := get(t, s, "b"); x.PID == b.PID || runs(b.PID) || x.Restarts != 0 || x.LastExit == nil || x.LastExit.Text != "exit status 0: stopped" {
		t.Errorf("b: %+v %+v", x, x.LastExit)
	}
	c := get(t, s, "c")

	// The order of the environment is no difference, its content is.
	a2 := sleeper("a")
	a2.Env[0], a2.Env[1] = a2.Env[1], a2.Env[0]
	t.Setenv("OF_THE_SUPERVISOR", "changed") // nor is this
	set(t, s, a2)
	if x := get(t, s, "a"); x.PID != a.PID {
		t.Error("the order of the environment restarted a")
	}
	if runs(c.PID) || len(s.Status()) != 1 {
		t.Errorf("c was to end: %+v", s.Status())
	}
	set(t, s, actor("a", "sleep", "MORE=1"))
	if x := get(t, s, "a"); x.PID == a.PID {
		t.Error("another environment did not restart a")
	}
	testwait.Until(t, "in the log", func() bool {
		return strings.Count(text("a"), "hello from a\n") == 2 && strings.Count(text("a"), "bye\n") == 1
	})
	set(t, s)
	if len(s.Status()) != 0 {
		t.Errorf("left: %+v", s.Status())
	}
}

func TestSetRefuses(t *testing.T) {
	s := begin(t, Config{})
	set(t, s, sleeper("a"))
	pid := get(t, s, "a").PID
	err := s.Set(context.Background(), []Process{
		{}, {Name: "x/y", Path: "/bin/true"}, {Name: "n", Path: "bin", Nice: 20, CPUs: "3-1", Memory: 5}, sleeper("n"),
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"process 1 of the list has no name", "process x/y: the name may", `process n: path "bin" of the executable is not absolute`,
		"process n: nice 20; allowed: -20 to 19", `process n: CPUs "3-1"`, "process n: memory limit of 5 bytes", "process n: listed twice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	if get(t, s, "a").PID != pid {
		t.Error("a list with mistakes changed what runs")
	}
	if _, err := New(Config{Directory: s.config.Directory}); err == nil || !strings.Contains(err.Error(), "in use by another supervisor, process ") {
		t.Errorf("second supervisor: %v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no directory: no error")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(context.Background(), nil); err == nil {
		t.Error("Set after Close: no error")
	}
}

func TestKilled(t *testing.T) {
	s := begin(t, Config{BackOffMin: time.Hour, BackOffMax: time.Hour}) // not for the first restart
	set(t, s, sleeper("a"))
	old := get(t, s, "a")
	syscall.Kill(old.PID, syscall.SIGKILL)
	x := until(t, s, "a", "restarted", func(x Status) bool { return isUp(x) && x.PID != old.PID })
	if e := x.LastExit; x.Restarts != 1 || e.Signal != syscall.SIGKILL || e.Text != "killed by SIGKILL" || e.OutOfMemory || e.PID != old.PID || e.Code != -1 {
		t.Errorf("%+v, last exit %+v", x, e)
	}
}

func TestCrashLoop(t *testing.T) {
	s := begin(t, Config{})
	began := time.Now()
	set(t, s, actor("a", "crash"))
	x := until(t, s, "a", "backing off for the third time", func(x Status) bool { return x.Restarts == 3 && x.State == BackingOff })
	// Restarts at 0, 100 and 200 ms.
	if d := time.Since(began); d < 300*time.Millisecond {
		t.Errorf("3 restarts in %v", d)
	}
	if x.LastExit.Code != 3 || x.LastExit.Text != "exit status 3" || x.PID != 0 {
		t.Errorf("%+v %+v", x, x.LastExit)
	}
	set(t, s, actor("a", "crash")) // no other: goes on waiting
	if y := get(t, s, "a"); y.Restarts != 3 || y.State != BackingOff {
		t.Errorf("%+v", y)
	}
	set(t, s, sleeper("a")) // another: at once
	if y := get(t, s, "a"); y.State != Up {
		t.Errorf("%+v", y)
	}

	p := sleeper("none")
	p.Path = "/no/such/file"
	if err := s.Set(context.Background(), []Process{p}); err == nil || !strings.Contains(err.Error(), "start none: ") {
		t.Errorf("no executable: %v", err)
	}
	until(t, s, "none", "backing off", func(x Status) bool {
		return x.State == BackingOff && strings.Contains(x.LastExit.Text, "could not be started") && x.Restarts > 0
	})
}

func TestMerged(t *testing.T) {
	if got := strings.Join(merged([]string{"A=1", "B=2", "C"}, []string{"B=3", "D=", "B=4"}), " "); got != "A=1 B=4 C D=" {
		t.Errorf("got %s", got)
	}
}

func TestBackOff(t *testing.T) {
	b := restarts{pauses: backoff.Exponential{First: 100, Last: 1000}, stable: 50}
	for i, want := range []time.Duration{0, 100, 200, 400, 800, 1000, 1000} {
		if got := b.after(49); got != want {
			t.Errorf("%d: %d, want %d", i, got, want)
		}
	}
	if b.after(50) != 0 || b.after(0) != 100 {
		t.Error("a stable run does not count anew")
	}
}

func TestStop(t *testing.T) {
	s := begin(t, Config{StopTimeout: 300 * time.Millisecond})
	set(t, s, actor("deaf", "deaf"), sleeper("frozen"))
	deaf, frozen := get(t, s, "deaf").PID, get(t, s, "frozen").PID
	text := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(s.config.Directory, name+".log"))
		return string(b)
	}
	testwait.Until(t, "deaf", func() bool { return text("deaf") != "" && text("frozen") != "" })
	syscall.Kill(frozen, syscall.SIGSTOP)
	began := time.Now()
	set(t, s)
	if d := time.Since(began); d < 300*time.Millisecond {
		t.Errorf("ended in %v", d)
	}
	if runs(deaf) || runs(frozen) {
		t.Error("they still run")
	}
	if !strings.Contains(text("frozen"), "bye") {
		t.Error("a stopped process was not asked to end")
	}
}

// TestHurry: in a hurry, what does not end by itself is killed, and Close leaves nothing
// that runs.
func TestHurry(t *testing.T) {
	hurry := make(chan struct{})
	s := begin(t, Config{StopTimeout: time.Hour, Hurry: hurry})
	set(t, s, actor("deaf", "deaf"))
	deaf := get(t, s, "deaf").PID
	testwait.Until(t, "deaf", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.config.Directory, "deaf.log"))
		return len(b) > 0
	})
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	testwait.Until(t, "it is asked to end", func() bool { return get(t, s, "deaf").State == Stopping })
	if !runs(deaf) {
		t.Error("it ended by itself")
	}
	close(hurry)
	if err := <-closed; err != nil || runs(deaf) {
		t.Errorf("%v; it runs: %v", err, runs(deaf))
	}
}

// TestImpatient: a Set that is given up completes all the same, and what it
// ended can be wanted again meanwhile.
func TestImpatient(t *testing.T) {
	s := begin(t, Config{StopTimeout: testwait.Limit})
	set(t, s, actor("deaf", "deaf"))
	old := get(t, s, "deaf").PID
	testwait.Until(t, "deaf", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.config.Directory, "deaf.log"))
		return len(b) > 0
	})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Set(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "deaf is not yet as wanted") {
		t.Errorf("given up: %v", err)
	}
	if x := get(t, s, "deaf"); x.State != Stopping {
		t.Errorf("%+v", x)
	}
	syscall.Kill(old, syscall.SIGKILL)
	set(t, s, sleeper("deaf"))
	if x := get(t, s, "deaf"); x.PID == old || !isUp(x) || runs(old) {
		t.Errorf("%+v", x)
	}
}

func TestUnresponsive(t *testing.T) {
	probe := &sockets{dir: t.TempDir()}
	var answers atomic.Bool // for the process, which may be slow
	s := begin(t, Config{Probe: func(ctx context.Context, name string) error {
		if answers.Load() {
			return nil
		}
		return probe.probe(ctx, name)
	}, ProbeEvery: 50 * time.Millisecond, UnresponsiveAfter: 400 * time.Millisecond, StopTimeout: time.Second})
	probe.of(t, s)
	watch, cancel := context.WithCancel(context.Background())
	defer cancel()
	states := make(chan []State)
	go func() {
		var list []State
		for x := range s.Watch(watch) {
			if len(x) > 0 && (len(list) == 0 || list[len(list)-1] != x[0].State) {
				list = append(list, x[0].State)
			}
		}
		states <- list
	}()
	set(t, s, actor("a", "serve", "SOCKETS="+probe.dir))
	old := until(t, s, "a", "up", isUp)
	answers.Store(true)
	time.Sleep(500 * time.Millisecond)
	if x := get(t, s, "a"); x.PID != old.PID || x.Restarts != 0 {
		t.Fatalf("restarted without need: %+v %+v", x, x.LastExit)
	}
	began := time.Now()
	syscall.Kill(old.PID, syscall.SIGSTOP)
	answers.Store(false)
	x := until(t, s, "a", "restarted", func(x Status) bool { return isUp(x) && x.PID != old.PID })
	if d := time.Since(began); d < 400*time.Millisecond {
		t.Errorf("restarted after %v", d)
	}
	if !strings.Contains(x.LastExit.Text, "unresponsive, no sign of life for ") || x.LastExit.Signal != syscall.SIGKILL {
		t.Errorf("last exit %+v", x.LastExit)
	}
	cancel()
	seen := strings.Join(func() (list []string) {
		for _, s := range <-states {
			list = append(list, string(s))
		}
		return
	}(), " ")
	if !strings.Contains(seen, "starting up unresponsive") || !strings.HasSuffix(seen, "starting up") {
		t.Errorf("states seen: %s", seen)
	}
}

// TestBusyIsNotDead: one that has no time to answer is given longer; it is found
// as soon as it stops to work, and when it has worked for too long.
func TestBusyIsNotDead(t *testing.T) {
	var silent atomic.Bool
	c := Config{
		Probe: func(context.Context, string) error {
			if silent.Load() {
				return os.ErrDeadlineExceeded
			}
			return nil
		},
		ProbeEvery: 100 * time.Millisecond, UnresponsiveAfter: 300 * time.Millisecond, BusyTimeout: time.Minute,
	}
	s := begin(t, c)
	set(t, s, actor("a", "toil"), sleeper("idle"))
	a, idle := until(t, s, "a", "up", isUp), until(t, s, "idle", "up", isUp)
	silent.Store(true)
	until(t, s, "idle", "restarted", func(x Status) bool { return x.PID != idle.PID }) // it has nothing to do
	time.Sleep(700 * time.Millisecond)
	if x := get(t, s, "a"); x.PID != a.PID || x.Restarts != 0 {
		t.Fatalf("it was busy, and killed: %+v, last exit %+v", x, x.LastExit)
	}
	syscall.Kill(a.PID, syscall.SIGSTOP)
	x := until(t, s, "a", "restarted", func(x Status) bool { return x.PID != a.PID && x.LastExit != nil })
	if !strings.Contains(x.LastExit.Text, ", busy until ") {
		t.Errorf("last exit %+v", x.LastExit)
	}

	silent.Store(false)
	c.BusyTimeout = 600 * time.Millisecond
	s = begin(t, c)
	set(t, s, actor("a", "toil"))
	until(t, s, "a", "up", isUp)
	began := time.Now()
	silent.Store(true)
	until(t, s, "a", "restarted", func(x Status) bool { return x.Restarts > 0 })
	if d := time.Since(began); d < 600*time.Millisecond {
		t.Errorf("killed after %v, before BusyTimeout", d)
	}
}

func TestNeverAnswers(t *testing.T) {
	s := begin(t, Config{
		Probe:      func(context.Context, string) error { return os.ErrDeadlineExceeded },
		ProbeEvery: 20 * time.Millisecond, UnresponsiveAfter: 50 * time.Millisecond, StartTimeout: 400 * time.Millisecond,
	})
	began := time.Now()
	set(t, s, sleeper("a"))
	until(t, s, "a", "restarted", func(x Status) bool { return x.Restarts > 0 })
	if d := time.Since(began); d < 400*time.Millisecond {
		t.Errorf("killed after %v, before StartTimeout", d)
	}
}

func TestRunEndsAll(t *testing.T) {
	s := begin(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	set(t, s, sleeper("a"))
	pid := get(t, s, "a").PID
	w := s.Watch(context.Background())
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if runs(pid) {
		t.Error("it runs on")
	}
	for range w { // is closed
	}
}
