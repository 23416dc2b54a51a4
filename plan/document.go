package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Plans come from outside.
const (
	maxText  = 256 << 10 // octets
	maxLines = 10_000
	maxDepth = 32 // of values within values
)

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
	node, more, err := parse(src)
	switch {
	case err != nil:
		return value{}, []mistake{malformed(what, src, err)}, false
	case more > 0:
		return value{}, []mistake{{0, fmt.Sprintf("%d YAML documents; put everything into one (take out the lines ---)", more+1)}}, false
	case node == nil:
		return value{kind: null}, nil, true
	}
	c := &converter{what: what}
	v := c.value(node, 0)
	return v, c.mistakes, true
}

// parse returns what the first document of a text has, nil if nothing, and how
// many more documents there are. Its time grows with the text's length.
func parse(src []byte) (first *yaml.Node, more int, err error) {
	d := yaml.NewDecoder(bytes.NewReader(src))
	for n := 0; ; n++ {
		var doc yaml.Node
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return first, max(n-1, 0), nil
		} else if err != nil {
			return nil, 0, err
		}
		if n == 0 && len(doc.Content) > 0 && !(doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Value == "" && doc.Content[0].Tag == "!!null") {
			first = doc.Content[0]
		}
	}
}

// parserError is how errors of the parser are written.
var parserError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// malformed says what is wrong with a text that parse has refused, and where. The
// parser's lines are not always what they seem: errors between values are counted
// from 0, those within a block are of its first line, and some have none.
func malformed(what string, src []byte, err error) mistake {
	m := parserError.FindStringSubmatch(err.Error())
	if m == nil {
		return mistake{0, "not well-formed YAML: " + err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	problem := m[2]
	clear, between := map[string]string{
		"did not find expected key":              "want another key of this block, or the end of it; look at how far the line is indented",
		"did not find expected '-' indicator":    "want another - of this list, or the end of it; look at how far the line is indented",
		"did not find expected node content":     "want a value; is a bracket not closed?",
		"did not find expected <document start>": "want the end of the text",
		"did not find expected ',' or ']'":       "the list that begins with [ wants , or ]",
		"did not find expected ',' or '}'":       "what begins with { wants , or }",
	}[problem]
	if between {
		line++
	}
	if between && !strings.Contains(problem, "','") || line == 0 {
		line = max(line, firstLine(src, problem))
	}
	line = min(line, max(len(bytes.Split(bytes.TrimSuffix(src, []byte("\n")), []byte("\n"))), 1))
	if strings.HasPrefix(problem, "unknown anchor") {
		return mistake{line, noAnchors(what)}
	}
	if problem == "found character that cannot start any token" {
		problem = "a value cannot begin with a tab, @, ` or %; indent with spaces, or put the text into quotes"
	}
	return mistake{line, "not well-formed YAML: " + cmp.Or(clear, problem)}
}

// noAnchors says of a value that it is none that is read.
func noAnchors(what string) string {
	return fmt.Sprintf("a %s has no anchors, aliases, merge keys or tags; write the value itself", what)
}

// firstLine returns a line such that the text has a problem with it, and did not
// have it before; 1 if it is not that simple.
func firstLine(src []byte, problem string) int {
	lines := slices.Collect(bytes.Lines(src))
	n := sort.Search(len(lines), func(n int) bool {
		_, _, err := parse(bytes.Join(lines[:n+1], nil))
		return err != nil && strings.HasSuffix(err.Error(), ": "+problem)
	})
	return min(n, len(lines)-1) + 1
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
