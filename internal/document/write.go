package document

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// bare are texts that need no quotes, wherever they stand.
var bare = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@-]*$`)

// spoken are words that YAML, or an older version of it, does not read as text.
var spoken = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// Quoted returns a text in YAML, with quotes if necessary.
func Quoted(s string) string {
	if bare.MatchString(s) && !slices.Contains(spoken, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}

// scalar returns the YAML of a value that is neither list nor mapping.
func (v Value) scalar() string {
	switch v.Kind {
	case Null:
		return "null"
	case Plain:
		return v.Text
	}
	return Quoted(v.Text)
}

// Flow returns the value on one line.
func (v Value) Flow() string {
	var parts []string
	switch v.Kind {
	case List:
		for _, item := range v.Items {
			parts = append(parts, item.Flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Mapping:
		for _, e := range v.Entries {
			parts = append(parts, Quoted(e.Key)+": "+e.Value.Flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v.scalar()
}

// block writes the entries of a mapping, one per line: mappings below their
// keys, lists of mappings with one mapping per line, everything else behind its
// key.
func (v Value) block(b *strings.Builder, indent string) {
	for _, e := range v.Entries {
		b.WriteString(indent + Quoted(e.Key) + ":")
		switch {
		case e.Value.Kind == Mapping && len(e.Value.Entries) > 0:
			b.WriteString("\n")
			e.Value.block(b, indent+"  ")
		case e.Value.Kind == List && slices.ContainsFunc(e.Value.Items, func(i Value) bool { return i.Kind == Mapping }):
			b.WriteString("\n")
			for _, item := range e.Value.Items {
				b.WriteString(indent + "  - " + item.Flow() + "\n")
			}
		default:
			b.WriteString(" " + e.Value.Flow() + "\n")
		}
	}
}

// YAML returns a mapping as a document for Read. Equal mappings have equal
// texts.
func (v Value) YAML() []byte {
	var b strings.Builder
	if v.block(&b, ""); b.Len() == 0 {
		return []byte("{}\n")
	}
	return []byte(b.String())
}

// Located returns the YAML of a mapping with every value on its original line,
// for reports of mistakes.
func (v Value) Located() []byte {
	var b strings.Builder
	line := 1
	to := func(wanted int) {
		for ; line < wanted; line++ {
			b.WriteString("\n ")
		}
	}
	var write func(v Value)
	write = func(v Value) {
		to(v.Line)
		switch v.Kind {
		case List:
			b.WriteString("[")
			for i, item := range v.Items {
				if i > 0 {
					b.WriteString(", ")
				}
				write(item)
			}
			b.WriteString("]")
		case Mapping:
			b.WriteString("{")
			for i, e := range v.Entries {
				if i > 0 {
					b.WriteString(", ")
				}
				to(e.Line)
				b.WriteString(Quoted(e.Key) + ": ")
				write(e.Value)
			}
			b.WriteString("}")
		default:
			b.WriteString(v.scalar())
		}
	}
	write(v)
	b.WriteString("\n")
	return []byte(b.String())
}

// Sorted returns a copy of the value with the keys of all its mappings in order.
func (v Value) Sorted() Value {
	c := v
	c.Items, c.Entries = nil, nil
	for _, i := range v.Items {
		c.Items = append(c.Items, i.Sorted())
	}
	for _, e := range v.Entries {
		e.Value = e.Value.Sorted()
		c.Entries = append(c.Entries, e)
	}
	slices.SortFunc(c.Entries, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return c
}
