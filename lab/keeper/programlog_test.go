package keeper

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// What a program writes is kept up to a bound, the last of it, and can be
// followed without a gap.
func TestProgramLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h1", "p.log")
	log, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r := NewLogReader(path)
	defer r.Close()
	var followed strings.Builder
	const lines = 300_000
	last := ""
	for i := range lines {
		last = fmt.Sprintf("line %d\n", i)
		if _, err := log.Write([]byte(last)); err != nil {
			t.Fatal(err)
		}
		if i%10_000 == 0 {
			if _, err := io.Copy(&followed, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := io.Copy(&followed, r); err != nil || strings.Count(followed.String(), "\n") != lines {
		t.Errorf("followed %d lines, %v; want %d", strings.Count(followed.String(), "\n"), err, lines)
	}
	late := NewLogReader(path)
	defer late.Close()
	kept, err := io.ReadAll(late)
	if err != nil || len(kept) > mostLog || len(kept) < mostLog/2 || !strings.HasSuffix(string(kept), last) || !strings.HasPrefix(string(kept), "line ") {
		t.Errorf("kept are %d bytes, %v, that end in %q", len(kept), err, kept[max(0, len(kept)-20):])
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end of the log: %d, %v", n, err)
	}
}
