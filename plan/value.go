package plan

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Plans come from outside, and the parser's time grows with the square of what
// it is given. A thousand workers take a third of this.
const (
	maxText  = 256 << 10 // octets
	maxLines = 10_000
	maxDepth = 32 // of values within values
)

// kind says what a value is.
type kind int

const (
	broken kind = iota // cannot be read, which is reported
	null
	plain   // a number or a truth value, as it is written
	word    // a string
	list    //
	mapping //
)

func (k kind) String() string {
	return [...]string{"what cannot be read", "nothing", "a value", "text", "a list", "keys with values"}[k]
}

// value is one value of a YAML document.
type value struct {
	kind    kind
	line    int
	text    string // of a plain value or text
	items   []value
	entries []entry
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	line  int
	value value
}

// mistake is something wrong in a text; line 0 is of no line.
type mistake struct {
	line int
	text string
}

// document reads a text of one YAML document; a mistake that leaves nothing to
// look at comes alone, with false.
func document(src []byte) (value, []mistake, bool) { return documentOf("plan", src) }

// documentOf is document for a text that messages call what.
func documentOf(what string, src []byte) (value, []mistake, bool) {
	if len(src) > maxText {
		return value{}, []mistake{{0, fmt.Sprintf("%d octets; a %s has at most %d", len(src), what, maxText)}}, false
	}
	if n := bytes.Count(src, []byte("\n")); n > maxLines {
		return value{}, []mistake{{0, fmt.Sprintf("%d lines; a %s has at most %d", n, what, maxLines)}}, false
	}
	if !utf8.Valid(src) {
		return value{}, []mistake{{0, "not text in UTF-8; write it so"}}, false
	}
	if line := tooDeep(src); line > 0 {
		return value{}, []mistake{{line, fmt.Sprintf("nested too deeply; at most %d levels are allowed", maxDepth)}}, false
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if e := yaml.Error(nil); errors.As(err, &e) && e.GetToken() != nil {
			return value{}, []mistake{{e.GetToken().Position.Line, "not well-formed YAML: " + e.GetMessage()}}, false
		}
		return value{}, []mistake{{0, "not well-formed YAML: " + err.Error()}}, false
	}
	switch {
	case len(file.Docs) == 0 || len(file.Docs) == 1 && file.Docs[0].Body == nil:
		return value{kind: null}, nil, true
	case len(file.Docs) > 1:
		return value{}, []mistake{{0, fmt.Sprintf("%d YAML documents; put everything into one (take out the lines ---)", len(file.Docs))}}, false
	}
	c := &converter{what: what}
	v := c.value(file.Docs[0].Body, 0)
	return v, c.mistakes, true
}

// tooDeep returns the line at which brackets, or dashes on one line, nest deeper
// than in any plan; 0 if they do not.
func tooDeep(src []byte) int {
	brackets, line := 0, 1
	for text := range bytes.Lines(src) {
		dashes := 0
		for _, word := range bytes.Fields(text) {
			if len(word) != 1 || !bytes.Contains([]byte("-?:"), word) {
				break
			}
			dashes++
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				brackets++
			case ']', '}':
				brackets = max(brackets-1, 0)
			}
			if brackets > 4*maxDepth { // some may stand in texts
				return line
			}
		}
		if dashes > maxDepth {
			return line
		}
		line++
	}
	return 0
}

// converter turns nodes into values and collects what is wrong with them.
type converter struct {
	what     string // they are read for
	mistakes []mistake
}

func (c *converter) fail(line int, format string, args ...any) {
	c.mistakes = append(c.mistakes, mistake{line, fmt.Sprintf(format, args...)})
}

func (c *converter) value(n ast.Node, depth int) value {
	v := value{kind: broken, line: lineOf(n)}
	if depth > maxDepth {
		c.fail(v.line, "nested too deeply; at most %d levels are allowed", maxDepth)
		return v
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		v.kind = null
	case *ast.MappingNode:
		v.kind = mapping
		v.entries = c.entries(n.Values, depth)
	case *ast.MappingValueNode:
		v.kind = mapping
		v.entries = c.entries([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		v.kind = list
		for _, item := range n.Values {
			if one := c.value(item, depth+1); one.kind != broken {
				v.items = append(v.items, one)
			}
		}
	case *ast.StringNode:
		v.kind, v.text = word, n.Value
	case *ast.LiteralNode:
		v.kind = word
		if n.Value != nil {
			v.text = n.Value.Value
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		v.kind, v.text = plain, n.GetToken().Value
	default:
		c.fail(v.line, "a %s has no anchors, aliases, merge keys or tags; write the value itself", c.what)
	}
	return v
}

func (c *converter) entries(nodes []*ast.MappingValueNode, depth int) (entries []entry) {
	seen := map[string]int{}
	for _, n := range nodes {
		e := entry{}
		switch key := n.Key.(type) {
		case *ast.StringNode:
			e.key, e.line = key.Value, lineOf(key)
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			e.key, e.line = key.GetToken().Value, lineOf(key)
		default:
			c.fail(lineOf(n), "a %s has no anchors, aliases, merge keys, tags or composite keys; write the key itself", c.what)
			continue
		}
		if first, ok := seen[e.key]; ok {
			c.fail(e.line, "key %s is there twice, first on line %d; keep one of them", e.key, first)
			continue
		}
		seen[e.key] = e.line
		e.value = c.value(n.Value, depth+1)
		switch e.value.kind {
		case broken:
			continue
		case null:
			e.value.line = e.line
		}
		entries = append(entries, e)
	}
	return entries
}

// lineOf returns the line of a node, 0 if it has none.
func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && m.Start != nil && m.Start.Type != token.MappingStartType {
		return lineOf(m.Values[0].Key)
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return lineOf(m.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}
