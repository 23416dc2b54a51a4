package scp

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments/agents"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab/topology"
)

// Every setup has a target of its own, and the network has what it needs.
func TestSetups(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(bin+"/nginx", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	var names, targets []string
	for _, of := range setups() {
		names, targets = append(names, of.name), append(targets, of.target())
	}
	want := []string{direct, sdn, "independent-nginx", "co-located-nginx", "independent-go", "co-located-go"}
	if !slices.Equal(names, want) {
		t.Errorf("setups %q, want %q", names, want)
	}
	if slices.Sort(targets); len(slices.Compact(targets)) != len(want) {
		t.Errorf("targets %q", targets)
	}
	topo := bedTopology(agents.Scripts("/scripts"))
	topo.Name = "bed"
	topo.Complete()
	if err := topology.Check(topo); err != nil {
		t.Error(err)
	}
	programs := 0
	for _, h := range topo.Hosts {
		programs += len(h.Run)
	}
	if programs != 2+3*2 {
		t.Errorf("%d programs; want the NRF, a producer, and three agents of two kinds", programs)
	}
}

// What a process that is killed leaves is swept away; what one takes down itself
// is not touched.
func TestSweep(t *testing.T) {
	for _, killed := range []bool{true, false} {
		dir := t.TempDir()
		said := filepath.Join(t.TempDir(), "said")
		weft := filepath.Join(t.TempDir(), "weft")
		testprogram.Install(t, weft, []byte("#!/bin/sh\necho \"$@\" >"+said+"\n"))
		sleep := filepath.Join(filepath.Dir(weft), "sleep")
		testprogram.Install(t, sleep, []byte("#!/bin/sh\n"))
		t.Setenv("PATH", filepath.Dir(weft)+":"+os.Getenv("PATH"))
		controller := exec.Command("sh", "-c", "read -r line") // waits
		if _, err := controller.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := controller.Start(); err != nil {
			t.Fatal(err)
		}
		alive, cmd, err := sweeper(weft, "mine", controller.Process.Pid, dir)
		if err != nil {
			t.Fatal(err)
		}
		if !killed {
			_, _ = io.WriteString(alive, "done\n")
		}
		alive.Close()
		_ = cmd.Wait()
		if !killed {
			_ = controller.Process.Kill()
		}
		_ = controller.Wait()
		if signal := controller.ProcessState.Sys().(syscall.WaitStatus).Signal(); (signal == syscall.SIGTERM) != killed {
			t.Errorf("killed %v: the controller ended by %v", killed, signal)
		}
		text, _ := os.ReadFile(said)
		_, err = os.Stat(dir)
		if gone := os.IsNotExist(err); gone != killed || (string(text) == "lab down mine\n") != killed {
			t.Errorf("killed %v: it ran %q, the directory is gone: %v", killed, text, gone)
		}
	}
}
