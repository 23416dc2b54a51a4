package supervisor

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// supervisorProcess starts a supervisor in a process of its own, which keeps
// the processes one and two, and returns once it does.
func supervisorProcess(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=none")
	cmd.Env = append(os.Environ(), "ROLE=supervise", "DIR="+dir)
	out := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	testwait.Until(t, "supervising", func() bool {
		b, _ := os.ReadFile(out)
		return bytes.Contains(b, []byte("supervises <nil>"))
	})
	return cmd
}

func records(t *testing.T, dir string) (one, two record) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	var st state
	if err := json.Unmarshal(b, &st); err != nil || len(st.Processes) != 2 {
		t.Fatal(err, string(b))
	}
	return st.Processes[0], st.Processes[1]
}

func TestAdoption(t *testing.T) {
	dir := t.TempDir()
	first := supervisorProcess(t, dir)
	one, two := records(t, dir)
	if _, err := New(Config{Directory: dir}); err == nil {
		t.Fatal("two supervisors on one directory")
	}
	first.Process.Kill()
	first.Wait()
	if !runs(one.PID) || !runs(two.PID) {
		t.Fatal("the processes ended with their supervisor")
	}
	syscall.Kill(two.PID, syscall.SIGKILL) // while nobody looks
	testwait.Until(t, "gone", func() bool { return !runs(two.PID) })

	s := begin(t, Config{Directory: dir, BackOffMin: time.Hour, BackOffMax: time.Hour})
	if x := get(t, s, "one"); x.PID != one.PID || !x.Adopted || x.State != Up || x.Started.IsZero() {
		t.Errorf("one: %+v", x)
	}
	if x := get(t, s, "two"); x.PID != 0 || x.State != Stopped || x.LastExit.Text != "ended while no supervisor ran" {
		t.Errorf("two: %+v", x)
	}
	set(t, s, sleeper("one"), sleeper("two"))
	if x := get(t, s, "one"); x.PID != one.PID {
		t.Errorf("one was started again: %+v", x)
	}
	if x := get(t, s, "two"); x.PID == 0 || x.Restarts != 1 {
		t.Errorf("two: %+v", x)
	}

	// The end of one that is not our child is noticed, and its first restart waits for nothing either.
	syscall.Kill(one.PID, syscall.SIGKILL)
	x := until(t, s, "one", "restarted", func(x Status) bool { return isUp(x) && x.PID != one.PID })
	if x.Adopted || x.Restarts != 1 {
		t.Errorf("%+v", x)
	}
	if x.LastExit.Text != "killed by SIGKILL" {
		t.Errorf("last exit of one that was adopted: %+v", x.LastExit)
	}
}

func TestAdoptedIsChangedAndEnded(t *testing.T) {
	dir := t.TempDir()
	first := supervisorProcess(t, dir)
	one, two := records(t, dir)
	first.Process.Signal(syscall.SIGTERM) // leaves
	first.Wait()
	s := begin(t, Config{Directory: dir})
	set(t, s, actor("one", "sleep", "OTHER=1"))
	if runs(one.PID) || runs(two.PID) {
		t.Error("they run on")
	}
	if x := get(t, s, "one"); !isUp(x) || x.Adopted || x.Restarts != 0 {
		t.Errorf("%+v", x)
	}
}

