package plan

import (
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
)

// judge collects what is wrong with a plan.
type judge struct {
	plan     *Plan
	mistakes []document.Mistake
}

// fail reports a mistake at the line of a key, or of the closest key above it
// that the file has; none of a key whose value could not be read.
func (j *judge) fail(path, format string, args ...any) {
	if j.plan.unread[path] {
		return
	}
	line := 0
	for at := path; at != "" && line == 0; {
		line = j.plan.lines[at]
		i := strings.LastIndex(at, ".")
		at = at[:max(i, 0)]
	}
	j.mistakes = append(j.mistakes, document.Mistake{Line: line, Text: document.Wording(format, args...)})
}

// few reports a list that is longer than maxItems.
func (j *judge) few(path string, n int) {
	if n > maxItems {
		j.fail(path, "%s: %d of them; at most %d are allowed", path, n, maxItems)
	}
}

func (j *judge) choice(path, is string, allowed []string) {
	if !slices.Contains(allowed, is) {
		j.fail(path, "%s: want one of %s, not %q", path, strings.Join(allowed, ", "), is)
	}
}

// maxItems is how many processes there may be, workers, links, and services of a
// worker.
const maxItems = 4096

func (j *judge) label(path, what, name string) {
	if len(name) > maxName || !label.MatchString(name) {
		j.fail(path, "%s: the name of a %s is up to %d lower-case letters, digits and dashes, and begins with a letter, not %q", path, what, maxName, name)
	}
}

// fit checks a plan against the services' declarations.
type fit struct {
	judge
	specs []weft.Spec
	told  map[string]bool // what is reported once only
	there map[string]bool // the services that are in a worker
}

// once reports whether a key is new.
func (f *fit) once(key string) bool {
	if f.told[key] {
		return false
	}
	f.told[key] = true
	return true
}
