// Package plans holds the plans that are built in: YAML files, used by their
// names. cmd/weft and tests import it; it imports nothing of this module.
package plans

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names returns the names of the built-in plans, sorted.
func Names() []string {
	list, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the root of an embedded file system is always there
	}
	var names []string
	for _, f := range list {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Read returns the text of a built-in plan.
func Read(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("unknown plan %q; built in: %s", name, strings.Join(Names(), ", "))
	}
	return files.ReadFile(name + ".yaml")
}

// About returns the first sentence of the comment at the beginning of a plan.
func About(text []byte) string {
	var words []string
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	sentence, _, more := strings.Cut(strings.Join(words, " ")+" ", ". ")
	if more {
		sentence += "."
	}
	return strings.TrimSpace(sentence)
}