// TestAnotherHasThePid: a process that has the pid of one of ours, but is not
// it, is left alone.
func TestAnotherHasThePid(t *testing.T) {
	stranger := exec.Command("/bin/sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	defer func() { stranger.Process.Kill(); <-ended }()
	st, err := readStat(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]state{
		"another start time": {Boot: boot(), Processes: []record{{Name: "a", Nonce: "n", PID: stranger.Process.Pid, Started: st.started - 1}}},
		"another boot":       {Boot: "other", Processes: []record{{Name: "a", Nonce: "n", PID: stranger.Process.Pid, Started: st.started}}},
	} {
		dir := t.TempDir()
		b, _ := json.Marshal(r)
		if err := os.WriteFile(filepath.Join(dir, stateFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := begin(t, Config{Directory: dir})
		if x := get(t, s, "a"); x.PID != 0 || x.State != Stopped {
			t.Errorf("%s: adopted %+v", what, x)
		}
		set(t, s, sleeper("b"))
		s.Close()
	}
	select {
	case err := <-ended:
		t.Errorf("a stranger was ended: %v", err)
		ended <- nil
	default:
	}
}

// TestLostState: what a supervisor has started is found even if the state file
// does not say so.
func TestLostState(t *testing.T) {
	for what, spoil := range map[string]func(state) []byte{
		"killed between starting and writing it down": func(st state) []byte {
			for i := range st.Processes {
				st.Processes[i].PID, st.Processes[i].Started = 0, 0
			}
			b, _ := json.Marshal(st)
			return b
		},
		"unreadable": func(state) []byte { return []byte(`{"boot": "`) },
	} {
		t.Run(strings.Fields(what)[0], func(t *testing.T) {
			dir := t.TempDir()
			first := supervisorProcess(t, dir)
			one, two := records(t, dir)
			first.Process.Kill()
			first.Wait()
			if err := os.WriteFile(filepath.Join(dir, stateFile), spoil(state{boot(), []record{one, two}}), 0o600); err != nil {
				t.Fatal(err)
			}
			s := begin(t, Config{Directory: dir})
			if get(t, s, "one").PID != one.PID || get(t, s, "two").PID != two.PID {
				t.Errorf("not found: %+v", s.Status())
			}
		})
	}
}

// TestKilledAtAnyTime: however often the supervisor is killed while it starts
// processes, there is one of each in the end.
func TestKilledAtAnyTime(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, m := range listMarked(dir) {
			syscall.Kill(m.pid, syscall.SIGKILL)
		}
	})
	random := rand.New(rand.NewPCG(rand.Uint64(), 2))
	for range 15 {
		cmd := exec.Command(path, "-test.run=none")
		cmd.Env = append(os.Environ(), "ROLE=supervise", "DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(25)) * time.Millisecond)
		if random.IntN(2) == 0 { // and one of those that it keeps
			for _, m := range listMarked(dir) {
				syscall.Kill(m.pid, syscall.SIGKILL)
				break
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	s := begin(t, Config{Directory: dir})
	set(t, s, sleeper("one"), sleeper("two"))
	found := map[string]int{}
	for _, m := range listMarked(dir) {
		found[m.name]++
	}
	if len(found) != 2 || found["one"] != 1 || found["two"] != 1 {
		t.Errorf("there run %v", found)
	}
}

func TestLeave(t *testing.T) {
	dir := t.TempDir()
	s := begin(t, Config{Directory: dir})
	set(t, s, sleeper("a"))
	pid := get(t, s, "a").PID
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || !runs(pid) {
		t.Fatal("Close after Leave is not without effect", err)
	}
	next := begin(t, Config{Directory: dir})
	if x := get(t, next, "a"); x.PID != pid || !x.Adopted {
		t.Errorf("%+v", x)
	}
	syscall.Kill(pid, syscall.SIGTERM)
	x := until(t, next, "a", "stopped", func(x Status) bool { return x.State == Stopped })
	if x.LastExit.PID != pid {
		t.Errorf("last exit %+v", x.LastExit)
	}
	set(t, next, sleeper("a"))
	if x := get(t, next, "a"); x.Restarts != 1 || !isUp(x) {
		t.Errorf("%+v", x)
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c)) S 1 42 43 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1\n"
	if s, err := parseStat([]byte(line)); err != nil || s.state != 'S' || s.session != 43 || s.started != 777 {
		t.Errorf("%+v %v", s, err)
	}
	for _, wrong := range []string{"", "42 (a) S 1", strings.Replace(line, "777", "x", 1)} {
		if _, err := parseStat([]byte(wrong)); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}
