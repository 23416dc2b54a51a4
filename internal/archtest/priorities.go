package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// otherPriorities are types whose priorities are not those of flow entries.
var otherPriorities = map[string]string{
	"api.FirewallRule": "an operator's rules have any",
	"unix.SchedAttr":   "the scheduler's",
}

// priorities checks that priorities of flow entries are named in flow/pipeline.go:
// no number is given to, or compared with, what is called a priority.
func (c *check) priorities() {
	numbers := map[string]map[string]bool{} // folder: its constants that are numbers
	for i := range c.files {
		f := &c.files[i]
		for _, decl := range f.syntax.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					v := spec.(*ast.ValueSpec)
					for j, name := range v.Names {
						if numbers[f.dir] == nil {
							numbers[f.dir] = map[string]bool{}
						}
						numbers[f.dir][name.Name] = j < len(v.Values) && number(v.Values[j], nil)
					}
				}
			}
		}
	}
	for i := range c.files {
		f := &c.files[i]
		if f.dir == "flow" || f.test || f.generated {
			continue
		}
		p := &prioritized{constants: numbers[f.dir], places: map[string][]int{}, fail: func(at ast.Node) {
			c.fail(f, at, "has a number for a priority; give it a name in flow/pipeline.go, where no other has it")
		}}
		for j := range c.files {
			if o := &c.files[j]; o.dir == f.dir && !o.test {
				for _, decl := range o.syntax.Decls {
					if d, ok := decl.(*ast.FuncDecl); ok {
						p.places[d.Name.Name] = placesIn(d.Type)
					}
				}
			}
		}
		ast.Inspect(f.syntax, p.look)
	}
}

// prioritized looks for numbers of priorities in one file.
type prioritized struct {
	constants map[string]bool
	places    map[string][]int // of arguments that are priorities, by the function's name
	fail      func(ast.Node)
}

func (p *prioritized) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				p.give(name, n.Values[i])
			}
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Lhs) != len(n.Rhs) {
				break
			}
			p.give(to, n.Rhs[i])
			if name, ok := to.(*ast.Ident); ok {
				if f, ok := n.Rhs[i].(*ast.FuncLit); ok {
					p.places[name.Name] = placesIn(f.Type)
				}
			}
		}
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && !zero(n.Y) {
			p.give(n.X, n.Y)
		}
	case *ast.CompositeLit:
		if otherPriorities[typeOf(n.Type)] != "" {
			return false
		}
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				p.give(pair.Key, pair.Value)
			}
		}
	case *ast.CallExpr:
		for _, i := range p.places[nameIn(n.Fun)] {
			if i < len(n.Args) && number(n.Args[i], p.constants) {
				p.fail(n.Args[i])
			}
		}
	}
	return true
}

// give reports a number that is given to a priority.
func (p *prioritized) give(to, value ast.Expr) {
	if prioritizes(nameIn(to)) && number(value, p.constants) {
		p.fail(value)
	}
}

func prioritizes(name string) bool { return strings.Contains(name, "riority") }

// placesIn returns which parameters of a function are priorities.
func placesIn(f *ast.FuncType) (at []int) {
	n := 0
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			if prioritizes(name.Name) {
				at = append(at, n)
			}
			n++
		}
	}
	return at
}

// typeOf returns the package and name of a type, or of a list's elements.
func typeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ArrayType:
		return typeOf(e.Elt)
	case *ast.StarExpr:
		return typeOf(e.X)
	case *ast.SelectorExpr:
		return nameIn(e.X) + "." + e.Sel.Name
	}
	return ""
}

// nameIn returns the last name of an expression, "" if it has none.
func nameIn(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func zero(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Value == "0"
}

// number reports whether an expression is a number, or a constant of the package
// that is one.
func number(e ast.Expr, constants map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT
	case *ast.Ident:
		return constants[e.Name]
	case *ast.ParenExpr:
		return number(e.X, constants)
	case *ast.BinaryExpr:
		return number(e.X, constants) && number(e.Y, constants)
	case *ast.CallExpr:
		return len(e.Args) == 1 && strings.Contains(nameIn(e.Fun), "int") && number(e.Args[0], constants)
	}
	return false
}
