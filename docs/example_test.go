package docs

import (
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-sdn/weft/internal/archtest"
)

// TestExample holds the service of CONTRIBUTING.md to the format and the rules
// of the module and counts the files that it touches outside its folder.
// TestExampleService, with the tag long, builds it.
func TestExample(t *testing.T) {
	files := exampleFiles(t)
	var touched []string
	for name, text := range files {
		if !strings.HasPrefix(name, "services/isolation/") {
			touched = append(touched, name)
		}
		if filepath.Ext(name) != ".go" {
			continue
		}
		if b, err := format.Source([]byte(text)); err != nil || string(b) != text {
			t.Errorf("%s is not as gofmt has it: %v", name, err)
		}
	}
	slices.Sort(touched)
	if want := []string{"api/isolation.proto", "flow/pipeline.go", "services/services.go"}; !slices.Equal(touched, want) {
		t.Errorf("touches %q, want %q", touched, want)
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
}

// exampleFiles returns the files of the example, and those of the module that
// its diffs change, by path from the root.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, b := range blocks(t, "CONTRIBUTING.md") {
		switch {
		case b.file == "":
		case b.language != "diff":
			files[b.file] = b.text
		default:
			before, ok := files[b.file]
			if !ok {
				before = read(t, b.file)
			}
			files[b.file] = patch(t, b, before)
		}
	}
	if len(files) < 7 {
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
		if filepath.Ext(name) == ".go" {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return tree
}

// write writes a file and the folders that it is in.
func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
