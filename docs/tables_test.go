package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

func specs() []weft.Spec { return services.All(gateway.Process{}) }

// TestServiceTable holds the table of services to their Specs.
func TestServiceTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| service | what it does | answers | stage | class | scale |\n|---|---|---|---|---|---|\n")
	var stages []string
	for _, name := range plan.DefaultPipeline() {
		if slices.ContainsFunc(specs(), func(s weft.Spec) bool { return s.Name == name && s.Stage }) {
			stages = append(stages, name)
		}
	}
	for _, s := range specs() {
		var serves []string
		for _, m := range s.Serves {
			_, name, _ := strings.Cut(m.MethodName(), ".")
			serves = append(serves, name)
		}
		stage := ""
		if s.Stage {
			stage = strconv.Itoa(slices.Index(stages, s.Name) + 1)
		}
		fmt.Fprintf(&b, "| [%s](../services/%[1]s) | %s | %s | %s | %s | %s |\n", s.Name, s.Doc, strings.Join(serves, ", "), stage, s.Class, s.Scale)
	}
	section(t, "docs/services.md", "services", b.String())
}

// TestEventTable holds ARCHITECTURE's table of events to the Specs.
func TestEventTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| event | from | to |\n|---|---|---|\n")
	for _, from := range specs() {
		for _, e := range from.Publishes {
			var to []string
			for _, s := range specs() {
				if slices.ContainsFunc(s.Wants(), func(o weft.Subject) bool { return o.SubjectName() == e.SubjectName() }) {
					to = append(to, s.Name)
				}
			}
			_, name, _ := strings.Cut(e.SubjectName(), ".")
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, from.Name, strings.Join(to, ", "))
		}
	}
	section(t, "ARCHITECTURE.md", "events", b.String())
}

// TestPipelineTables holds docs/internals/entries.md to flow/pipeline.go.
func TestPipelineTables(t *testing.T) {
	var tables, priorities, numbers strings.Builder
	tables.WriteString("| table | name | what is there |\n|---|---|---|\n")
	priorities.WriteString("| table | priorities | entries | owner | service |\n|---|---|---|---|---|\n")
	for _, table := range flow.Tables() {
		fmt.Fprintf(&tables, "| %s | %s | %s |\n", upTo(uint32(table.Number), uint32(max(table.Number, table.Last)), "%d"), table.Name, table.Doc)
		type row struct {
			flow.Priorities
			flow.Writer
		}
		var rows []row
		for _, w := range flow.Writers() {
			for _, p := range w.Priorities {
				if p.Table == table.Number {
					rows = append(rows, row{p, w})
				}
			}
		}
		slices.SortStableFunc(rows, func(a, b row) int { return int(b.Top) - int(a.Top) })
		for _, r := range rows {
			fmt.Fprintf(&priorities, "| %d | %s | %s | %s | %s |\n", table.Number, upTo(uint32(r.Base), uint32(r.Top), "%d"), r.Priorities.Doc, r.Name, r.Service)
		}
	}
	numbers.WriteString("| owner | groups | meters |\n|---|---|---|\n")
	for i, w := range slices.Concat(flow.Writers(), flow.ReservedWriters()) {
		if i >= len(flow.Writers()) {
			w.Name += ", reserved"
		}
		if w.Groups != (flow.Range{}) || w.Meters != (flow.Range{}) {
			fmt.Fprintf(&numbers, "| %s | %s | %s |\n", w.Name, upTo(w.Groups.First, w.Groups.Last, "%#x"), upTo(w.Meters.First, w.Meters.Last, "%#x"))
		}
	}
	for _, page := range []string{"balancer", "coming-from", "qos", "router", "tenants"} {
		if want := regexp.MustCompile(fmt.Sprintf(`\b%d (flow )?tables`, flow.PipelineTables)); !want.MatchString(read(t, "docs/guide/"+page+".md")) {
			t.Errorf("docs/guide/%s.md does not say that a switch needs %d tables", page, flow.PipelineTables)
		}
	}
	section(t, "docs/internals/entries.md", "tables", tables.String())
	section(t, "docs/internals/entries.md", "priorities", priorities.String())
	section(t, "docs/internals/entries.md", "numbers", numbers.String())
}

