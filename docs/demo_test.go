package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testprogram"
)

// TestDemo runs what make demo runs, the README's first command: nothing falls short.
func TestDemo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("wants root: the demo runs on real switches, in network namespaces")
	}
	openflow, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	http, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil { // the controller leaves root
			t.Fatal(err)
		}
	}
	cmd := exec.Command(testprogram.WithBench(t), "demo", "--listen", openflow, "--http", http, "--dir", dir)
	cmd.Env = append(os.Environ(), "CI=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("weft demo: %v\n%s", err, out)
	}
}
