package virtual

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "TestVirtual and TestManaged record the final states of their seeds")

// A goldenFile has a line for each seed: the seed, the number of its storms, and the digests
// of its final state (finalState.digests), as its test has recorded them with -update.
type goldenFile string

const (
	ordinaryGolden goldenFile = "testdata/digests.txt" // of TestVirtual
	managedGolden  goldenFile = "testdata/managed.txt" // of TestManaged
)

// golden is what a seed came to when it was recorded.
type golden struct {
	storms  int
	digests []string
}

// read returns what is recorded, by seed.
func (f goldenFile) read(t *testing.T) map[uint64]golden {
	t.Helper()
	text, err := os.ReadFile(string(f))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	all := map[uint64]golden{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		storms, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[seed] = golden{storms, fields[2:]}
	}
	return all
}

// write records what seeds come to.
func (f goldenFile) write(t *testing.T, all map[uint64]golden) {
	t.Helper()
	var b strings.Builder
	for _, s := range sorted(all) {
		fmt.Fprintf(&b, "%d\t%d\t%s\n", s, all[s].storms, strings.Join(all[s].digests, "\t"))
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(f), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

var finalIn = regexp.MustCompile("(?m)^final (.*)$")

// goldenOf returns what a run of TestSchedule came to, from what it printed.
func goldenOf(out string) (g golden, ok bool) {
	m := finalIn.FindStringSubmatch(out)
	if m == nil {
		return g, false
	}
	fields := strings.FieldsFunc(m[1], func(r rune) bool { return r == '\t' })
	n, err := strconv.Atoi(fields[0])
	return golden{n, fields[1:]}, err == nil
}

// differences returns the sections of a final state that are not as recorded. What was
// not there to be recorded counts not.
func (g golden) differences(now golden) (names []string) {
	has := map[string]string{}
	for _, d := range now.digests {
		name, sum, _ := strings.Cut(d, ":")
		has[name] = sum
	}
	for _, d := range g.digests {
		if name, sum, _ := strings.Cut(d, ":"); has[name] != sum {
			names = append(names, name)
		}
	}
	return names
}

// sectionOf returns the text of a section of a final state.
func sectionOf(state, name string) string {
	_, after, _ := strings.Cut("\n"+state, "\n"+name+"\n")
	var b strings.Builder
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
