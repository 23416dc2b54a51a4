package plan

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// bare are texts that need no quotes, wherever they stand.
var bare = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@-]*$`)

// spoken are words that YAML, or an older version of it, takes for something
// else than text.
var spoken = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// quoted returns a text as it is written in YAML.
func quoted(s string) string {
	if bare.MatchString(s) && !slices.Contains(spoken, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}

// scalar returns a value that is neither list nor mapping as it is written.
func (v value) scalar() string {
	switch v.kind {
	case null:
		return "null"
	case plain:
		return v.text
	}
	return quoted(v.text)
}

// flow returns a value on one line.
func (v value) flow() string {
	var parts []string
	switch v.kind {
	case list:
		for _, item := range v.items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapping:
		for _, e := range v.entries {
			parts = append(parts, quoted(e.key)+": "+e.value.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v.scalar()
}

// block writes the entries of a mapping, one to a line: mappings below their
// keys, lists of mappings with one of them to a line, all else behind its key.
func (v value) block(b *strings.Builder, indent string) {
	for _, e := range v.entries {
		b.WriteString(indent + quoted(e.key) + ":")
		switch {
		case e.value.kind == mapping && len(e.value.entries) > 0:
			b.WriteString("\n")
			e.value.block(b, indent+"  ")
		case e.value.kind == list && slices.ContainsFunc(e.value.items, func(i value) bool { return i.kind == mapping }):
			b.WriteString("\n")
			for _, item := range e.value.items {
				b.WriteString(indent + "  - " + item.flow() + "\n")
			}
		default:
			b.WriteString(" " + e.value.flow() + "\n")
		}
	}
}

// yaml returns a mapping as a document.
func (v value) yaml() []byte {
	var b strings.Builder
	if v.block(&b, ""); b.Len() == 0 {
		return []byte("{}\n")
	}
	return []byte(b.String())
}

// located returns a mapping with every value on the line on which it was read,
// for those who report mistakes in it.
func (v value) located() []byte {
	var b strings.Builder
	line := 1
	to := func(wanted int) {
		for ; line < wanted; line++ {
			b.WriteString("\n ")
		}
	}
	var write func(v value)
	write = func(v value) {
		to(v.line)
		switch v.kind {
		case list:
			b.WriteString("[")
			for i, item := range v.items {
				if i > 0 {
					b.WriteString(", ")
				}
				write(item)
			}
			b.WriteString("]")
		case mapping:
			b.WriteString("{")
			for i, e := range v.entries {
				if i > 0 {
					b.WriteString(", ")
				}
				to(e.line)
				b.WriteString(quoted(e.key) + ": ")
				write(e.value)
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

// json writes a value; numbers that JSON writes otherwise become strings.
func (v value) json(b *strings.Builder) {
	text := func(s string) {
		raw, _ := json.Marshal(s) // a string always can be
		b.Write(raw)
	}
	switch v.kind {
	case null:
		b.WriteString("null")
	case plain:
		if json.Valid([]byte(v.text)) {
			b.WriteString(v.text)
		} else {
			text(v.text)
		}
	case word:
		text(v.text)
	case list:
		b.WriteString("[")
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(",")
			}
			item.json(b)
		}
		b.WriteString("]")
	case mapping:
		b.WriteString("{")
		for i, e := range v.entries {
			if i > 0 {
				b.WriteString(",")
			}
			text(e.key)
			b.WriteString(":")
			e.value.json(b)
		}
		b.WriteString("}")
	}
}
