package services

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hostChanges are what api/hosts.proto says that may become of a host.
func hostChanges(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../api/hosts.proto")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`// ([a-z, ]+) or ([a-z]+)\.\n  string change = `).FindSubmatch(text)
	if m == nil {
		t.Fatal("api/hosts.proto does not say what becomes of hosts")
	}
	return append(strings.Split(string(m[1]), ", "), string(m[2]))
}

// reading is what the code of a service looks at.
type reading struct {
	hears    []string          // events, such as HostChanged
	fields   map[string]bool   // fields of messages, without Get
	compares map[string]bool   // texts that Change is compared with
	switches []*ast.SwitchStmt // over Change
}

// read reads a service's code without its tests, and the kit's table of hosts if
// it uses that.
func read(t *testing.T, dir string) (*token.FileSet, *reading) {
	t.Helper()
	set, r := token.NewFileSet(), &reading{fields: map[string]bool{}, compares: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("object.NewHosts(")) {
			files = append(files, filepath.Join("..", "object", "hosts.go"))
			break
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "On" && len(n.Args) == 3 {
					if event, ok := n.Args[1].(*ast.SelectorExpr); ok && !passedOn(n.Args[2]) {
						r.hears = append(r.hears, strings.TrimSuffix(event.Sel.Name, "Event"))
					}
				}
			case *ast.SelectorExpr:
				r.fields[strings.TrimPrefix(n.Sel.Name, "Get")] = true
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					r.compare(n.X, n.Y)
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && isChange(n.Tag) {
					r.switches = append(r.switches, n)
					for _, c := range n.Body.List {
						for _, value := range c.(*ast.CaseClause).List {
							r.compare(n.Tag, value)
						}
					}
				}
			}
			return true
		})
	}
	return set, r
}

// passedOn reports a handler that does nothing but hand switches to weft.BaselineFlows,
// which forgets those that are gone.
func passedOn(handler ast.Expr) bool {
	f, ok := handler.(*ast.FuncLit)
	if !ok || len(f.Body.List) != 1 {
		return false
	}
	s, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	to, ok := call.Fun.(*ast.SelectorExpr)
	return ok && to.Sel.Name == "SwitchChanged"
}

// isChange reports an expression such as e.Change or e.GetChange().
func isChange(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		e = call.Fun
	}
	s, ok := e.(*ast.SelectorExpr)
	return ok && strings.TrimPrefix(s.Sel.Name, "Get") == "Change"
}

func (r *reading) compare(x, y ast.Expr) {
	if literal, ok := y.(*ast.BasicLit); ok && isChange(x) {
		if text, err := strconv.Unquote(literal.Value); err == nil {
			r.compares[text] = true
		}
	}
}

// TestCVE_2019_16297_EveryChangeIsHandled: whoever hears of switches, ports,
// links, hosts and segments looks also at what says that they are gone, and
// whoever tells the changes of hosts apart knows every one of them. (Of ONOS,
// seven apps did not handle hosts that came, went or moved: also
// CVE-2019-16298 to -16302.)
func TestCVE_2019_16297_EveryChangeIsHandled(t *testing.T) {
	gone := map[string]string{"SwitchChanged": "Connected", "PortChanged": "Removed", "LinkChanged": "Removed", "SegmentChanged": "Removed", "HostChanged": "Change"}
	changes := hostChanges(t)
	if len(changes) != 5 {
		t.Fatalf("%q", changes)
	}
	dirs, err := filepath.Glob("*/service.go")
	if err != nil || len(dirs) < 12 {
		t.Fatalf("%q, %v", dirs, err)
	}
	heard := 0
	for _, path := range dirs {
		service := filepath.Dir(path)
		set, r := read(t, service)
		for _, event := range r.hears {
			field, ok := gone[event]
			if !ok {
				continue
			}
			heard++
			if !r.fields[field] {
				t.Errorf("%s hears %s and never looks at %s: what is gone stays for it", service, event, field)
			}
			if event == "HostChanged" && !r.compares["gone"] {
				t.Errorf("%s hears HostChanged and never asks whether the host is gone", service)
			}
		}
		for text := range r.compares {
			if slices.Contains(r.hears, "HostChanged") && !slices.Contains(changes, text) {
				t.Errorf("%s compares the change of a host with %q; there are %q", service, text, changes)
			}
		}
		for _, s := range r.switches {
			cases, others := map[string]bool{}, false
			for _, c := range s.Body.List {
				others = others || c.(*ast.CaseClause).List == nil
				for _, value := range c.(*ast.CaseClause).List {
					if literal, ok := value.(*ast.BasicLit); ok {
						text, _ := strconv.Unquote(literal.Value) // of Go's syntax
						cases[text] = true
					}
				}
			}
			for _, change := range changes {
				if !others && !cases[change] {
					t.Errorf("%v: no case for %q, and no default", set.Position(s.Pos()), change)
				}
			}
		}
	}
	if heard == 0 { // archtest says how many there may be
		t.Error("no handlers found")
	}
}
