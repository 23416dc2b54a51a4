package archtest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-sdn/weft/internal/archtest"
)

// TestFloors holds the module's types and packages to their bounds, and its exceptions to
// be needed.
func TestFloors(t *testing.T) {
	breaches, unneeded, err := archtest.Floors(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaches {
		t.Error(b)
	}
	for _, e := range unneeded {
		t.Errorf("%s is an exception in exceptions.go that is not needed any more; delete it", e)
	}
}

// TestFloorsBroken breaks each bound.
func TestFloorsBroken(t *testing.T) {
	many := "package x\n\ntype T struct{}\n"
	for i := range 41 {
		many += fmt.Sprintf("\nfunc (t *T) m%d() {}\n", i)
	}
	ring := fstest.MapFS{} // of two files each, that use each other
	for i := range 4 {
		for j, name := range []string{"a", "b"} {
			text := fmt.Sprintf("package x\n\nfunc %s%d() { %s%[2]d() }\n", name, i, []string{"b", "a"}[j])
			ring[fmt.Sprintf("x/%s%d.go", name, i)] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	for want, tree := range map[string]fstest.MapFS{
		"x/x.go: x.T has 41 methods":                             {"x/x.go": {Data: []byte(many)}},
		"of the 8 references between files of x, 4 lead upwards": ring,
		"": {"x/x.go": {Data: []byte("package x\n\nfunc f() { g() }\n")}, "x/y.go": {Data: []byte("package x\n\nfunc g() {}\n")}},
	} {
		breaches, _, err := archtest.Floors(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(breaches, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
