package docs

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostReal is how many tests of make test may use real switches, routers or browsers.
const mostReal = 60

// realMarks are the folders whose tests make networks of real switches, or start
// browsers, and what in a test, or in what it calls, says so: a name or a string. Tests behind a - make
// none.
var realMarks = map[string][]string{
	"test":                     {"lab.Up", "upFor", "newFaults", "-TestBusProcess"},
	"lab":                      {"Up", "-TestMakerToBeKilled", "-TestMissingToolNamesItsPackage", "-TestUpSaysWhyTheKeeperFailed"},
	"lab/serve":                {"up"},
	"lab/testbed":              {"newSite"},
	"cmd/weft/command":         {"lab.Up", "lab.Down"},
	"docs":                     {"newGuide", `"demo"`},
	"bench/experiments/agents": {"lab.Up"},
	"bench/experiments/scp":    {"Faults"},
	"loom":                     {`"test/browser.mjs"`},
	"openflow":                 {`"ovs-vswitchd"`, `"ovs-testcontroller"`},
	"openflow/oftest":          {`"ovs-vswitchd"`},
	"packet":                   {`"ovs-vswitchd"`},
}

// TestRealTests writes the list of tests of make test that use real switches or
// browsers, and refuses more than sixty. Every line of .ci/long is of one test that
// there is.
func TestRealTests(t *testing.T) {
	long := map[string]bool{} // whole tests
	for line := range strings.Lines(read(t, ".ci/long")) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name != "#" {
			test, _, part := strings.Cut(name, "/")
			long[test] = !part
		}
	}
	var table strings.Builder
	table.WriteString("| folder | tests |\n|---|---|\n")
	n := 0
	folders := map[string][]string{} // of the tests of .ci/long
	for _, folder := range slices.Sorted(maps.Keys(realMarks)) {
		var names []string
		for _, name := range realTests(t, folder, realMarks[folder]) {
			if _, ok := long[name]; ok {
				folders[name] = append(folders[name], folder)
			}
			if !long[name] {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&table, "| `%s/` | %s |\n", folder, strings.Join(names, ", "))
		}
		n += len(names)
	}
	for _, name := range slices.Sorted(maps.Keys(long)) {
		if len(folders[name]) != 1 {
			t.Errorf(".ci/long: %s is a test on real switches of %d folders %q, want one: go test takes names only", name, len(folders[name]), folders[name])
		}
	}
	if n > mostReal {
		t.Errorf("%d tests of make test use real switches, at most %d: prove it at a cheaper level, or leave it to make test-long by a line of .ci/long", n, mostReal)
	}
	section(t, "docs/internals/testing.md", "real", fmt.Sprintf("%s\n%d tests.\n", table.String(), n))
}

// realTests returns the tests of a folder, without build tags, from which a call leads to
// one of the marks.
func realTests(t *testing.T, folder string, marks []string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string]bool{} // by function, the names and strings in it
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if leftOut(file) {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			used := uses[f.Name.Name] // of methods of that name, too
			if used == nil {
				used = map[string]bool{}
				uses[f.Name.Name] = used
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok {
						used[x.Name+"."+n.Sel.Name] = true
					}
					used[n.Sel.Name] = true
				case *ast.Ident:
					used[n.Name] = true
				case *ast.BasicLit:
					used[n.Value] = true
				}
				return true
			})
		}
	}
	reaches := map[string]bool{}
	var leads func(string) bool
	leads = func(name string) bool {
		if done, ok := reaches[name]; ok {
			return done
		}
		reaches[name] = false
		for used := range uses[name] {
			if slices.Contains(marks, used) || uses[used] != nil && leads(used) {
				reaches[name] = true
				return true
			}
		}
		return false
	}
	for name := range uses {
		if strings.HasPrefix(name, "Test") && name != "TestMain" && leads(name) && !slices.Contains(marks, "-"+name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leftOut reports whether make test leaves a file out, by its build tags.
func leftOut(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if x, err := constraint.Parse(c.Text); err == nil {
				return !x.Eval(func(tag string) bool { return tag == "linux" || tag == "amd64" })
			}
		}
	}
	return false
}
