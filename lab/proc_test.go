package lab

import (
	"os"
	"os/exec"
	"testing"
)

// TestBelongs: to a lab belongs what bears its mark, and nothing else that runs here.
func TestBelongs(t *testing.T) {
	const name = "no-such-lab"
	cmd := exec.Command("sleep", "60")
	cmd.Env = marked(os.Environ(), name)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for _, b := range []belongs{{}, newBelongs("another"), newBelongs(""), newBelongs(name)} {
		pids, err := b.processes()
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if b.marks[labEnv+"="+dirOf(name)] {
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
