package document

import (
	"cmp"

	"go.yaml.in/yaml/v3"
)

// maxMistakes bounds the mistakes of a text that are looked for.
const maxMistakes = 1000

// converter converts nodes to values and collects mistakes.
type converter struct {
	limits   Limits
	aliased  int // number of values behind aliases
	inAlias  int // number of enclosing aliases
	deep     int // first line with too deep nesting
	mistakes []Mistake
}

func (c *converter) fail(line int, format string, args ...any) {
	if len(c.mistakes) >= maxMistakes {
		return
	}
	m := Mistake{line, Wording(format, args...)}
	if n := len(c.mistakes); n == 0 || c.mistakes[n-1] != m { // aliases may repeat it
		c.mistakes = append(c.mistakes, m)
	}
}

func (c *converter) value(n *yaml.Node, depth int) Value {
	v := Value{Kind: Broken, Line: n.Line}
	if c.inAlias > 0 {
		c.aliased++
	}
	switch {
	case depth > maxDepth:
		c.deep = cmp.Or(c.deep, v.Line)
	case c.limits.Aliases == 0 && (n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0):
		c.fail(v.Line, "%s", c.limits.noAnchors())
	case n.Kind == yaml.AliasNode:
		return c.alias(n, depth)
	case n.Kind == yaml.MappingNode:
		v.Kind, v.Entries = Mapping, c.entries(n.Content, depth)
	case n.Kind == yaml.SequenceNode:
		v.Kind = List
		for _, item := range n.Content {
			v.Items = append(v.Items, c.value(item, depth+1))
		}
	default:
		v.Kind, v.Text = scalar(n)
	}
	return v
}

// alias returns a copy of an alias's value, on the alias's line. Aliases of
// aliases multiply, so it counts the copied values.
func (c *converter) alias(n *yaml.Node, depth int) Value {
	if c.aliased > c.limits.Aliases {
		return Value{Kind: Broken, Line: n.Line} // which is reported as a mistake
	}
	c.inAlias++
	v := c.value(n.Alias, depth+1) // an alias within its own value ends by its depth
	if c.inAlias--; c.inAlias == 0 && c.aliased > c.limits.Aliases {
		c.fail(n.Line, "aliases stand for more than %d values; write the values themselves", c.limits.Aliases)
	}
	v.Line = n.Line
	return v
}

// scalar reads a value that is neither list nor mapping.
func scalar(n *yaml.Node) (Kind, string) {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return Word, n.Value
	}
	switch n.Tag {
	case "!!null":
		return Null, ""
	case "!!int", "!!float", "!!bool":
		return Plain, n.Value
	}
	return Word, n.Value
}

// entries reads keys and values, which alternate.
func (c *converter) entries(nodes []*yaml.Node, depth int) (entries []Entry) {
	seen := map[string]int{}
	for i := 0; i+1 < len(nodes); i += 2 {
		key := nodes[i]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0 || key.Tag == "!!merge" {
			c.fail(key.Line, "%s", c.limits.noSuchKey())
			continue
		}
		e := Entry{Key: key.Value, Line: key.Line}
		if first, ok := seen[e.Key]; ok {
			c.fail(e.Line, "key %s is there twice, first on line %d; keep one of them", e.Key, first)
			continue
		}
		seen[e.Key] = e.Line
		if e.Value = c.value(nodes[i+1], depth+1); e.Value.Kind == Null {
			e.Value.Line = e.Line
		}
		entries = append(entries, e)
	}
	return entries
}
