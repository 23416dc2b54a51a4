// Package docs holds the documents to what is true: every command line in them
// parses, every file and link exists, every table agrees with the code, and
// the example service is built and tested. It imports whatever it compares
// with; nobody imports it.
package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the parts of the documents that are made from the code")

// root is the module's folder, seen from this one.
const root = ".."

// documents returns all documents, by path from the root, the reference among them.
func documents(t *testing.T) []string {
	t.Helper()
	writeReference(t)
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, name)
		}
	}
	if !slices.Contains(list, "README.md") || !slices.Contains(list, "ARCHITECTURE.md") {
		t.Fatalf("documents not found; got %q", list)
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is a fenced block of a document.
type block struct {
	document string
	line     int // of its first line of text
	language string
	file     string // what it is, from file=NAME behind the language
	mark     string // any other word there: run, output
	text     string
}

// blocks returns the fenced blocks of a document.
func blocks(t *testing.T, document string) []block {
	t.Helper()
	var list []block
	var in *block
	for i, line := range strings.Split(read(t, document), "\n") {
		info, fence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case fence && in == nil:
			language, rest, _ := strings.Cut(info, " ")
			in = &block{document: document, line: i + 2, language: language}
			if file, named := strings.CutPrefix(rest, "file="); named {
				in.file = file
			} else {
				in.mark = rest
			}
		case fence:
			list, in = append(list, *in), nil
		case in != nil:
			in.text += line + "\n"
		}
	}
	if in != nil {
		t.Fatalf("%s:%d: block without an end", document, in.line)
	}
	return list
}

// prose returns a document without its fenced blocks, as many lines long.
func prose(t *testing.T, document string) []string {
	t.Helper()
	lines := strings.Split(read(t, document), "\n")
	inside := false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			inside = !inside
			lines[i] = ""
		} else if inside {
			lines[i] = ""
		}
	}
	return lines
}

// section compares the part of a document between the marks of a name with
// what it is to be, or writes it.
func section(t *testing.T, document, name, want string) {
	t.Helper()
	text := read(t, document)
	marks := regexp.MustCompile(`(?s)(<!-- ` + name + `:begin[^\n]*-->\n)(.*?)(<!-- ` + name + `:end -->)`)
	m := marks.FindStringSubmatchIndex(text)
	switch {
	case m == nil:
		t.Fatalf("%s has no part between <!-- %s:begin … --> and <!-- %s:end -->", document, name, name)
	case text[m[4]:m[5]] == want:
	case *update:
		text = text[:m[4]] + want + text[m[5]:]
		if err := os.WriteFile(filepath.Join(root, document), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the part %s is not what the code says; run go test ./docs -update. It would be:\n%s", document, name, want)
	}
}
