package topology

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// xmlDepth is how deep elements may be in elements.
const xmlDepth = 64

// element is one of an XML document, with its text and what is in it.
type element struct {
	name       string // without its namespace
	attributes []xml.Attr
	text       []byte
	line       int
	inside     []*element
}

// attribute returns the value of an attribute by its local name; empty if there is none.
func (e *element) attribute(name string) string {
	for _, a := range e.attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all returns the elements of a name in this one.
func (e *element) all(name string) (found []*element) {
	for _, c := range e.inside {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// find returns the first element of a name at any depth; nil if there is none.
func (e *element) find(name string) *element {
	for _, c := range e.inside {
		if c.name == name {
			return c
		}
		if f := c.find(name); f != nil {
			return f
		}
	}
	return nil
}

// readXML reads a document that is in UTF-8, whatever it says of its encoding, with at
// most so many elements.
func readXML(path string, text []byte, most int) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	fail := func(format string, args ...any) error {
		line, _ := d.InputPos()
		return Problem{File: path, Line: line, What: document.Wording("not XML that can be read: "+format, args...)}
	}
	root := &element{}
	open := []*element{root}
	count := 0
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && len(root.inside) == 1:
			return root.inside[0], nil
		case errors.Is(err, io.EOF):
			return nil, fail("it has %d elements at its top, not one", len(root.inside))
		case err != nil:
			return nil, fail("%v", err)
		}
		in := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if count++; count > most {
				return nil, fail("more than %d elements", most)
			}
			if len(open) > xmlDepth {
				return nil, fail("more than %d elements in one another", xmlDepth)
			}
			line, _ := d.InputPos()
			e := &element{name: t.Name.Local, attributes: t.Attr, line: line}
			in.inside = append(in.inside, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			in.text = append(in.text, t...)
		}
	}
}

// graphML collects the nodes and edges of a document, of groups as well.
type graphML struct {
	path   string
	keys   map[string]graphMLKey // by id
	usual  map[graphMLKey]string // of elements that do not say
	out    network
	groups map[string]vertex
}

// graphMLKey is what data is of, "all" or an element, and its name, in lower case.
type graphMLKey struct{ of, name string }

// draftGraphML reads a network in GraphML as yEd, NetworkX and the Internet Topology
// Zoo write it, with at most so many elements; see draftGML.
func draftGraphML(path string, text []byte, most int) (*draft, error) {
	root, err := readXML(path, text, most)
	if err != nil {
		return nil, err
	}
	if root.name != "graphml" {
		return nil, Problem{File: path, Line: root.line, What: document.Wording("XML of %q; allowed: graphml", root.name)}
	}
	g := graphML{path: path, keys: map[string]graphMLKey{}, usual: map[graphMLKey]string{}, groups: map[string]vertex{}}
	for _, k := range root.all("key") {
		key := graphMLKey{cmp.Or(k.attribute("for"), "all"), strings.ToLower(k.attribute("attr.name"))}
		g.keys[k.attribute("id")] = key
		if d := k.find("default"); d != nil {
			g.usual[key] = trimmed(d)
		}
	}
	graphs := root.all("graph")
	if len(graphs) != 1 {
		return nil, Problem{File: path, Line: root.line, What: document.Wording("%d graphs; allowed: one, with at least one node", len(graphs))}
	}
	if top := g.value(graphs[0], "graph", "weft"); top != "" {
		return g.loom(graphs[0], top)
	}
	if err := g.graph(graphs[0]); err != nil {
		return nil, err
	}
	g.out.addLinked(g.groups)
	if len(g.out.nodes) == 0 {
		return nil, Problem{File: path, Line: graphs[0].line, What: "a graph without nodes; allowed: one graph, with at least one node"}
	}
	return g.out.draft(path)
}

// value returns the data of an element by its key's name in lower case, or what the
// key says for those without; of is what the element is.
func (g *graphML) value(e *element, of, name string) string {
	own, every := graphMLKey{of, name}, graphMLKey{"all", name}
	for _, d := range e.inside {
		if k := g.keys[d.attribute("key")]; d.name == "data" && (k == own || k == every) {
			return trimmed(d)
		}
	}
	return cmp.Or(g.usual[own], g.usual[every])
}

// trimmed is the text of an element.
func trimmed(e *element) string { return string(bytes.TrimSpace(e.text)) }

// drawn returns the data of an element that an editor draws it by: an element of yEd.
func drawn(e *element, name string) *element {
	for _, d := range e.all("data") {
		if f := d.find(name); f != nil {
			return f
		}
	}
	return nil
}

func (g *graphML) graph(e *element) error {
	arcs := e.attribute("edgedefault") == "directed"
	for _, c := range e.inside {
		switch c.name {
		case "node":
			if err := g.node(c); err != nil {
				return err
			}
		case "edge":
			g.edge(c, arcs)
		case "hyperedge":
			return Problem{File: g.path, Line: c.line, What: "a hyperedge; allowed: edges, of two ends each"}
		}
	}
	return nil
}

func (g *graphML) node(e *element) error {
	v := vertex{
		id: e.attribute("id"), label: g.value(e, "node", "label"), line: e.line,
		latitude: g.value(e, "node", "latitude"), longitude: g.value(e, "node", "longitude"),
		x: g.value(e, "node", "x"), y: g.value(e, "node", "y"),
	}
	if label := drawn(e, "NodeLabel"); label != nil && v.label == "" {
		v.label = strings.Join(strings.Fields(string(label.text)), " ")
	}
	if v.label == "" {
		v.label = g.value(e, "node", "name")
	}
	if at := drawn(e, "Geometry"); at != nil && v.x == "" {
		v.x, v.y = at.attribute("x"), at.attribute("y")
	}
	nested := e.all("graph")
	if len(nested) == 0 {
		g.out.nodes = append(g.out.nodes, v)
		return nil
	}
	g.groups[v.id] = v
	for _, n := range nested {
		if err := g.graph(n); err != nil {
			return err
		}
	}
	return nil
}

// edge takes an edge. One that an editor draws without arrows has no direction,
// whatever is usual in the graph, and neither has one with two.
func (g *graphML) edge(e *element, arc bool) {
	if own := e.attribute("directed"); own != "" {
		arc = own == "true"
	}
	if a := drawn(e, "Arrows"); a != nil && (a.attribute("source") == "none") == (a.attribute("target") == "none") {
		arc = false
	}
	g.out.edges = append(g.out.edges, edge{e.attribute("source"), e.attribute("target"), g.value(e, "edge", "linkspeedraw"), arc, e.line})
}