// upTo writes a range of numbers; that of meters and groups is empty if last is 0.
func upTo(first, last uint32, form string) string {
	switch {
	case first == last && form != "%d":
		return ""
	case first == last:
		return fmt.Sprintf(form, first)
	}
	return fmt.Sprintf(form+" to "+form, first, last)
}

// TestBuckets holds docs/internals/state.md to the buckets that services declare.
func TestBuckets(t *testing.T) {
	text := read(t, "docs/internals/state.md")
	_, text, _ = strings.Cut(text, "| bucket |")
	var listed []string
	for _, line := range strings.Split(text, "\n")[2:] {
		name, ok := strings.CutPrefix(line, "| `")
		if !ok {
			break
		}
		name, _, _ = strings.Cut(name, "`")
		listed = append(listed, name)
	}
	var declared []string
	for _, s := range specs() {
		for _, b := range s.Buckets {
			declared = append(declared, s.Name+"."+b)
		}
	}
	if !slices.Equal(listed, declared) {
		t.Errorf("docs/internals/state.md lists the buckets %q; the Specs declare %q", listed, declared)
	}
}

// TestImportTable holds docs/internals/imports.md to internal/archtest/table.go.
func TestImportTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/archtest/table.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants, rows := map[string]string{}, []*ast.CompositeLit(nil)
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			v, ok := spec.(*ast.ValueSpec)
			switch {
			case !ok:
			case d.Tok == token.CONST:
				for i, name := range v.Names {
					constants[name.Name] = unquote(t, v.Values[i])
				}
			case v.Names[0].Name == "table":
				for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
					rows = append(rows, e.(*ast.CompositeLit))
				}
			}
		}
	}
	if len(rows) < 10 {
		t.Fatalf("internal/archtest/table.go: %d rows found", len(rows))
	}
	value := func(e ast.Expr) []string {
		l, ok := e.(*ast.CompositeLit)
		if !ok {
			return nil // nil
		}
		var out []string
		for _, x := range l.Elts {
			if id, ok := x.(*ast.Ident); ok {
				out = append(out, constants[id.Name])
			} else {
				out = append(out, unquote(t, x))
			}
		}
		return out
	}
	cell := func(list []string) string {
		for i, s := range list {
			switch s {
			case ".":
				s = "weft"
			case "*":
				s = "any"
			}
			list[i] = strings.TrimSuffix(s, "/")
		}
		if slices.Contains(list, "any") {
			return "any"
		}
		return strings.Join(list, ", ")
	}
	var b strings.Builder
	b.WriteString("| folder | of this module | of others |\n|---|---|---|\n")
	for _, r := range rows {
		dir := unquote(t, r.Elts[0])
		if dir == "." {
			dir = "weft (the root)"
		} else if found, err := filepath.Glob(filepath.Join(root, dir)); err != nil || len(found) == 0 {
			dir += " (not there yet)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.ReplaceAll(dir, "*", `\*`), strings.ReplaceAll(cell(value(r.Elts[1])), "*", `\*`), cell(value(r.Elts[2])))
	}
	section(t, "docs/internals/imports.md", "imports", b.String())
}

func unquote(t *testing.T, e ast.Expr) string {
	t.Helper()
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("internal/archtest/table.go: a literal is wanted, not %T", e)
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOwners holds the picture of the cookie in docs/internals/entries.md, and the
// owners in ARCHITECTURE.md, to flow's.
func TestOwners(t *testing.T) {
	if got, want := uint64(flow.NewCookie(0x12, 0x34, 0x56789abc)), uint64(0x5745<<48|0x12<<40|0x34<<32|0x56789abc); got != want {
		t.Errorf("a cookie is %016x; by the picture in docs/internals/entries.md it would be %016x", got, want)
	}
	_, owners, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "- **owner**")
	owners, _, _ = strings.Cut(owners, "\n")
	for _, o := range flow.Owners(func(*flow.Writer) bool { return true }) {
		if !strings.Contains(owners, o.String()) {
			t.Errorf("ARCHITECTURE.md does not list the owner %s", o)
		}
	}
}
