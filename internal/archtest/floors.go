package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"slices"
)

// mostMethods bounds the methods of a type. What has more owns several states: each can be a
// type of its own.
const mostMethods = 40

// fewUpward is how many references upwards a package may have whatever its size.
const fewUpward = 3

// Floors returns every type of the tree that has too many methods, and every package whose
// files do not lie on floors: of the references from file to file at most a tenth may lead
// upwards. In unneeded are the exceptions that no longer are.
func Floors(root fs.FS) (breaches, unneeded []string, err error) {
	files, err := load(root)
	if err != nil {
		return nil, nil, err
	}
	c := &check{files: files}
	unneeded = c.floors()
	slices.Sort(c.breaches)
	slices.Sort(unneeded)
	return c.breaches, unneeded, nil
}

func (c *check) floors() (unneeded []string) {
	b := building{byDir: map[string][]*file{}, checked: map[string]*types.Package{}, arrows: map[string]map[arrow]bool{}}
	for i := range c.files {
		if f := &c.files[i]; !f.test {
			b.byDir[f.dir] = append(b.byDir[f.dir], f)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(b.byDir)) {
		files := slices.DeleteFunc(slices.Clone(b.byDir[dir]), func(f *file) bool { return f.generated })
		if len(files) == 0 {
			continue
		}
		unneeded = append(unneeded, c.methods(dir, files)...)
		b.load(dir)
		up := upward(files, b.arrows[dir])
		all := len(b.arrows[dir])
		allowed := max(fewUpward, all/10, tangled[dir])
		switch {
		case up > allowed:
			c.fail(files[0], nil, "of the %d references between files of %s, %d lead upwards, and at most %d may; let each file use those below it, or make what several need a file or a package of its own", all, dir, up, allowed)
		case tangled[dir] > 0 && up <= max(fewUpward, all/10):
			unneeded = append(unneeded, dir)
		}
	}
	return unneeded
}

// methods counts the methods of each type of a package.
func (c *check) methods(dir string, files []*file) (unneeded []string) {
	count, at := map[string]int{}, map[string]*file{}
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				name := receiver(d.Recv.List[0].Type)
				count[name]++
				if at[name] == nil {
					at[name] = f
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		is := dir + "." + name
		switch allowed := max(mostMethods, crowded[is]); {
		case count[name] > allowed:
			c.fail(at[name], nil, "%s has %d methods, and at most %d are allowed; let types that own a part of its state have them", is, count[name], allowed)
		case crowded[is] > 0 && count[name] <= mostMethods:
			unneeded = append(unneeded, is)
		}
	}
	return unneeded
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// arrow is a reference from a file to another of its package.
type arrow struct{ from, to string }

// building is the packages of the module, checked as far as the module's own code goes: what
// other modules declare stays unknown.
type building struct {
	byDir   map[string][]*file
	checked map[string]*types.Package
	arrows  map[string]map[arrow]bool // by folder
}

// Import returns a package of this module to the type checker.
func (b *building) Import(importPath string) (*types.Package, error) {
	if dir, ok := within(importPath); ok && len(b.byDir[dir]) > 0 {
		return b.load(dir), nil
	}
	return nil, fmt.Errorf("%s is not of this module", importPath)
}

// load checks a package and collects its arrows.
func (b *building) load(dir string) *types.Package {
	if p := b.checked[dir]; p != nil {
		return p
	}
	positions := b.byDir[dir][0].positions
	var syntax []*ast.File
	by := map[*token.File]*file{}
	for _, f := range b.byDir[dir] {
		if f.syntax.Name.Name == b.byDir[dir][0].syntax.Name.Name {
			syntax = append(syntax, f.syntax)
			by[positions.File(f.syntax.Package)] = f
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: b, Error: func(error) {}}
	p, _ := conf.Check(dir, positions, syntax, info) // what it does not find is of other modules
	b.checked[dir] = p
	b.arrows[dir] = map[arrow]bool{}
	for id, o := range info.Uses {
		if o.Pkg() != p || !o.Pos().IsValid() || o.Parent() != p.Scope() && !member(o) {
			continue
		}
		from, to := by[positions.File(id.Pos())], by[positions.File(o.Pos())]
		if from != nil && to != nil && from != to && !from.generated && !to.generated {
			b.arrows[dir][arrow{from.path, to.path}] = true
		}
	}
	return p
}

// member reports whether an object is a field or a method.
func member(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return o.Signature().Recv() != nil
	}
	return false
}

// upward returns how many arrows lead upwards if the files are stacked as well as moving
// single files can achieve.
func upward(files []*file, arrows map[arrow]bool) int {
	order := make([]string, len(files)) // the highest first
	for i, f := range files {
		order[i] = f.path
	}
	slices.Sort(order)
	for improved := true; improved; {
		improved = false
		for _, name := range slices.Sorted(slices.Values(order)) {
			at := slices.Index(order, name)
			others := slices.Delete(slices.Clone(order), at, at+1)
			cost := 0 // of name on top: what others refer to it leads upwards
			for _, o := range others {
				if arrows[arrow{o, name}] {
					cost++
				}
			}
			best, place, now := cost, 0, cost
			for i, o := range others {
				if arrows[arrow{o, name}] {
					cost--
				}
				if arrows[arrow{name, o}] {
					cost++
				}
				if cost < best {
					best, place = cost, i+1
				}
				if i+1 == at {
					now = cost
				}
			}
			if best < now {
				order, improved = slices.Insert(others, place, name), true
			}
		}
	}
	up := 0
	for i, low := range order {
		for _, high := range order[:i] {
			if arrows[arrow{low, high}] {
				up++
			}
		}
	}
	return up
}
