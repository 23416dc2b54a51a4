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
	run("go", "test", "./services", "./internal/archtest")
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
