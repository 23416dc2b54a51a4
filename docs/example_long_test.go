//go:build long

package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/freeport"
)

// TestExampleService puts the service of CONTRIBUTING.md into a copy of the
// module, generates its API, runs its test and those that know every service,
// builds the program and isolates a host by its command. Nothing of the module
// is changed by hand beside what CONTRIBUTING.md says.
func TestExampleService(t *testing.T) {
	dir := exampleModule(t)
	run := func(name string, args ...string) string {
		t.Helper()
		return runIn(t, dir, name, args...)
	}
	run("make", "-s", "generate")
	run("go", "test", "./services/isolation", "./flow", "./services", "./internal/archtest")
	run("go", "build", "-o", "weft", "./cmd/weft")

	openflow, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	http, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEFT_SERVER", "http://"+http)
	ctx, stop := context.WithCancel(t.Context())
	up := exec.CommandContext(ctx, filepath.Join(dir, "weft"), "up", "--listen", openflow, "--http", http, "--data-dir", t.TempDir(), "--user", "root")
	up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
	var log strings.Builder
	up.Stderr = &log
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = up.Wait() }()
	weft := filepath.Join(dir, "weft")
	for end := time.Now().Add(time.Minute); exec.Command(weft, "get", "services").Run() != nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			stop()
			_ = up.Wait()
			t.Fatalf("the controller does not answer:\n%s", &log)
		}
	}
	run(weft, "isolation", "add", "bad", "--mac", "02:00:00:00:00:0A")
	if out := run(weft, "isolation", "list", "-o", "json"); !strings.Contains(out, `"02:00:00:00:00:0a"`) {
		t.Errorf("weft isolation list: %s", out)
	}
	if out := run(weft, "isolation", "delete", "bad"); !strings.Contains(out, "true") {
		t.Errorf("weft isolation delete: %s", out)
	}
}

// exampleModule returns a copy of the module with the example.
func exampleModule(t *testing.T) string {
	t.Helper()
	dir := copyModule(t)
	for name, text := range exampleFiles(t) {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// runIn runs a program in a folder and returns what it prints.
func runIn(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// copyModule copies the files of the module that git knows of.
func copyModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list := exec.Command("git", "ls-files")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSpace(name)
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text))
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || os.Chmod(filepath.Join(dir, name), info.Mode()) != nil {
			t.Fatal(name, err)
		}
	}
	modules, err := filepath.Abs(filepath.Join(root, "node_modules"))
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
