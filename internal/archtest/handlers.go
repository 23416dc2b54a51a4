package archtest

import (
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// network is the events that package nib makes a snapshot of.
var network = []string{
	"SwitchChangedEvent", "PortChangedEvent", "PortRoleChangedEvent", "LinkChangedEvent",
	"HostChangedEvent", "SegmentChangedEvent", "NodeChangedEvent", "TunnelPortChangedEvent",
}

// handlers is how many handlers of events of the network each service still has.
// The numbers may only fall: a service reads the network by weft.OnChange.
var handlers = map[string]int{"discovery": 2, "flowrules": 1, "forwarding": 7, "hosts": 4, "paths": 2}

// Handlers compares the handlers of events of the network that services have
// with the numbers that they may have, and returns the differences.
func Handlers(root fs.FS) ([]string, error) {
	files, err := load(root)
	if err != nil {
		return nil, err
	}
	c := &check{files: files}
	c.handlers()
	return c.breaches, nil
}

func (c *check) handlers() {
	count, first := map[string]int{}, map[string]*file{}
	for i := range c.files {
		f := &c.files[i]
		service, ok := strings.CutPrefix(f.dir, "services/")
		if !ok || f.test {
			continue
		}
		service, _, _ = strings.Cut(service, "/")
		if first[service] == nil {
			first[service] = f
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) >= 2 && selected(call.Fun, "weft") == "On" && slices.Contains(network, selected(call.Args[1], "api")) {
				count[service]++
			}
			return true
		})
	}
	for _, service := range slices.Sorted(maps.Keys(first)) {
		switch n, most := count[service], handlers[service]; {
		case n > most:
			c.fail(first[service], nil, "service %s has %d handlers of events of the network, and may have %d; read the network by weft.OnChange", service, n, most)
		case n < most:
			c.fail(first[service], nil, "service %s has %d handlers of events of the network; lower its number in internal/archtest/handlers.go from %d", service, n, most)
		}
	}
}

// selected returns the name that is selected from a package, empty if e is not
// that.
func selected(e ast.Expr, pkg string) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != pkg {
		return ""
	}
	return s.Sel.Name
}
