package docs

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-sdn/weft/internal/archtest"
)

// The most that a service of objects may take: lines of all its files and diffs, and
// names of the framework that it uses.
const (
	exampleLines = 130
	exampleNames = 15
)

// TestExample holds the service of CONTRIBUTING.md to the format and the rules
// of the module and counts its lines, the names that it uses and the files that it touches
// outside its folder. TestExampleService, with the tag long, builds it.
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
	if n := exampleSize(t); n > exampleLines {
		t.Errorf("it has %d lines, want at most %d", n, exampleLines)
	}
	if list := frameworkNames(t, files); len(list) > exampleNames {
		t.Errorf("it uses %d names of the framework, want at most %d: %q", len(list), exampleNames, list)
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

// exampleSize returns how many lines the files and diffs of the example have.
func exampleSize(t *testing.T) (n int) {
	for _, b := range blocks(t, "CONTRIBUTING.md") {
		if b.file != "" {
			n += strings.Count(b.text, "\n")
		}
	}
	return n
}

// frameworkNames returns the names that the Go files of the example use of other packages
// of the module. What the example itself declares there (its messages, its owner) is none.
func frameworkNames(t *testing.T, files map[string]string) []string {
	names := map[string]bool{}
	for name, text := range files {
		if filepath.Ext(name) != ".go" || !strings.HasPrefix(name, "services/isolation/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		packages := map[string]bool{}
		for _, i := range file.Imports {
			if at := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(at, "github.com/weft-sdn/weft") {
				packages[path.Base(at)] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && packages[x.Name] && !strings.Contains(s.Sel.Name, "Isolat") {
					names[x.Name+"."+s.Sel.Name] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(names))
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
	if len(files) < 5 {
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
