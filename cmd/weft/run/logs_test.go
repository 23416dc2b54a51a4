package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestKeptLog: the last lines are remembered, bounded, and all are passed on.
func TestKeptLog(t *testing.T) {
	var out bytes.Buffer
	l := &keptLog{to: &out, process: "a", directory: t.TempDir()}
	if got, err := l.read("a", 10); err != nil || len(got) != 0 {
		t.Errorf("before the first: %q, %v", got, err)
	}
	for i := range 2*keptLines + 7 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	got, err := l.read("a", 3)
	if err != nil || strings.Join(got, ",") != "line 2004,line 2005,line 2006" {
		t.Errorf("the last three: %q, %v", got, err)
	}
	if got, _ := l.read("a", keptLines); len(got) != keptLines || got[0] != "line 1007" {
		t.Errorf("%d lines from %q", len(got), got[0])
	}
	if n := strings.Count(out.String(), "\n"); n != 2*keptLines+7 {
		t.Errorf("%d lines are passed on", n)
	}
	fmt.Fprintln(l, strings.Repeat("x", 1<<20))
	if got, _ := l.read("a", 1); len(got[0]) != keptLine {
		t.Errorf("a line of %d bytes is kept", len(got[0]))
	}
	// Another process of the machine, and an earlier run of this one.
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(l.directory, name+".log"), []byte("from the file of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.read("b", 5); err != nil || len(got) != 1 || got[0] != "from the file of b" {
		t.Errorf("another process: %q, %v", got, err)
	}
	if got, _ := l.read("a", 1); strings.Contains(got[0], "file") {
		t.Error("the file of an earlier run is taken for the log of this one")
	}
	if _, err := l.read("c", 5); err == nil {
		t.Error("a process without a log has one")
	}
}

// TestKeptLogAtOnce reads while others write.
func TestKeptLogAtOnce(t *testing.T) {
	l := &keptLog{to: &bytes.Buffer{}, process: "a"}
	var mu sync.Mutex // of the buffer, as slog's handler has one
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for range 2000 {
				mu.Lock()
				fmt.Fprintln(l, "line")
				mu.Unlock()
			}
		})
	}
	for range 100 {
		if got, err := l.read("a", 50); err != nil || len(got) > 50 {
			t.Fatalf("%d lines, %v", len(got), err)
		}
	}
	work.Wait()
}
