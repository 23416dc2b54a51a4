// Package archtest enforces the rules of the architecture: who may import
// whom, how packages and services look, and how large their parts may grow.
//
// Tests import it, nothing else does. It imports only the standard library.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the path of the module whose rules these are.
const module = "github.com/weft-sdn/weft"

// maxLines bounds hand-written files.
const maxLines = 500

// file is one Go file of the tree.
type file struct {
	path      string // from the root, with slashes
	dir       string
	test      bool
	generated bool
	lines     int
	syntax    *ast.File
	positions *token.FileSet
}

// Check returns every breach of a rule in the tree below the module's root:
// which file breaks which rule, and what to do.
func Check(root fs.FS) ([]string, error) {
	files, err := load(root)
	if err != nil {
		return nil, err
	}
	c := &check{files: files}
	c.imports()
	c.globals()
	c.packages()
	c.services()
	c.priorities()
	slices.Sort(c.breaches)
	return slices.Compact(c.breaches), nil
}

type check struct {
	files    []file
	breaches []string
}

// fail reports a breach in a file, at a node of it or as a whole.
func (c *check) fail(f *file, at ast.Node, format string, args ...any) {
	where := f.path
	if at != nil {
		where = fmt.Sprintf("%s:%d", where, f.positions.Position(at.Pos()).Line)
	}
	c.breaches = append(c.breaches, where+": "+fmt.Sprintf(format, args...))
}

// load parses all Go files, except those in testdata and in folders that
// begin with a dot or an underscore.
func load(root fs.FS) (files []file, err error) {
	positions := token.NewFileSet()
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != "." && (base == "testdata" || base == "node_modules" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f := file{
			path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			lines: bytes.Count(src, []byte("\n")), positions: positions,
		}
		f.syntax, err = parser.ParseFile(f.positions, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		f.generated = ast.IsGenerated(f.syntax)
		files = append(files, f)
		return nil
	})
	return files, err
}

// imported returns the path of an import.
func imported(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has accepted it, so this does not happen
	}
	return p
}

// within returns the folder of an imported package of this module, "." for its
// root; false if it is another's.
func within(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}
