package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every relative link of every document, headings included.
func TestLinks(t *testing.T) {
	for _, document := range documents(t) {
		for i, line := range prose(t, document) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, heading, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, ":") {
					continue // to another site
				}
				file := document
				if target != "" {
					file = path.Join(path.Dir(document), target)
				}
				if _, err := os.Stat(filepath.Join(root, file)); err != nil {
					t.Errorf("%s:%d: link to %s, which does not exist", document, i+1, m[1])
				} else if path.Dir(file) == reference && path.Dir(document) != reference {
					t.Errorf("%s:%d: link to %s, which git does not have; name the command", document, i+1, m[1])
				} else if heading != "" && !headings(t, file)[heading] {
					t.Errorf("%s:%d: link to %s; %s has no such heading", document, i+1, m[1], file)
				}
			}
		}
	}
}

// headings returns the anchors of a document's headings.
func headings(t *testing.T, document string) map[string]bool {
	t.Helper()
	drop := regexp.MustCompile(`[^\pL\pN -]`)
	anchors := map[string]bool{}
	for _, line := range prose(t, document) {
		if text, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			anchors[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
		}
	}
	return anchors
}

var (
	code     = regexp.MustCompile("`([^`]+)`")
	filename = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*(/|\.(go|md|proto|yaml|json))$`)
)

// coming are files that documents speak of as the reader's, or as written by
// the example.
var coming = regexp.MustCompile(`^services/isolation/|^api/isolation.proto$|^(files/)?(weft|triangle|flows|mine|plan|cluster|values|params-\d|docker-compose)\.yaml$|^values\.schema\.json$`)

// TestPaths looks for every file and folder that documents name.
func TestPaths(t *testing.T) {
	found := 0
	for _, document := range documents(t) {
		for i, line := range prose(t, document) {
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				name := m[1]
				if !filename.MatchString(name) || coming.MatchString(name) || strings.HasPrefix(name, "/") {
					continue
				}
				if exists(name, document) {
					found++
				} else {
					t.Errorf("%s:%d: %s does not exist", document, i+1, name)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names of files found in the documents; does the pattern still fit?", found)
	}
}

// exists looks for a file from the root; those that are named without a folder
// may be the program's, or any service's.
func exists(name, document string) bool {
	for _, at := range []string{name, path.Join(path.Dir(document), name), "cmd/weft/" + name, "cmd/weft/command/" + name, "services/*/" + name} {
		if found, err := filepath.Glob(filepath.Join(root, at)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// TestSymbols looks for the functions that ARCHITECTURE and the pages below it
// name beside a file.
func TestSymbols(t *testing.T) {
	near := regexp.MustCompile("`([\\w/]+\\.go)`: `(\\w+)`|`(\\w+)` in `([\\w/]+\\.go)`")
	lines := prose(t, "ARCHITECTURE.md")
	for _, document := range documents(t) {
		if path.Dir(document) == "docs/internals" {
			lines = append(lines, prose(t, document)...)
		}
	}
	text := strings.Join(strings.Fields(strings.Join(lines, "\n")), " ")
	found := near.FindAllStringSubmatch(text, -1)
	if len(found) < 5 {
		t.Fatalf("only %d functions found beside their files; does the pattern still fit?", len(found))
	}
	for _, m := range found {
		file, name := m[1]+m[4], m[2]+m[3]
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\b`).MatchString(read(t, file)) {
			t.Errorf("%s has no function %s", file, name)
		}
	}
}
