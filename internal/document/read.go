package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits bound a text.
type Limits struct {
	What   string // the text is, as messages call it, such as plan
	Syntax string // as messages call it; YAML if empty
	Octets int    // at most
	Lines  int    // at most
	// Items is how many values and keys there may be at most, by what parts them, so
	// that a text with more is refused before it takes memory; 0: any number.
	Items int
	// Aliases is how many values all aliases may stand for. With 0 there may be
	// neither anchors nor aliases nor tags, else tags are passed over.
	Aliases int
}

// maxDepth is the deepest nesting of values.
const maxDepth = 32

// Read reads a text of one document; it is Null if the text is empty. Read
// returns mistakes, some of them with a value that is partly Broken; after a
// mistake that leaves no value it returns false.
func Read(src []byte, l Limits) (Value, []Mistake, bool) {
	list, mistakes, ok := ReadAll(src, l)
	switch {
	case !ok:
		return Value{}, mistakes, false
	case len(list) > 1:
		return Value{}, []Mistake{{0, fmt.Sprintf("%d YAML documents; put everything into one (take out the lines ---)", len(list))}}, false
	case len(list) == 0:
		return Value{Kind: Null}, nil, true
	}
	return list[0], mistakes, true
}

// ReadAll is Read for a text of any number of documents.
func ReadAll(src []byte, l Limits) ([]Value, []Mistake, bool) {
	alone := func(line int, format string, args ...any) ([]Value, []Mistake, bool) {
		return nil, []Mistake{{line, Wording(format, args...)}}, false
	}
	if len(src) > l.Octets {
		return alone(0, "%d octets; a %s has at most %d", len(src), l.What, l.Octets)
	}
	if n := bytes.Count(src, []byte("\n")); n > l.Lines {
		return alone(0, "%d lines; a %s has at most %d", n, l.What, l.Lines)
	}
	if n := items(src); l.Items > 0 && n > l.Items {
		return alone(0, "about %d items; a %s has at most %d", n, l.What, l.Items)
	}
	if !utf8.Valid(src) {
		return alone(invalidLine(src), "not text in UTF-8; write it so")
	}
	nodes, err := parse(bytes.NewReader(src))
	if err != nil {
		return nil, []Mistake{l.malformed(src, err)}, false
	}
	c := &converter{limits: l}
	var list []Value
	for _, n := range nodes {
		list = append(list, c.value(n, 0))
	}
	if c.deep > 0 {
		return alone(c.deep, "%s", deep)
	}
	return list, c.mistakes, true
}

// items is how many values a text may have.
func items(src []byte) (n int) {
	for _, b := range src {
		if b == '\n' || b == ',' || b == '{' || b == '[' {
			n++
		}
	}
	return n
}

// invalidLine returns the first line that is not UTF-8.
func invalidLine(src []byte) int {
	n := 0
	for line := range bytes.Lines(src) {
		if n++; !utf8.Valid(line) {
			break
		}
	}
	return n
}

// parse returns the documents of a text, in time linear in the text's length.
func parse(src io.Reader) (list []*yaml.Node, err error) {
	d := yaml.NewDecoder(src)
	for {
		var doc yaml.Node
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		case len(doc.Content) == 0:
			list = append(list, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: max(doc.Line, 1)})
		default:
			list = append(list, doc.Content[0])
		}
	}
}
