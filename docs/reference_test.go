package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
)

// TestCommandReference holds docs/reference to what weft man --markdown writes:
// a page for each command, and no others.
func TestCommandReference(t *testing.T) {
	weft := testprogram.WithBench(t)
	dir := t.TempDir()
	if out, err := exec.Command(weft, "man", "--markdown", dir).CombinedOutput(); err != nil {
		t.Fatalf("weft man: %v: %s", err, out)
	}
	var want []string
	for _, name := range names(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		whole(t, "docs/reference/"+name, string(text))
		want = append(want, name)
	}
	if len(want) < 15 {
		t.Errorf("only %d pages", len(want))
	}
	for _, name := range names(t, filepath.Join(root, "docs/reference")) {
		switch {
		case name == "api.md" || slices.Contains(want, name):
		case *update:
			if err := os.Remove(filepath.Join(root, "docs/reference", name)); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("docs/reference/%s is of no command", name)
		}
	}
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

// whole compares a document that is made as a whole with what it is to be, or
// writes it.
func whole(t *testing.T, document, want string) {
	t.Helper()
	file := filepath.Join(root, document)
	text, err := os.ReadFile(file)
	switch {
	case err == nil && string(text) == want:
	case *update:
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Errorf("%v; run go test ./docs -update", err)
	default:
		t.Errorf("%s is not what the code says; run go test ./docs -update", document)
	}
}
