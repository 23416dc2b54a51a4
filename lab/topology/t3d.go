package topology

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// LoadT3D reads a network of OSHI's tools, of any of their three generations: a list
// of names and of pairs (2014), or objects by id as their editor Topology3D writes
// them, or lists of objects (Dreamer-Topology-Parser, version 2).
//
// Core and edge nodes become hybrid nodes, switches bridges, customers' edges and
// end users hosts with a gateway, one for each of their links, and the first
// node that a controller is linked to has the controllers' machine. What a file says of
// services is left out; Remarks says so.
func LoadT3D(path string) (*Topology, error) {
	b, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read OSHI's topology: %w", err)
	}
	v, mistakes, ok := document.Read(b, limits())
	if len(mistakes) > 0 {
		return nil, mistakes[0].In(path)
	}
	if !ok || v.Kind != document.Mapping {
		return nil, fmt.Errorf("%s: not a topology of OSHI's tools: want an object with vertices and edges", path)
	}
	return parseT3D(path, v)
}

// isT3D reports whether a document is OSHI's rather than a lab file.
func isT3D(v document.Value) bool {
	_, ok := v.Get("vertices")
	return ok && v.Kind == document.Mapping
}

// t3d collects a topology of OSHI's tools.
type t3d struct {
	file string
	t    *Topology
	role map[string]t3dRole // by id
	name map[string]string  // by id
	used map[string]bool    // names
	left map[string]int     // services that are left out, by what they are
}

type t3dRole int

const (
	t3dNode t3dRole = iota + 1
	t3dBridge
	t3dHost
	t3dController
	t3dIgnored
)

const t3dTypes = "OSHI-CR, OSHI-PE, CE, OF Controller, VS, L2SW, or an id that begins with cro, peo, cer, ctr, vs, swi, mgm, COSHI, AOSHI, EUH, L2SW"

var t3dPrefix = regexp.MustCompile(`^(cro|peo|cer|ctr|vs|swi|mgm|COSHI|AOSHI|EUH|L2SW)`)

// t3dRoleOf returns what a vertex is: by its type or, without one, by its id.
func t3dRoleOf(kind, id string) t3dRole {
	if kind == "" {
		kind = t3dPrefix.FindString(id)
	}
	switch strings.ToLower(kind) {
	case "oshi-cr", "oshi-pe", "cro", "peo", "coshi", "aoshi":
		return t3dNode
	case "l2sw", "swi", "l2 switch":
		return t3dBridge
	case "ce", "cer", "euh":
		return t3dHost
	case "of controller", "ctr":
		return t3dController
	case "vs", "mgm":
		return t3dIgnored
	}
	return 0
}

func parseT3D(path string, v document.Value) (*Topology, error) {
	x := &t3d{
		file: path, t: &Topology{Name: LabName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))), file: path},
		role: map[string]t3dRole{}, name: map[string]string{}, used: map[string]bool{}, left: map[string]int{},
	}
	vertices, _ := v.Get("vertices")
	if err := x.vertices(vertices); err != nil {
		return nil, err
	}
	if edges, ok := v.Get("edges"); ok {
		if err := x.edges(edges); err != nil {
			return nil, err
		}
	}
	for _, what := range []string{"Vll", "PW", "VS", "Control"} {
		if n := x.left[what]; n > 0 {
			x.t.remarks = append(x.t.remarks, fmt.Sprintf("%d links of the view %s were left out: a lab has no services", n, what))
		}
	}
	x.t.Complete()
	if err := Check(x.t); err != nil {
		return nil, err
	}
	return x.t, nil
}

func (x *t3d) fail(line int, format string, args ...any) error {
	return Problem{File: x.file, Line: line, What: document.Wording(format, args...)}
}

func (x *t3d) vertices(v document.Value) error {
	switch v.Kind {
	case document.Mapping:
		for _, e := range v.Entries {
			if err := x.vertex(e.Line, e.Key, e.Value); err != nil {
				return err
			}
		}
	case document.List:
		for _, item := range v.Items {
			id := item
			if item.Kind == document.Mapping {
				id, _ = item.Get("id")
			}
			if !id.Scalar() {
				return x.fail(item.Line, "a vertex is %s: want a name, or an object with an id", kind(item))
			}
			if err := x.vertex(item.Line, id.Text, item); err != nil {
				return err
			}
		}
	default:
		return x.fail(v.Line, "vertices is %s: want a list, or an object", kind(v))
	}
	return nil
}

var t3dLoopback = regexp.MustCompile(`^[0-9]+(\.[0-9]+){3}(/32)?$`)

