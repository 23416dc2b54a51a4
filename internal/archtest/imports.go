package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// inside checks an import of a package of this module.
func (c *check) inside(f *file, r row, spec *ast.ImportSpec, dir string) {
	switch {
	case dir == f.dir: // a test of the package from outside
	case strings.HasPrefix(dir, "bench/") && !strings.HasPrefix(f.dir, "bench/"):
		c.fail(f, spec, "imports %s; bench is a module of its own, which requires this one and not the other way: move what both need out of bench", dir)
	case f.test && slices.Contains(helpers, dir):
	case slices.Contains(suites, dir):
		if !f.test && !slices.Contains(suites, f.dir) && !strings.HasPrefix(path.Base(f.dir), "oftest") {
			c.fail(f, spec, "imports %s, which is made for tests; import it in _test.go files only", dir)
		}
	case strings.HasPrefix(f.dir, "services/") && strings.HasPrefix(dir, "services") && !lends(f.dir, dir):
		c.fail(f, spec, "imports %s; a service never imports another: call its methods or subscribe to its events, declared in api", dir)
	case strings.HasPrefix(f.dir, "cmd/weft") && runs(dir) && !f.test && !slices.Contains(starters, f.dir):
		c.fail(f, spec, "imports %s; a subcommand talks to a running controller by the northbound API only; those that start one are %s",
			dir, strings.Join(starters, " and "))
	case !matches(r.inside, dir):
		c.fail(f, spec, "imports %s, but %s may import only %s; move the code, or pass what it needs as an argument", nameOf(dir), nameOf(f.dir), list(r.inside))
	case dir == "." && strings.HasPrefix(f.dir, "services/") && !f.test && path.Base(f.path) != "service.go":
		c.fail(f, spec, "imports weft; only service.go of a service does: declare here the interface that the logic needs, and pass it in from service.go")
	}
}

// templates checks that what weft links has no templates.
func (c *check) templates(f *file, spec *ast.ImportSpec, p string) {
	if (p == "text/template" || p == "html/template") && !f.test && !strings.HasPrefix(f.dir, "bench/") {
		c.fail(f, spec, "imports %s; the linker keeps all methods of all types in a program that has templates, of weft 13 MB: write the text by fmt", p)
	}
}

// outside checks an import of a package of another module.
func (c *check) outside(f *file, r row, spec *ast.ImportSpec, p string) {
	for _, k := range keepers {
		if strings.HasPrefix(p, k.prefix) && !slices.Contains(k.dirs, f.dir) && !f.test {
			c.fail(f, spec, "imports %s; only %s does: %s", p, strings.Join(k.dirs, " and "), k.instead)
			return
		}
	}
	if f.test || slices.Contains(r.outside, "*") || slices.ContainsFunc(r.outside, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
		return
	}
	c.fail(f, spec, "imports %s, but of other modules %s may import only %s; use the standard library, or move the code", p, nameOf(f.dir), list(r.outside))
}

// lends reports whether a service has machinery that another may use: the
// southbound its sessions, for the intake.
func lends(to, from string) bool {
	return to == "services/intake" && from == "services/southbound" || strings.HasPrefix(from, to+"/") || path.Dir(to) != "services" && path.Dir(from) == path.Dir(to)
}

// runs reports whether a package is needed only to run services.
func runs(dir string) bool {
	return dir == "deploy" || dir == "deploy/local" || dir == "deploy/members" || dir == "deploy/packets" || dir == "bus" || strings.HasPrefix(dir, "services") || strings.HasPrefix(dir, "transport")
}

func matches(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, dir)
		return ok && err == nil
	})
}

// nameOf returns how a folder is called in messages.
func nameOf(dir string) string {
	if dir == "." {
		return "weft"
	}
	return dir
}

func list(patterns []string) string {
	if len(patterns) == 0 {
		return "the standard library"
	}
	names := make([]string, len(patterns))
	for i, p := range patterns {
		names[i] = nameOf(p)
	}
	return strings.Join(names, ", ")
}
