package document

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Readable returns the value as YAML for people and other programs: every item on
// a line of its own, quotes only where they are needed.
func (v Value) Readable() ([]byte, error) {
	return encode(v.node(0))
}

// OneLine is Readable on one line, without a newline at its end.
func (v Value) OneLine() (string, error) {
	n := v.node(yaml.FlowStyle)
	text, err := encode(n)
	return strings.TrimSuffix(string(text), "\n"), err
}

func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), nil
}

// node returns the value for the encoder; lists and mappings have the style.
func (v Value) node(style yaml.Style) *yaml.Node {
	switch v.Kind {
	case List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: style}
		for _, item := range v.Items {
			n.Content = append(n.Content, item.node(style))
		}
		return n
	case Mapping:
		n := &yaml.Node{Kind: yaml.MappingNode, Style: style}
		for _, e := range v.Entries {
			n.Content = append(n.Content, textNode(e.Key, yaml.FlowStyle), e.Value.node(style))
		}
		return n
	case Plain:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
	case Word:
		return textNode(v.Text, style)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
}

// sexagesimal matches texts such as 10:30, which are numbers in YAML 1.1.
var sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)

// special matches further texts that need quotes in YAML, by their beginning or
// content. The encoder knows the rest.
var special = regexp.MustCompile("^[][{}!&*?|>@`\"'%#,:<=-]|: |:$| #|^ | $")

// textNode returns a text with the necessary quotes; it keeps several lines as
// they are where the style permits.
func textNode(s string, style yaml.Style) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	hidden := strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
	lines := strings.Contains(s, "\n")
	switch {
	case lines && style != yaml.FlowStyle && !hidden && !strings.Contains(s, " \n") && !strings.ContainsAny(s[:1], " \n#"):
		n.Style = yaml.LiteralStyle
	case lines, hidden, special.MatchString(s), slices.Contains(spoken, strings.ToLower(s)), sexagesimal.MatchString(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
