package test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// trustLab makes a lab below `ip netns exec`, works with it from outside, loses
// its files, and prunes what is left.
func trustLab(t *testing.T, f *faults) {
	space := fmt.Sprintf("trust-%d", os.Getpid())
	name := "in-" + space
	run := func(argv ...string) (string, error) {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		return string(out), err
	}
	must := func(argv ...string) string {
		t.Helper()
		out, err := run(argv...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		return out
	}
	must("ip", "netns", "add", space)
	t.Cleanup(func() {
		must(f.weft, "lab", "down", name, "--ignore-not-found")
		must("ip", "netns", "delete", space)
	})
	must("ip", "netns", "exec", space, f.weft, "lab", "up", "linear:2", "--name", name, "--controller", "none")
	if out := must(f.weft, "lab", "exec", "--name", name, "h1", "--", "ip", "-br", "addr"); !strings.Contains(out, "10.0.0.1/24") {
		t.Errorf("h1 has %s", out)
	}

	// Its names are removed by hand; its processes are found all the same.
	must("rm", "-r", "/run/weft/lab/"+name)
	for _, ns := range strings.Fields(must("ls", "/run/netns")) {
		if ns == "weft-"+name || strings.HasPrefix(ns, "weft-"+name+".") {
			must("ip", "netns", "delete", ns)
		}
	}
	running := func() bool { out, err := run("pgrep", "-f", "/run/weft/lab/"+name+"/"); return err == nil && out != "" }
	if !running() {
		t.Fatal("no process of the lab is left to be pruned")
	}
	if out := must(f.weft, "lab", "prune", "--dry-run"); !strings.Contains(out, name) || !running() {
		t.Errorf("dry run: %s", out)
	}
	must(f.weft, "lab", "down", name) // not prune: other tests' labs are not ours
	if running() {
		t.Error("processes of the lab still run")
	}
	if out := must(f.weft, "lab", "prune", "--dry-run"); strings.Contains(out, name) {
		t.Errorf("still an orphan: %s", out)
	}
}
