package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakeTargets: every make command of the documents, of the workflows and of the Makefile's own comments is
// one that the Makefile has, and nothing of the gate runs a test a second time.
func TestMakeTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(makefile, -1) {
		targets[m[1]] = true
	}
	workflows, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"Makefile": makefile}
	for _, name := range append(documents(t), workflows...) {
		name = strings.TrimPrefix(name, root+"/")
		texts[name] = read(t, name)
	}
	command := regexp.MustCompile("(?m)(?:^|`|run: )make ((?:[a-z][a-z-]*|[A-Z]+=\\S+)(?: (?:[a-z][a-z-]*|[A-Z]+=\\S+))*)(?:`|$| +#)")
	for name, text := range texts {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			for _, word := range strings.Fields(m[1]) {
				if !strings.Contains(word, "=") && !targets[word] {
					t.Errorf("%s: make %s: the Makefile has no target %s", name, m[1], word)
				}
			}
		}
	}
	again := regexp.MustCompile(`rerun-fails|once more|-count[= ][2-9]|retries`)
	for _, name := range []string{"Makefile", ".ci/run", "loom/package.json", "loom/test/browser.mjs"} {
		if m := again.FindString(read(t, name)); m != "" {
			t.Errorf("%s: %q: every test runs once", name, m)
		}
	}
}
