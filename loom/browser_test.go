package loom_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
)

// TestBrowser runs three workflows in a real Chromium against a real controller and
// lab; make loom-test runs all of them. It needs root and node.
func TestBrowser(t *testing.T) {
	t.Cleanup(testprogram.Remove)
	weft, err := filepath.Abs(testprogram.WithBench(t))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", "test/browser.mjs", weft, "--quick").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
