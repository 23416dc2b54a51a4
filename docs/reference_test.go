package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
)

// TestReference writes the reference, as make reference does, and checks it: a page for each
// command, and one for the API.
func TestReference(t *testing.T) {
	writeReference(t)
	list := names(t, filepath.Join(root, reference))
	if len(list) < 15 || !slices.Contains(list, "api.md") || !slices.Contains(list, "commands.md") {
		t.Errorf("%d pages: %q", len(list), list)
	}
}

// reference is the folder of the reference, which git does not have.
const reference = "docs/reference"

var writing sync.Once

// writeReference writes the reference, once for all tests. Other documents are checked
// together with it.
func writeReference(t *testing.T) {
	t.Helper()
	writing.Do(func() {
		dir := filepath.Join(root, reference)
		if err := os.RemoveAll(dir); err != nil { // pages of commands that are gone
			t.Fatal(err)
		}
		if out, err := exec.Command(testprogram.WithBench(t), "man", "--markdown", dir).CombinedOutput(); err != nil {
			t.Fatalf("weft man: %v: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(dir, "api.md"), []byte(apiReference(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// TestManualPages has the manual pages written: one of each command, which man
// can read.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command(testprogram.WithBench(t), "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("weft man: %v: %s", err, out)
	}
	pages := names(t, dir)
	if !slices.Contains(pages, "weft.1") || !slices.Contains(pages, "weft-firewall-add.1") || len(pages) < 50 {
		t.Errorf("%d pages: %q", len(pages), pages)
	}
	for _, name := range pages {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{".TH ", ".SH NAME", ".SH SYNOPSIS"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
