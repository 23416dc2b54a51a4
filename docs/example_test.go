package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-sdn/weft/internal/archtest"
)

// TestExampleService builds the service of CONTRIBUTING.md into the module, by
// an overlay that leaves no file behind; runs its test; holds the module with
// it to the rules; and has the program know it.
func TestExampleService(t *testing.T) {
	files := exampleFiles(t)
	overlay := writeOverlay(t, files)
	binary := filepath.Join(t.TempDir(), "storm.test")
	compile := exec.Command("go", "test", "-c", "-vet=off", "-o", binary, "-overlay", overlay, "./services/storm")
	compile.Dir = root // vet is off because it wants the package's folder to exist
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("the example does not build: %v\n%s", err, out)
	}
	test := exec.Command(binary)
	test.Dir = t.TempDir()
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("the example's test: %v\n%s", err, out)
	}

	for name, text := range files {
		file := filepath.Join(t.TempDir(), "file.go")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("gofmt", "-l", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s is not formatted; %s", name, out)
		}
	}

	before, err := archtest.Check(module(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	after, err := archtest.Check(module(t, files))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range after {
		if !slices.Contains(before, b) {
			t.Error(b)
		}
	}

	weft := build(t, overlay)
	config := filepath.Join(t.TempDir(), "weft.yaml")
	text := "pipeline: [discovery, storm, hosts, firewall, balancer, router, nat, forwarding]\nstorm:\n  per_second: 10\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(weft, "check", config).CombinedOutput(); err != nil {
		t.Errorf("weft check: %s", out)
	}
	if _, err := os.Stat(filepath.Join(root, "services/storm")); err == nil {
		t.Error("services/storm is there; the example is to leave nothing behind")
	}
}

// exampleFiles returns the files of the example, and those of the module that
// its diffs change, by path from the root.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, b := range blocks(t, "CONTRIBUTING.md") {
		switch {
		case b.file == "":
		case b.language == "go":
			files[b.file] = b.text
		case b.language == "diff":
			before, ok := files[b.file]
			if !ok {
				before = read(t, b.file)
			}
			files[b.file] = patch(t, b, before)
		}
	}
	if len(files) < 6 {
		t.Fatalf("CONTRIBUTING.md: only %d files of the example found", len(files))
	}
	return files
}

// patch applies a diff without line numbers.
func patch(t *testing.T, b block, text string) string {
	t.Helper()
	var before, after strings.Builder
	for line := range strings.Lines(b.text) {
		switch line[0] {
		case ' ':
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case '-':
			before.WriteString(line[1:])
		case '+':
			after.WriteString(line[1:])
		default:
			t.Fatalf("%s:%d: a line of a diff begins with a space, + or -: %q", b.document, b.line, line)
		}
	}
	if strings.Count(text, before.String()) != 1 {
		t.Fatalf("%s:%d: %s does not have these lines once:\n%s", b.document, b.line, b.file, before.String())
	}
	return strings.Replace(text, before.String(), after.String(), 1)
}

// writeOverlay writes the files to a temporary folder, and the overlay that
// puts them into the module (go help build, -overlay).
func writeOverlay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, text := range files {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(top, name)] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// module returns the Go files of the module with the given ones in their
// places.
func module(t *testing.T, files map[string]string) fs.FS {
	t.Helper()
	tree := fstest.MapFS{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		tree[filepath.ToSlash(rel)] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}
