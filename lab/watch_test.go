package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/internal/testprogram"
)

// withPrograms is one switch with two hosts, of which h1 runs these.
func withPrograms(t testing.TB, programs ...topology.Program) *topology.Topology {
	topo := standalone(linear(t, 1, 2))
	topo.Hosts[0].Run = programs
	return topo
}

// wantProgram waits until a program of h1 is as it is to be.
func wantProgram(t testing.TB, l *Lab, name, want string, is func(keeper.ProgramStatus) bool) keeper.ProgramStatus {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) {
		all := l.Programs(t.Context())
		i := slices.IndexFunc(all, func(p keeper.ProgramStatus) bool { return p.Name == name })
		if i >= 0 && is(all[i]) {
			return all[i]
		}
		if time.Now().After(end) {
			t.Fatalf("no program %s that %s: %+v", name, want, all)
		}
	}
}

// wantLog waits until a program of h1 has written something.
func wantLog(t testing.TB, l *Lab, name, want string) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) {
		r := l.Log("h1", name)
		b, err := io.ReadAll(r)
		r.Close()
		if err == nil && strings.Contains(string(b), want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("program %s wrote %q, %v; want %q", name, b, err, want)
		}
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	weft := filepath.Join(t.TempDir(), "a 'weft'")
	testprogram.Install(t, weft, []byte("#!/bin/sh\necho weft $*; sleep 1000\n"))
	hostile := "$(touch " + filepath.Join(t.TempDir(), "x") + ") `id` ; ' \" \\ \n é"
	topo := withPrograms(t,
		topology.Program{Name: "weft", Command: "weft nf nrf"},
		topology.Program{Name: "sh", Command: "sh -c 'weft in a shell'"},
		topology.Program{Name: "hostile", Command: topology.Quote("printf", "%s", hostile), Restart: topology.RestartNever},
		topology.Program{Name: "env", Command: `sh -c 'echo $WEFT_LAB_HOST $WEFT_LAB_IPV4 $A ${WEFT_LAB_KEEPER-none} $(getent ahostsv4 h2)'`,
			Env: map[string]string{"A": "x y"}, Restart: topology.RestartNever},
		topology.Program{Name: "killed", Command: "sleep 1000", Restart: topology.RestartFailure},
		topology.Program{Name: "false", Command: "sh -c 'echo no such luck; exit 3'", Restart: topology.RestartNever},
		topology.Program{Name: "again", Command: "false"},
		topology.Program{Name: "children", Command: "sh -c 'sleep 1001 & exit 1'", Restart: topology.RestartNever},
	)
	l := upForTest(t, topo, Options{Weft: weft})
	running := func(p keeper.ProgramStatus) bool {
		return p.State == keeper.ProgramRunning && p.PID != 0 && p.Starts == 1 && !p.Died()
	}
	for _, name := range []string{"weft", "sh", "killed"} {
		wantProgram(t, l, name, "runs", running)
	}
	wantLog(t, l, "weft", "weft nf nrf\n")
	wantLog(t, l, "sh", "weft in a shell\n")
	wantLog(t, l, "hostile", hostile)
	wantLog(t, l, "env", "h1 10.0.0.1 x y none 10.0.0.2")
	wantProgram(t, l, "hostile", "has ended well", func(p keeper.ProgramStatus) bool {
		return p.State == keeper.ProgramFinished && p.End == "exit status 0" && !p.Died()
	})
	wantLog(t, l, "false", "no such luck\n[weft lab] exit status 3 after ")
	wantProgram(t, l, "false", "has failed", func(p keeper.ProgramStatus) bool {
		return p.State == keeper.ProgramFailed && p.End == "exit status 3" && p.Starts == 1 && p.PID == 0 && p.Died()
	})
	wantProgram(t, l, "again", "was started again", func(p keeper.ProgramStatus) bool { return p.Starts > 2 && p.Died() })
	wantProgram(t, l, "children", "has failed", func(p keeper.ProgramStatus) bool { return p.State == keeper.ProgramFailed })
	if pids := named(t, l, "sleep\x001001\x00"); len(pids) > 0 {
		t.Errorf("children of a program that has ended go on: %v", pids)
	}

	p := wantProgram(t, l, "killed", "runs", running)
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantProgram(t, l, "killed", "was started again", func(q keeper.ProgramStatus) bool {
		return q.State == keeper.ProgramRunning && q.PID != p.PID && q.Starts == 2 && q.End == "signal: killed"
	})
	labs, err := List(t.Context())
	i := slices.IndexFunc(labs, func(s Status) bool { return s.Name == l.Name() })
	if err != nil || i < 0 || labs[i].Programs != 8 || labs[i].Running < 3 || labs[i].Running > 4 {
		t.Errorf("List: %+v, %v", labs, err)
	}
}

