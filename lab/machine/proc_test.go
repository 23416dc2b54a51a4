package machine

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBelongs: to a lab belongs what bears its mark, and nothing else that runs here.
func TestBelongs(t *testing.T) {
	const name = "no-such-lab"
	cmd := exec.Command("sleep", "60")
	cmd.Env = Mark(os.Environ(), name)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for _, b := range []Members{{}, MembersOf("another"), MembersOf(""), MembersOf(name)} {
		pids, err := b.Processes()
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if b.marks[labEnv+"="+Dir(name)] {
			want = 1
		}
		if len(pids) != want || want > 0 && pids[0] != cmd.Process.Pid {
			t.Errorf("%+v: %d processes belong, want %d", b, len(pids), want)
		}
	}
	for _, mark := range [][2]string{{"", ""}, {"PATH", ""}, {"", "x"}} {
		if err := EndMarked(t.Context(), mark[0], mark[1]); err == nil {
			t.Errorf("%q: no error", mark)
		}
	}
}

// TestPollUntil: a wait lasts until its time although signals come.
func TestPollUntil(t *testing.T) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, over := unix.Gettid(), make(chan struct{})
	var signals sync.WaitGroup
	signals.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	})
	until := time.Now().Add(100 * time.Millisecond)
	if PollUntil(int32(ends[0]), until) || time.Until(until) > time.Millisecond {
		t.Errorf("a signal ended it %v early", time.Until(until))
	}
	close(over)
	signals.Wait()
	if _, err := unix.Write(ends[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	if !PollUntil(int32(ends[0]), time.Now()) {
		t.Error("what can be read is not seen")
	}
}
