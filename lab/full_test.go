package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/traffic"
)

// fullEnv has the test's program be one for which /run/weft has so much room, in KiB.
const fullEnv = "LAB_TEST_ROOM"

// Where there is no room for a lab's state, that is said, and nothing is half made.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	if err := os.MkdirAll(filepath.Dir(machine.RunDir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, kib := range []string{"4", "8", "32", "1024"} {
		// What other processes mount is seen there, and not the other way round.
		cmd := exec.Command("unshare", "--mount", "--propagation", "slave", "sh", "-c",
			`mount -t tmpfs -o size="$`+fullEnv+`"k none `+filepath.Dir(machine.RunDir)+` && exec "$0" -test.run='^TestNoRoomInside$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), fullEnv+"="+kib)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestNoRoomInside") {
			t.Errorf("%s KiB: %v: %s", kib, err, out)
		}
	}
}

// In a process of its own, which TestNoRoom starts.
func TestNoRoomInside(t *testing.T) {
	room := os.Getenv(fullEnv)
	if room == "" {
		return
	}
	topo := parsed(t, appliedLab, nil)
	if room != "1024" {
		name := fmt.Sprintf("t%d-noroom", os.Getpid())
		_, err := Up(t.Context(), topo, Options{Name: name, KeeperCommand: keeperOfTest(t)})
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "no space left on device") {
			t.Errorf("up: %v", err)
		}
		wantNothing(t, name)
		return
	}
	l := upForTest(t, topo, Options{})
	filler := fill(t)
	wantStateKept(t, l.Name())
	for what, do := range map[string]func() error{
		"apply": func() error {
			_, err := Apply(t.Context(), "f.yaml", []byte(changedLab), ApplyOptions{Name: l.Name()})
			return err
		},
		"link": func() error { return l.LinkDown(t.Context(), "s1", "s2") },
	} {
		if err := do(); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "make room") {
			t.Errorf("%s: %v", what, err)
		}
		wantPing(t, l, "h1", "h3", traffic.PingOptions{Count: 1}, 1, 1)
		if d, err := Apply(t.Context(), "f.yaml", []byte(appliedLab), ApplyOptions{Name: l.Name(), DryRun: true}); err != nil || !d.None() {
			t.Errorf("after %s the lab differs: %+v, %v", what, d, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), "f.yaml", []byte(changedLab), ApplyOptions{Name: l.Name()}); err != nil {
		t.Fatal(err)
	}
	l, err := Open(l.Name())
	if err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h1", "h2", traffic.PingOptions{Count: 1}, 1, 1)
	fill(t)
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, l.Name())
}

// A state that there is no room for leaves the one that was.
func wantStateKept(t *testing.T, name string) {
	t.Helper()
	s, err := layout.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	s.Directory = strings.Repeat("x", 1<<20)
	if err := s.Save(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("save: %v", err)
	}
	if s, err := layout.Load(name); err != nil || len(s.Directory) == 1<<20 {
		t.Errorf("the state that was is gone: %v", err)
	}
}

// fill leaves no room beside the labs, by a file.
func fill(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(machine.RunDir), "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyN(f, zeros{}, 16<<20); !errors.Is(err, unix.ENOSPC) {
		t.Fatal("it is not full: ", err)
	}
	return path
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
