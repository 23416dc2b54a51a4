package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// advisoryTests finds a folder, a test in it and perhaps a subtest, in a cell of
// the table.
var advisoryTests = regexp.MustCompile("`([a-z/]+)` (Test\\w+)(?:/([\\w-]+))?")

// advisoryNames finds tests that are named after advisories and issues of other
// controllers.
var advisoryNames = regexp.MustCompile(`(?m)^func (Test(?:CVE|Floodlight|TopoGuard|Ryu)_?[0-9]\w*|TestTopoGuard\w+)\(t \*testing\.T\)`)

// TestAdvisories: every advisory of the table in guide/security.md has tests,
// these exist, and every test that is named after an advisory is in the table.
func TestAdvisories(t *testing.T) {
	text, err := os.ReadFile("guide/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- advisories:begin -->\n")
	table, _, ok2 := strings.Cut(rest, "<!-- advisories:end -->")
	if !ok || !ok2 {
		t.Fatal("guide/security.md has no table of advisories")
	}
	folders := map[string]string{} // the tests of a folder, as text
	rows := 0
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		rows++
		tests := advisoryTests.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range tests {
			dir, name := m[1], m[2]
			if _, read := folders[dir]; !read {
				files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					source, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					folders[dir] += string(source)
				}
			}
			if !strings.Contains(folders[dir], "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s has no %s: %.60s…", dir, name, line)
			}
			if sub := m[3]; sub != "" && !strings.Contains(folders[dir], `{"`+sub+`", `) {
				t.Errorf("%s %s has no subtest %s: %.60s…", dir, name, sub, line)
			}
		}
	}
	if rows < 50 {
		t.Errorf("only %d rows", rows)
	}
	named := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range advisoryNames.FindAllSubmatch(source, -1) {
			if named++; !strings.Contains(table, "`"+filepath.ToSlash(dir)+"` "+string(m[1])) {
				t.Errorf("%s has %s, which guide/security.md does not name", dir, m[1])
			}
		}
		return nil
	})
	if err != nil || named < 60 {
		t.Errorf("%d tests are named after advisories, %v", named, err)
	}
}