// named lists the processes of a lab by the beginning of their command line.
func named(t testing.TB, l *Lab, begin string) (pids []int) {
	t.Helper()
	all, err := machine.MembersOf(l.Name()).Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(b), begin) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Down ends programs that ignore SIGTERM, also when nobody watches them any more.
func TestDownEndsPrograms(t *testing.T) {
	t.Parallel()
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("killed=", kill), func(t *testing.T) {
			l := upForTest(t, withPrograms(t, topology.Program{Name: "deaf", Command: `sh -c 'trap "" TERM; while :; do sleep 1; done'`}), Options{})
			wantProgram(t, l, "deaf", "runs", func(p keeper.ProgramStatus) bool { return p.State == keeper.ProgramRunning })
			if kill {
				for _, pid := range pidsOfKeeper(t, l) {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
				wantProgram(t, l, "deaf", "nobody watches", func(p keeper.ProgramStatus) bool { return p.State == keeper.ProgramUnknown })
			}
			if err := l.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantNothing(t, l.Name())
			if pids := named(t, l, "sh\x00-c\x00trap"); len(pids) > 0 {
				t.Errorf("the program goes on: %v", pids)
			}
		})
	}
}

func pidsOfKeeper(t testing.TB, l *Lab) (pids []int) {
	t.Helper()
	all, err := machine.MembersOf(l.Name()).Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		if _, kept := machine.MarksOf(pid); kept == machine.Dir(l.Name()) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Programs end with the keeper that watches them, if that is told to end.
func TestProgramsEndWithTheirKeeper(t *testing.T) {
	t.Parallel()
	l := upForTest(t, withPrograms(t, topology.Program{Name: "deaf", Command: `sh -c 'trap "" TERM; while :; do sleep 1; done'`}), Options{})
	p := wantProgram(t, l, "deaf", "runs", func(p keeper.ProgramStatus) bool { return p.State == keeper.ProgramRunning })
	for _, pid := range pidsOfKeeper(t, l) {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(testwait.Limit); syscall.Kill(p.PID, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the program goes on")
		}
	}
}

// A lab with a program that this machine does not have is not begun.
func TestNoSuchProgram(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"nosuch --x":                  "net.yaml:3: host h1, program p: there is no program nosuch in PATH",
		"./nosuch":                    "net.yaml:3: host h1, program p: there is no program ./nosuch in ",
		"/etc/passwd":                 "net.yaml:3: host h1, program p: there is no program /etc/passwd in ",
		"/":                           "net.yaml:3: host h1, program p: there is no program / in ",
		topology.Quote("no such; ls"): "net.yaml:3: host h1, program p: there is no program no such; ls in PATH",
		topology.Quote("", "x"):       "net.yaml:3: host h1, program p: there is no program  in PATH",
		"A=b true":                    "net.yaml:3: host h1, program p: there is no program A=b in PATH",
	} {
		topo, err := topology.Parse("net.yaml", fmt.Appendf(nil, "switches: [{name: s1}]\nhosts:\n- {name: h1, switch: s1, run: [{name: p, command: %q}]}\n", command))
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		name := fmt.Sprintf("t%d-nosuch", os.Getpid())
		if _, err := Up(t.Context(), topo, Options{Name: name, KeeperCommand: keeperOfTest(t)}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", command, err, want)
		}
		wantNothing(t, name)
	}
}

// Programs that are beside the lab file are found from anywhere, and run there.
func TestProgramBesideTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testprogram.Install(t, filepath.Join(dir, "say.sh"), []byte("#!/bin/sh\npwd\n"))
	net := "controller: none\nswitches: [{name: s1}]\nhosts: [{name: h1, switch: s1, run: [{command: ./say.sh, restart: never}]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "net.yaml"), []byte(net), 0o644); err != nil {
		t.Fatal(err)
	}
	topo, err := topology.Load(filepath.Join(dir, "net.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l := upForTest(t, topo, Options{})
	wantLog(t, l, "say-sh", dir+"\n")
}

// Up that is interrupted while programs start ends them.
func TestUpEndsProgramsWhenInterrupted(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("t%d-cancelled", os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Up(ctx, withPrograms(t, topology.Program{Command: "sleep 1002"}), Options{Name: name, KeeperCommand: keeperOfTest(t), Progress: func(doing string) {
		if doing == "starting programs" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantNothing(t, name)
}
