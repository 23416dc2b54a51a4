package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// advisoryTests finds a folder and a test in it, in a cell of the table.
var advisoryTests = regexp.MustCompile("`([a-z/]+)` (Test\\w+)")

// TestAdvisories: every advisory of the table in guide/security.md has tests,
// and these exist.
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
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows", rows)
	}
}
