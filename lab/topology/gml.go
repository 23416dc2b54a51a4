package topology

import (
	"fmt"
	"html"
	"strings"
	"unicode"

	"github.com/weft-sdn/weft/internal/document"
)

// draftGML reads a network in GML (Himsolt, GML: A portable Graph File Format,
// 1997) as the Internet Topology Zoo, NetworkX and yEd write it: nodes become
// switches named by their label, with a host each, edges become links. LinkSpeedRaw
// (bit/s) gives the rate, Latitude and Longitude of both ends the delay. Groups of yEd
// are left out, their nodes are not. It reads at most so many pairs.
func draftGML(path, text string, most int) (*draft, error) {
	r := &gmlReader{path: path, rest: text, line: 1, most: most}
	top, err := r.list(0)
	if err != nil {
		return nil, err
	}
	var n network
	graphs := 0
	groups := map[string]vertex{}
	for _, g := range top {
		if g.key != "graph" {
			continue
		}
		graphs++
		arcs := g.text("directed") == "1"
		for _, e := range g.list {
			switch e.key {
			case "node":
				v := vertex{
					id: e.text("id"), label: e.text("label"), line: e.line,
					latitude: e.text("Latitude"), longitude: e.text("Longitude"),
				}
				for _, drawn := range e.list {
					if drawn.key == "graphics" {
						v.x, v.y = drawn.text("x"), drawn.text("y")
					}
				}
				if e.text("isGroup") == "1" {
					groups[v.id] = v
					continue
				}
				n.nodes = append(n.nodes, v)
			case "edge":
				n.edges = append(n.edges, edge{e.text("source"), e.text("target"), e.text("LinkSpeedRaw"), arcs, e.line})
			}
		}
	}
	n.addLinked(groups)
	if graphs != 1 || len(n.nodes) == 0 {
		return nil, fmt.Errorf("%s: %d graphs with %d nodes; allowed: one graph, with at least one node", path, graphs, len(n.nodes))
	}
	return n.draft(path)
}

// gmlPair is a key with its value: a number or text, or a list.
type gmlPair struct {
	key, value string
	list       []gmlPair
	line       int
}

// text returns the value of a key in a list, empty if it has none.
func (p gmlPair) text(key string) string {
	for _, e := range p.list {
		if e.key == key {
			return e.value
		}
	}
	return ""
}

// gmlReader reads GML from its beginning to its end.
type gmlReader struct {
	path, rest  string
	line, pairs int
	most        int // pairs
}

// gmlDepth is how deep lists may be in lists.
const gmlDepth = 32

// list reads pairs up to the bracket that ends the list, or at depth 0 up to
// the end of the file.
func (r *gmlReader) list(depth int) ([]gmlPair, error) {
	if depth > gmlDepth {
		return nil, r.fail("more than %d lists in one another", gmlDepth)
	}
	var pairs []gmlPair
	for {
		key := r.token()
		switch {
		case key == "" && depth == 0, key == "]" && depth > 0:
			return pairs, nil
		case key == "":
			return nil, r.fail("the file ends inside a list: a ] is missing")
		case !unicode.IsLetter(rune(key[0])):
			return nil, r.fail("%s is not a key, which begins with a letter", document.Quoted(shortened(key)))
		}
		if r.pairs++; r.pairs > r.most {
			return nil, r.fail("more than %d keys", r.most)
		}
		p := gmlPair{key: key, line: r.line}
		switch v := r.token(); {
		case v == "[":
			var err error
			if p.list, err = r.list(depth + 1); err != nil {
				return nil, err
			}
		case v == "", v == "]":
			return nil, r.fail("key %s has no value", shortened(key))
		case v[0] == '"':
			p.value = strings.TrimSpace(html.UnescapeString(strings.Trim(v, `"`)))
		default:
			p.value = v
		}
		pairs = append(pairs, p)
	}
}

// token returns the next word, bracket or quoted text, with its first quote;
// empty at the end of the file.
func (r *gmlReader) token() string {
	for {
		trimmed := strings.TrimLeftFunc(r.rest, unicode.IsSpace)
		r.pass(len(r.rest) - len(trimmed))
		if !strings.HasPrefix(r.rest, "#") {
			break
		}
		end := strings.IndexByte(r.rest, '\n')
		if end < 0 {
			end = len(r.rest)
		}
		r.pass(end)
	}
	if r.rest == "" {
		return ""
	}
	end := 1
	switch r.rest[0] {
	case '[', ']':
	case '"':
		if i := strings.IndexByte(r.rest[1:], '"'); i >= 0 {
			end = i + 2
		} else {
			end = len(r.rest)
		}
	default:
		if end = strings.IndexFunc(r.rest, func(c rune) bool { return unicode.IsSpace(c) || c == '[' || c == ']' }); end < 0 {
			end = len(r.rest)
		}
	}
	return r.pass(end)
}

// pass goes on by n octets and returns them.
func (r *gmlReader) pass(n int) string {
	passed := r.rest[:n]
	r.line += strings.Count(passed, "\n")
	r.rest = r.rest[n:]
	return passed
}

func (r *gmlReader) fail(format string, args ...any) error {
	return Problems{{File: r.path, Line: r.line, What: document.Wording("not GML: "+format, args...)}}
}

// shortened returns the first letters of a text, for messages.
func shortened(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
