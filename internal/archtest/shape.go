package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// vague are names that say nothing of what a package is.
var vague = []string{"util", "utils", "common", "types", "base", "helper", "helpers", "manager", "misc", "shared"}

// globals checks that nothing happens merely because a package is imported, and
// that packages have no state of their own to guard.
func (c *check) globals() {
	for i := range c.files {
		f := &c.files[i]
		if f.generated {
			continue
		}
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == "init" {
					c.fail(f, decl, "has an init function; do this in a constructor that somebody calls")
				}
			case *ast.GenDecl:
				c.guards(f, decl)
			}
		}
		for _, spec := range f.syntax.Imports {
			if spec.Name != nil && spec.Name.Name == "_" {
				c.fail(f, spec, "imports %s for its side effects; call what you need of it (of embed, use embed.FS)", imported(spec))
			}
		}
		if f.lines >= maxLines {
			c.fail(f, nil, "has %d lines; files stay below %d: move one of its concepts into a file of its own", f.lines, maxLines)
		}
	}
}

// guards checks that no variable of a package is a lock or a counter.
func (c *check) guards(f *file, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || f.test {
			continue
		}
		t, ok := v.Type.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		of, ok := t.X.(*ast.Ident)
		if !ok || of.Name != "sync" && of.Name != "atomic" || t.Sel.Name == "Pool" {
			continue
		}
		for _, name := range v.Names {
			if at := f.dir + "." + name.Name; guarded[at] == "" {
				c.fail(f, name, "has the variable %s of type %s.%s, so the package has state; let a value that somebody makes own it", name.Name, of.Name, t.Sel.Name)
			}
		}
	}
}

// packages checks names and comments of packages.
func (c *check) packages() {
	documented := map[string]bool{}
	first := map[string]*file{}
	for i := range c.files {
		f := &c.files[i]
		if slices.Contains(vague, f.syntax.Name.Name) || slices.Contains(vague, path.Base(f.dir)) {
			c.fail(f, f.syntax.Name, "package %s: the name says nothing; name it after what it is", f.syntax.Name.Name)
		}
		if f.test {
			continue
		}
		if first[f.dir] == nil {
			first[f.dir] = f
		}
		if doc := f.syntax.Doc.Text(); strings.TrimSpace(doc) != "" {
			documented[f.dir] = true
			if name := f.syntax.Name.Name; name != "main" && !strings.HasPrefix(doc, "Package "+name+" ") {
				c.fail(f, f.syntax.Name, "the package comment does not begin with \"Package %s \"; begin it so", name)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(first)) {
		if !documented[dir] {
			c.fail(first[dir], nil, "package %s has no comment; say above one of its package clauses what it is and who may import it", nameOf(dir))
		}
	}
}

// services checks that a service's folder looks like all others and that
// services.go lists it.
func (c *check) services() {
	spec := map[string]bool{}    // folder: its service.go declares Spec
	sample := map[string]*file{} // a file of each service, to report at
	listed := map[string]bool{}
	var list *file
	for i := range c.files {
		f := &c.files[i]
		switch {
		case f.path == "services/services.go":
			list = f
			listed = specsIn(f)
		case path.Dir(f.dir) == "services" && !f.test:
			name := path.Base(f.dir)
			sample[name] = f
			if f.syntax.Name.Name != name {
				c.fail(f, f.syntax.Name, "package %s in folder %s; a service's package has the name of its folder", f.syntax.Name.Name, name)
			}
			if path.Base(f.path) == "service.go" && declaresSpec(f.syntax) {
				spec[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sample)) {
		if !spec[name] {
			c.fail(sample[name], nil, "service %s has no service.go that declares Spec, a variable or a function; add it", name)
		}
		if !listed[name] {
			where := sample[name]
			if list != nil {
				where = list
			}
			c.fail(where, nil, "services/services.go does not list service %s; add %s.Spec to it", name, name)
		}
	}
}

// declaresSpec reports whether a file declares var Spec or func Spec.
func declaresSpec(f *ast.File) bool {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "Spec" {
				return true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR && v.Names[0].Name == "Spec" {
					return true
				}
			}
		}
	}
	return false
}

// specsIn returns the services whose Spec a file mentions.
func specsIn(f *file) map[string]bool {
	packages := map[string]string{} // name in the file: folder
	for _, spec := range f.syntax.Imports {
		if dir, ok := within(imported(spec)); ok && path.Dir(dir) == "services" {
			name := path.Base(dir)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			packages[name] = path.Base(dir)
		}
	}
	found := map[string]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Spec" {
			if x, ok := sel.X.(*ast.Ident); ok && packages[x.Name] != "" {
				found[packages[x.Name]] = true
			}
		}
		return true
	})
	return found
}
