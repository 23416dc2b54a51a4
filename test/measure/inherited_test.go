package measure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestQuota(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("own", "0::/a/b\n")
	own := filepath.Join(root, "own")
	write("a/b/cpu.max", "max 100000\n")
	if got := quotaOf(root, own); got != "" {
		t.Errorf("without a quota: %q", got)
	}
	write("a/cpu.max", "50000 100000\n")
	write("cpu.max", "90000 100000\n")
	if got := quotaOf(root, own); got != "50000 100000" {
		t.Errorf("got %q, want the tightest of the groups above", got)
	}
	if got := quotaOf(root, filepath.Join(root, "none")); got != "" {
		t.Errorf("without control groups: %q", got)
	}
}
