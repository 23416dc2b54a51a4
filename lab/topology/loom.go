package topology

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/internal/document"
)

// loom returns the draft of a graph that Loom wrote: it has the values of a lab file as
// JSON, of the lab, of each node and of each link, as data named weft.
func (g *graphML) loom(graph *element, top string) (*draft, error) {
	d := newDraft(g.path, "")
	fields, err := d.json(graph.line, top)
	if err != nil {
		return nil, err
	}
	d.top = fields
	for _, e := range graph.inside {
		switch e.name {
		case "node":
			fields, err := d.json(e.line, g.value(e, "node", "weft"))
			if err != nil {
				return nil, err
			}
			if x, y, ok := coordinates(g.value(e, "node", "x"), g.value(e, "node", "y")); ok {
				fields = append(fields, place(e.line, x, y))
			}
			node := mapping(e.line, with(fields, entry(e.line, "name", e.attribute("id")))...)
			if g.value(e, "node", "list") == "hosts" {
				d.hosts = append(d.hosts, node)
			} else {
				d.switches = append(d.switches, node)
			}
		case "edge":
			if g.value(e, "edge", "of") == "host" { // the host says so
				continue
			}
			fields, err := d.json(e.line, g.value(e, "edge", "weft"))
			if err != nil {
				return nil, err
			}
			fields = with(with(fields, entry(e.line, "b", e.attribute("target"))), entry(e.line, "a", e.attribute("source")))
			d.links = append(d.links, mapping(e.line, fields...))
		}
	}
	return d, nil
}

// json reads an object that stands in a file of another form, on a line of it.
func (d *draft) json(line int, text string) ([]document.Entry, error) {
	limits := limits()
	limits.Aliases = 0
	v, mistakes, ok := document.Read([]byte(cmp.Or(text, "{}")), limits)
	if !ok || len(mistakes) > 0 || v.Kind != document.Mapping {
		return nil, d.fail(line, "what Loom wrote as weft is no object of JSON")
	}
	return at(line, v).Entries, nil
}

// at returns a value as if all of it stood on a line.
func at(line int, v document.Value) document.Value {
	v.Line = line
	for i := range v.Items {
		v.Items[i] = at(line, v.Items[i])
	}
	for i := range v.Entries {
		v.Entries[i].Line, v.Entries[i].Value = line, at(line, v.Entries[i].Value)
	}
	return v
}

// with returns entries with another before them, unless they have its key.
func with(entries []document.Entry, e document.Entry) []document.Entry {
	for _, other := range entries {
		if other.Key == e.Key {
			return entries
		}
	}
	return append([]document.Entry{e}, entries...)
}

// loomLabel returns what Loom has written of a part of a topology of containerlab, as
// the label weft; nil if there is none.
func (c *clab) loomLabel(of document.Value) ([]document.Entry, error) {
	labels, _ := of.Get("labels")
	label, ok := labels.Get("weft")
	if !ok {
		return nil, nil
	}
	fields, err := c.json(label.Line, label.Text)
	return append([]document.Entry{}, fields...), err
}

// without returns entries but those of some keys.
func without(entries []document.Entry, keys ...string) []document.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e document.Entry) bool { return slices.Contains(keys, e.Key) })
}

// loomNode adds a node that Loom wrote.
func (c *clab) loomNode(n *clabNode) {
	node := mapping(n.line, with(without(n.own, "list", "made"), entry(n.line, "name", n.id))...)
	name, _ := node.Get("name")
	n.name, n.attached = name.Text, true
	c.names[n.name] = 1
	if n.role == StandHost {
		c.hosts = append(c.hosts, node)
	} else {
		c.switches = append(c.switches, node)
	}
}

// loomRole is what a node is that Loom wrote.
func loomRole(own document.Value) StandIn {
	if list, _ := own.Get("list"); list.Text == "hosts" {
		return StandHost
	}
	kind, _ := own.Get("kind")
	return StandIn(cmp.Or(kind.Text, string(KindOpenFlow)))
}
