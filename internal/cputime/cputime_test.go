package cputime_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/internal/testwait"
)

// TestOf: the time of a process is its own; with its descendants it includes that of
// its child.
func TestOf(t *testing.T) {
	cmd := exec.Command("sh", "-c", "(while :; do :; done) & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	all := cputime.Descendants(cmd.Process.Pid)
	if !slices.Equal(all, []int{cmd.Process.Pid, child}) {
		t.Errorf("descendants %v, want %d and its child %d", all, cmd.Process.Pid, child)
	}
	testwait.Until(t, "the child to compute", func() bool { return cputime.Sum(child) > 20*time.Millisecond })
	if with, alone := cputime.Sum(all...), cputime.Sum(cmd.Process.Pid); with-alone < 20*time.Millisecond {
		t.Errorf("with its child %v, alone %v", with, alone)
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
	_ = cmd.Wait()
	if used, err := cputime.Of(cmd.Process.Pid); err == nil {
		t.Errorf("a process that has ended used %v, want an error", used)
	}
}

// TestUsed: a process is seen by itself as by others.
func TestUsed(t *testing.T) {
	before := cputime.Used()
	of, err := cputime.Of(os.Getpid())
	if err != nil || of < before || cputime.Used() < of {
		t.Errorf("%v of %v: %v", of, before, err)
	}
}
