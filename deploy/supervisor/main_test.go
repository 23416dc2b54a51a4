package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// TestMain lets the test binary play the processes that are supervised.
func TestMain(m *testing.M) {
	if role := os.Getenv("ROLE"); role != "" {
		play(role)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	switch role {
	case "serve": // answers on a socket until told to end
		dir, _ := os.Getwd()
		if d := os.Getenv("SOCKETS"); d != "" {
			dir = d
		}
		l, err := net.Listen("unix", filepath.Join(dir, strconv.Itoa(os.Getpid())))
		if err != nil {
			fmt.Println(err)
			os.Exit(9)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("alive"))
				c.Close()
			}
		}()
		<-term
		l.Close()
	case "sleep":
		fmt.Println("hello from", os.Getenv("WHO"))
		<-term
		fmt.Println("bye")
	case "deaf": // does not end when asked
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf")
		time.Sleep(time.Minute)
	case "toil": // works without end, and answers nobody
		signal.Reset()
		for n := uint64(1); ; n *= 3 {
			if n == 0 { // never
				fmt.Println(n)
			}
		}
	case "crash":
		fmt.Println("crash")
		os.Exit(3)
	case "spin": // uses a processor
		for len(term) == 0 {
		}
	case "eat": // more and more memory
		for keep := [][]byte{}; ; {
			b := make([]byte, 4<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			keep = append(keep, b)
			if len(keep) > 200 {
				os.Exit(8)
			}
		}
	case "print":
		line := strings.Repeat("x", 999) + "\n"
		for {
			select {
			case <-term:
				return
			default:
				os.Stdout.WriteString(line)
				time.Sleep(100 * time.Microsecond)
			}
		}
	case "supervise": // two processes, until killed
		s, err := New(Config{Directory: os.Getenv("DIR"), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if err == nil {
			two := sleeper("two")
			two.Memory = 256 << 20
			err = s.Set(context.Background(), []Process{sleeper("one"), two})
		}
		fmt.Println("supervises", err)
		<-term
		s.Leave()
	case "modest": // supervises without privileges
		s, err := New(Config{Directory: os.Getenv("DIR"), RootPart: os.Getenv("ROOTPART")})
		if err == nil {
			p := sleeper("a")
			p.Nice, p.RealTime, p.Memory, p.CPUs = -5, true, 64<<20, "0-1000"
			err = s.Set(context.Background(), []Process{p})
			for _, x := range s.Status() {
				fmt.Println(x.State, x.PID > 0)
				for _, u := range x.Unapplied {
					fmt.Println(u.Limit, u.Reason)
				}
			}
			if g := s.children["a"].record.Group; g != nil {
				pid, in := s.children["a"].record.PID, readFile(g.Path, "cgroup.procs")
				fmt.Println("in its group", in == fmt.Sprint(pid), "limit", readFile(g.Path, "memory.limit_in_bytes")+readFile(g.Path, "memory.max"))
				stat := strings.Fields(readFile("/proc", fmt.Sprint(pid), "stat"))
				fmt.Println("policy", stat[40])
				p.RealTime, p.CPUs, p.Memory = false, "", 128<<20
				err = s.Set(context.Background(), []Process{p})
				stat = strings.Fields(readFile("/proc", fmt.Sprint(pid), "stat"))
				fmt.Println("then policy", stat[40], "nice", stat[18], "limit", readFile(g.Path, "memory.limit_in_bytes")+readFile(g.Path, "memory.max"), s.Status()[0].Unapplied)
			}
			s.Close()
		}
		fmt.Println("ended", err)
	}
}

// readFile returns what is in a file, nothing if it is not there.
func readFile(path ...string) string {
	b, _ := os.ReadFile(filepath.Join(path...))
	return strings.TrimSpace(string(b))
}

// actor returns a process that plays a role.
func actor(name, role string, env ...string) Process {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Process{Name: name, Path: path, Args: []string{"-test.run=none"}, Env: append([]string{"ROLE=" + role, "WHO=" + name, "GORACE=atexit_sleep_ms=0"}, env...)}
}

func sleeper(name string) Process { return actor(name, "sleep") }

// begin makes a supervisor that is closed, and leaves nothing, at the end.
func begin(t *testing.T, c Config) *Supervisor {
	t.Helper()
	if c.Directory == "" {
		c.Directory = t.TempDir()
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 2 * time.Second
	}
	c.Log = slog.New(slog.NewTextHandler(&testLog{t: t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, m := range listMarked(c.Directory) {
			t.Errorf("process %d (%s) was left", m.pid, m.name)
		}
		for _, h := range []hierarchy{s.places.memory, s.places.cpu} {
			left, _ := filepath.Glob(filepath.Join(h.parent, s.groupPrefix()+"*"))
			if len(left) > 0 {
				t.Errorf("cgroups were left: %v", left)
			}
		}
	})
	return s
}

type testLog struct {
	t *testing.T
}

func (l *testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", strings.TrimSpace(string(b)))
	return len(b), nil
}

func set(t *testing.T, s *Supervisor, list ...Process) {
	t.Helper()
	if err := s.Set(context.Background(), list); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s *Supervisor, name string) Status {
	t.Helper()
	list := s.Status()
	i := slices.IndexFunc(list, func(x Status) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no process %s in %+v", name, list)
	}
	return list[i]
}

// until waits for a status.
func until(t *testing.T, s *Supervisor, name, what string, ok func(Status) bool) Status {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if x := get(t, s, name); ok(x) {
			return x
		}
	}
	t.Fatalf("not %s: %+v, last exit %+v", what, get(t, s, name), get(t, s, name).LastExit)
	return Status{}
}

func isUp(x Status) bool { return x.State == Up && x.PID != 0 }

// runs reports whether a process runs.
func runs(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.state != 'Z'
}

// sockets probes processes that play "serve".
type sockets struct {
	mu   sync.Mutex
	dir  string
	pids func(name string) int
}

func (p *sockets) probe(ctx context.Context, name string) error {
	p.mu.Lock()
	pids := p.pids
	p.mu.Unlock()
	if pids == nil {
		return errors.New("not yet")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.dir, strconv.Itoa(pids(name))))
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	_, err = c.Read(make([]byte, 8))
	return err
}

func (p *sockets) of(t *testing.T, s *Supervisor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids = func(name string) int {
		for _, x := range s.Status() {
			if x.Name == name {
				return x.PID
			}
		}
		return 0
	}
}
