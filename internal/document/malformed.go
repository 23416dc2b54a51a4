package document

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// parserError matches the parser's errors.
var parserError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// malformed says what is wrong with a text that parse rejected, and where. The
// parser's line numbers are unreliable: errors between values are counted from
// 0, those within a block name its first line, and some have none.
func (l Limits) malformed(src []byte, err error) Mistake {
	if line := tooDeep(src); line > 0 {
		return Mistake{line, deep}
	}
	malformed := "not well-formed " + cmp.Or(l.Syntax, "YAML") + ": "
	m := parserError.FindStringSubmatch(err.Error())
	if m == nil {
		return Mistake{0, malformed + err.Error()}
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
	if problem == "found a tab character that violates indentation" { // of the line before
		line = max(line, firstLine(src, problem))
		problem = "the line is indented with a tab; indent with spaces"
	}
	line = min(line, max(len(bytes.Split(bytes.TrimSuffix(src, []byte("\n")), []byte("\n"))), 1))
	if strings.HasPrefix(problem, "unknown anchor") {
		if l.Aliases > 0 {
			return Mistake{line, problem + "; write the anchor, as &name before a value, above its alias"}
		}
		return Mistake{line, l.noAnchors()}
	}
	if problem == "found character that cannot start any token" {
		problem = "a value cannot begin with a tab, @, ` or %; indent with spaces, or put the text into quotes"
	}
	return Mistake{line, malformed + cmp.Or(clear, problem)}
}

// noAnchors returns the message for an anchor, alias, merge key or tag.
func (l Limits) noAnchors() string {
	return fmt.Sprintf("a %s has no anchors, aliases, merge keys or tags; write the value itself", l.What)
}

// noSuchKey returns the message for an unsupported key.
func (l Limits) noSuchKey() string {
	what := "anchors, aliases, merge keys, tags or composite keys"
	if l.Aliases > 0 {
		what = "merge keys or composite keys, nor keys with anchors, aliases or tags"
	}
	return fmt.Sprintf("a %s has no %s; write the key itself", l.What, what)
}

// firstLine returns the line with which the text first has a problem; 1 if that
// is unclear.
func firstLine(src []byte, problem string) int {
	ends := []int{0} // of the first lines
	for line := range bytes.Lines(src) {
		ends = append(ends, ends[len(ends)-1]+len(line))
	}
	shows := func(n int) bool {
		_, err := parse(bytes.NewReader(src[:ends[n]]))
		return err != nil && strings.HasSuffix(err.Error(), ": "+problem)
	}
	// The parser has seen the problem in what it has read, mostly in the last few of
	// those lines. To look for it in all of them would take the parser many times.
	r := &lineReader{src: src, ends: ends}
	_, _ = parse(r)
	last := max(r.read, 1)
	least, step := last, 1
	for least > 1 && shows(least-1) {
		last = least - 1
		least = max(last-step, 1)
		step *= 2
	}
	return least + sort.Search(last-least, func(n int) bool { return shows(least + n) })
}

// lineReader reads a text a line at a time.
type lineReader struct {
	src  []byte
	ends []int // of its first lines, from 0
	read int   // lines
	at   int   // within the text
}

// Read reads the rest of a line (io.Reader).
func (r *lineReader) Read(p []byte) (int, error) {
	if r.at == len(r.src) {
		return 0, io.EOF
	}
	if r.at == r.ends[r.read] {
		r.read++
	}
	n := copy(p, r.src[r.at:r.ends[r.read]])
	r.at += n
	return n, nil
}

// deep rejects a value that is nested too deeply.
var deep = fmt.Sprintf("nested too deeply; at most %d levels are allowed", maxDepth)

// tooDeep returns the line at which brackets, or dashes on one line, nest
// deeper than in any valid document; 0 if none does.
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
		for i, c := range text {
			if c == '#' && (i == 0 || text[i-1] == ' ') {
				break // a comment
			}
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
