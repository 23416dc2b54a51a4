package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTail reads the ends of logs that are new, rotated, long and absent.
func TestTail(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("new.log", "")
	write("rotated.log", "c\nd\n")
	write("rotated.log.1", "a\nb\n")
	write("dies.log", "first\npanic: no newline at the end")
	long := strings.Repeat("x", 1000)
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&text, i, long)
	}
	write("long.log", text.String())
	for _, c := range []struct {
		name  string
		lines int
		want  []string
	}{
		{"new", 5, nil}, {"rotated", 3, []string{"b", "c", "d"}}, {"rotated", 9, []string{"a", "b", "c", "d"}}, {"rotated", 1, []string{"d"}},
		{"dies", 2, []string{"first", "panic: no newline at the end"}}, {"long", 1, []string{"2999 " + long}},
	} {
		if got, err := Tail(dir, c.name, c.lines); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d lines of %s: %q, %v; want %q", c.lines, c.name, got, err, c.want)
		}
	}
	if got, err := Tail(dir, "long", 5000); err != nil || len(got) < 1000 || len(got) > 1045 || !strings.HasPrefix(got[0], fmt.Sprint(3000-len(got))) {
		t.Errorf("%d lines of a long one, %v; want those of a megabyte", len(got), err)
	}
	if _, err := Tail(dir, "absent", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden"} {
		if _, err := Tail(dir, name, 1); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}