func (x *t3d) vertex(line int, id string, v document.Value) error {
	if id == "" || x.role[id] != 0 {
		return x.fail(line, "the vertex %q has no name, or stands twice", id)
	}
	info, _ := v.Get("info")
	typed, _ := info.Get("type")
	role := t3dRoleOf(typed.Text, id)
	if role == 0 {
		return x.fail(line, "the vertex %s has an unknown type %q; allowed: %s", id, typed.Text, t3dTypes)
	}
	x.role[id] = role
	name := x.unused(strings.ReplaceAll(id, "#", ""))
	x.name[id] = name
	switch role {
	case t3dNode:
		s := Switch{Name: name, Kind: KindHybrid, line: line}
		property, _ := info.Get("property")
		if a, _ := property.Get("loopback"); t3dLoopback.MatchString(a.Text) {
			var err error
			if s.Loopback, err = parseAddr(strings.TrimSuffix(a.Text, "/32"), "10.255.0.1"); err != nil {
				return x.fail(a.Line, "the vertex %s: loopback: %v", id, err)
			}
		}
		x.t.Switches = append(x.t.Switches, s)
	case t3dBridge:
		x.t.Switches = append(x.t.Switches, Switch{Name: name, Kind: KindBridge, line: line})
	}
	return nil
}

func (x *t3d) unused(wanted string) string {
	base := LabName(wanted)
	name := base
	for n := 2; x.used[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	x.used[name] = true
	return name
}

func (x *t3d) edges(v document.Value) error {
	switch v.Kind {
	case document.Mapping:
		for _, e := range v.Entries {
			a, b, ok := strings.Cut(e.Key, "&&")
			if !ok {
				return x.fail(e.Line, "the edge %q: want two ids joined by &&", e.Key)
			}
			links, ok := e.Value.Get("links")
			if !ok || links.Kind != document.List {
				links = document.Value{Items: []document.Value{e.Value}}
			}
			for _, l := range links.Items {
				if err := x.edge(e.Line, a, b, l); err != nil {
					return err
				}
			}
		}
	case document.List:
		for _, item := range v.Items {
			var a, b document.Value
			switch {
			case item.Kind == document.Mapping:
				a, _ = item.Get("source")
				b, _ = item.Get("target")
			case item.Kind == document.List && len(item.Items) >= 2:
				a, b = item.Items[0], item.Items[1]
			}
			if !a.Scalar() || !b.Scalar() {
				return x.fail(item.Line, "an edge is %s: want the names of its two ends, or an object with source and target", kind(item))
			}
			if err := x.edge(item.Line, a.Text, b.Text, item); err != nil {
				return err
			}
		}
	case document.Null:
	default:
		return x.fail(v.Line, "edges is %s: want a list, or an object", kind(v))
	}
	return nil
}

// edge takes one link.
func (x *t3d) edge(line int, a, b string, v document.Value) error {
	for _, id := range []string{a, b} {
		if x.role[id] == 0 {
			return x.fail(line, "the edge from %s to %s ends at %q, which is no vertex", a, b, id)
		}
	}
	view, _ := v.Get("view")
	if vll, _ := v.Get("vll"); view.Text == "" && vll.Text == "true" {
		view.Text = "Vll"
	}
	if view.Text != "" && view.Text != "Data" {
		x.left[view.Text]++
		return nil
	}
	if x.role[a] > x.role[b] { // nodes before bridges before hosts before controllers
		a, b = b, a
	}
	of, to := x.role[a], x.role[b]
	switch {
	case of == t3dIgnored || to == t3dIgnored:
	case of <= t3dBridge && to <= t3dBridge && a == b:
		x.t.selfLoops = append(x.t.selfLoops, x.name[a])
	case of <= t3dBridge && to <= t3dBridge:
		x.t.Links = append(x.t.Links, Link{A: x.name[a], B: x.name[b], line: line})
	case of == t3dNode && to == t3dController:
		if x.t.Control.At == "" {
			x.t.Control = Control{Mode: ControlInBand, At: x.name[a]}
		}
	case of <= t3dBridge && to == t3dHost:
		x.host(line, x.name[b], x.name[a], of == t3dNode)
	case of == t3dHost && to == t3dHost: // a service, in files without views
		x.left["Vll"]++
	default:
		return x.fail(line, "the edge from %s to %s: a controller is linked to a node", a, b)
	}
	return nil
}

// host attaches a customer's edge; the second one by another name, as a host has
// one interface.
func (x *t3d) host(line int, name, sw string, gateway bool) {
	for _, h := range x.t.Hosts {
		if h.Name == name {
			name = x.unused(name)
			break
		}
	}
	x.t.Hosts = append(x.t.Hosts, Host{Name: name, Switch: sw, Gateway: gateway, line: line})
}
