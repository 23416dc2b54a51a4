package companion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFind finds a program beside this one first, then on PATH, and says what is
// missing.
func TestFind(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	program := func(folder string) string {
		path := filepath.Join(folder, "weft-companion")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := Find("weft-companion"); err == nil || !strings.Contains(err.Error(), "install weft-companion there") {
		t.Errorf("nowhere: %v", err)
	}
	want := program(dir)
	if got, err := Find("weft-companion"); got != want || err != nil {
		t.Errorf("on PATH: %q, %v", got, err)
	}
	want = program(filepath.Dir(self))
	defer os.Remove(want)
	if got, err := Find("weft-companion"); got != want || err != nil {
		t.Errorf("beside: %q, %v", got, err)
	}
}
