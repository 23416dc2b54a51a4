package plan

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
	"go.yaml.in/yaml/v3"
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

// converter turns nodes into values and collects what is wrong with them.
type converter struct {
	what     string // they are read for
	mistakes []mistake
}

func (c *converter) fail(line int, format string, args ...any) {
	c.mistakes = append(c.mistakes, mistake{line, fmt.Sprintf(format, args...)})
}

func (c *converter) value(n *yaml.Node, depth int) value {
	v := value{kind: broken, line: n.Line}
	switch {
	case depth > maxDepth:
		c.fail(v.line, "nested too deeply; at most %d levels are allowed", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0:
		c.fail(v.line, "%s", noAnchors(c.what))
	case n.Kind == yaml.MappingNode:
		v.kind, v.entries = mapping, c.entries(n.Content, depth)
	case n.Kind == yaml.SequenceNode:
		v.kind = list
		for _, item := range n.Content {
			v.items = append(v.items, c.value(item, depth+1))
		}
	default:
		v.kind, v.text = scalar(n)
	}
	return v
}

// scalar reads a value that is neither list nor mapping. What a word without
// quotes is, is decided as by those who read the sections of a plan.
func scalar(n *yaml.Node) (kind, string) {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return word, n.Value
	}
	if n.Value == "" {
		return null, ""
	}
	switch token.New(n.Value, n.Value, nil).Type {
	case token.NullType:
		return null, ""
	case token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType, token.FloatType, token.BoolType, token.InfinityType, token.NanType:
		return plain, n.Value
	}
	return word, n.Value
}

// entries reads keys and values, which take turns.
func (c *converter) entries(nodes []*yaml.Node, depth int) (entries []entry) {
	seen := map[string]int{}
	for i := 0; i+1 < len(nodes); i += 2 {
		key := nodes[i]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0 || key.Tag == "!!merge" {
			c.fail(key.Line, "a %s has no anchors, aliases, merge keys, tags or composite keys; write the key itself", c.what)
			continue
		}
		e := entry{key: key.Value, line: key.Line}
		if first, ok := seen[e.key]; ok {
			c.fail(e.line, "key %s is there twice, first on line %d; keep one of them", e.key, first)
			continue
		}
		seen[e.key] = e.line
		if e.value = c.value(nodes[i+1], depth+1); e.value.kind == null {
			e.value.line = e.line
		}
		entries = append(entries, e)
	}
	return entries
}
