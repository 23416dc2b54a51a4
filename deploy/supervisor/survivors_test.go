package supervisor

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// TestSurvivors finds a process that a supervisor of a directory has started,
// with its arguments, and none of another directory.
func TestSurvivors(t *testing.T) {
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sleep, "600")
	cmd.Env = append(os.Environ(), markKey+"="+mark{dir, "all", "1"}.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if list, err := Survivors(dir); len(list) > 0 || err != nil {
			t.Errorf("after its end: %v, %v", list, err)
		}
	}()
	var list []Survivor
	for end := time.Now().Add(testwait.Limit); len(list) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if list, err = Survivors(dir); err != nil { // it executes its program first
			t.Fatal(err)
		}
	}
	if len(list) != 1 || list[0].Name != "all" || list[0].PID != cmd.Process.Pid || !slices.Equal(list[0].Args, []string{"600"}) {
		t.Errorf("survivors: %+v", list)
	}
	if others, err := Survivors(t.TempDir()); len(others) > 0 || err != nil {
		t.Errorf("of another directory: %v, %v", others, err)
	}
}
