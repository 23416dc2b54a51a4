package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// waits are the functions of package weft that may wait for another service.
var waits = []string{"Call", "CallAny", "Publish"}

// Stages returns every way by which a stage of a service may wait: from what
// weft.Stage is given to weft.Call, weft.Publish, or a function with a context,
// unless it is on another goroutine. root is the module's folder; a file of
// overlay takes the place of the one with its path from there.
func Stages(root string, overlay map[string]string) ([]string, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", "./services/...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, export, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[name] = export
	}
	set := token.NewFileSet()
	known := importer.ForCompiler(set, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	folders, err := filepath.Glob(filepath.Join(root, "services", "*"))
	if err != nil {
		return nil, err
	}
	var breaches []string
	for _, folder := range folders {
		list, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		var files []*ast.File
		for _, name := range list {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			var text any // nil: what is in the file
			for path, other := range overlay {
				if filepath.Join(root, path) == name {
					text = other
				}
			}
			f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		if len(files) == 0 {
			continue
		}
		found, err := stagesOf(set, known, files)
		if err != nil {
			return nil, err
		}
		breaches = append(breaches, found...)
	}
	return breaches, nil
}

// stagesOf is Stages for one package.
func stagesOf(set *token.FileSet, known types.Importer, files []*ast.File) ([]string, error) {
	g := &graph{
		set: set, bodies: map[types.Object][]part{}, methods: map[string][]part{}, seen: map[ast.Node]bool{},
		info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}},
	}
	var err error
	if g.pkg, err = (&types.Config{Importer: known}).Check("service", set, files, g.info); err != nil {
		return nil, err
	}
	var roots []ast.Node
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && g.ofWeft(call.Fun) == "Stage" {
				roots = append(roots, call.Args[1])
			}
			g.note(n)
			return true
		})
	}
	for _, root := range roots {
		g.walk(part{root, false}, []string{"the stage"})
	}
	slices.Sort(g.breaches)
	return g.breaches, nil
}

// part is a function, or what is stored in a field or a variable. Of what is
// stored, parameters count for all that they are given; of a function they do
// not, because whoever passes a function is taken to call it.
type part struct {
	node   ast.Node
	stored bool
}

// graph is which functions of a package use which.
type graph struct {
	set      *token.FileSet
	pkg      *types.Package
	info     *types.Info
	bodies   map[types.Object][]part // of functions, fields, variables and parameters
	methods  map[string][]part       // by name: an interface's may be any of them
	seen     map[ast.Node]bool
	breaches []string
}

// note keeps what a node says a function, field or variable is.
func (g *graph) note(n ast.Node) {
	add := func(to types.Object, x part) {
		if to != nil {
			g.bodies[to] = append(g.bodies[to], x)
		}
	}
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body == nil {
			return
		}
		add(g.info.Defs[n.Name], part{n, false})
		if n.Recv != nil {
			g.methods[n.Name.Name] = append(g.methods[n.Name.Name], part{n, false})
		}
	case *ast.AssignStmt:
		for k, to := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				add(g.object(to), part{n.Rhs[k], true})
			}
		}
	case *ast.KeyValueExpr:
		add(g.object(n.Key), part{n.Value, true})
	case *ast.CallExpr:
		fn, ok := g.object(n.Fun).(*types.Func)
		if !ok || fn.Pkg() != g.pkg {
			return
		}
		params := fn.Signature().Params()
		for k, arg := range n.Args[:min(len(n.Args), params.Len())] {
			add(params.At(k), part{arg, true})
		}
	}
}

// object returns what an expression names; nil if it is none of the package's.
func (g *graph) object(x ast.Expr) types.Object {
	var id *ast.Ident
	switch x := x.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	case *ast.IndexExpr:
		return g.object(x.X)
	default:
		return nil
	}
	o := g.info.Uses[id]
	if o == nil {
		o = g.info.Defs[id]
	}
	if fn, ok := o.(*types.Func); ok {
		return fn.Origin()
	}
	if v, ok := o.(*types.Var); ok {
		return v.Origin()
	}
	return nil
}

// walk follows what a part does itself; by is the way to it.
func (g *graph) walk(x part, by []string) {
	if g.seen[x.node] {
		return
	}
	g.seen[x.node] = true
	node, params := x.node, map[types.Object]bool{}
	refuse := func(at ast.Node, what string) {
		g.breaches = append(g.breaches, fmt.Sprintf("%s: %s %s; a stage never waits: use weft.CallNow, or a goroutine of its own", g.set.Position(at.Pos()), strings.Join(by, ", "), what))
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.FuncType:
			for _, p := range n.Params.List {
				if sel, ok := p.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
					refuse(n, "takes a context")
				}
				for _, name := range p.Names {
					params[g.info.Defs[name]] = !x.stored
				}
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Go" || sel.Sel.Name == "AfterFunc") {
				return false
			}
			if name := g.ofWeft(n.Fun); slices.Contains(waits, name) {
				refuse(n, "uses weft."+name)
			}
		case *ast.Ident:
			o := g.object(n)
			if o == nil || o.Pkg() != g.pkg || params[o] || !callable(o.Type()) {
				return true
			}
			bodies := g.bodies[o]
			if fn, ok := o.(*types.Func); ok && fn.Signature().Recv() != nil && types.IsInterface(fn.Signature().Recv().Type()) {
				bodies = g.methods[o.Name()]
			}
			for _, next := range bodies {
				if next.node != node {
					g.walk(next, append(slices.Clone(by), o.Name()))
				}
			}
		}
		return true
	})
}

// callable reports whether a value of a type can be called.
func callable(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// ofWeft returns the name of a function of package weft; empty if it is another.
func (g *graph) ofWeft(fn ast.Expr) string {
	if index, ok := fn.(*ast.IndexExpr); ok {
		fn = index.X
	}
	if sel, ok := fn.(*ast.SelectorExpr); ok {
		if o := g.info.Uses[sel.Sel]; o != nil && o.Pkg() != nil && o.Pkg().Path() == module {
			return o.Name()
		}
	}
	return ""
}
