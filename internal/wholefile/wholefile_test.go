package wholefile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Somebody reads while a file is replaced again and again, and always sees one
// whole text.
func TestReadersSeeWholeFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	texts := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<15)}
	if err := Write(file, texts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			if err := Write(file, texts[i%2], 0o600); err != nil {
				t.Error(err)
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		b, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(b, texts[0]) && !bytes.Equal(b, texts[1]) {
			t.Fatalf("%d octets, %v", len(b), err)
		}
	}
}

// What cannot be replaced stays, and nothing is left beside it.
func TestFailureLeavesTheFormerFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(file, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, []byte("text"), 0o600); err == nil {
		t.Error("a folder with something in it was replaced")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// The error of a file that cannot be made names the file, not its draft.
func TestErrorNamesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nowhere", "file")
	if err := Write(file, nil, 0o600); err == nil || err.Error() != "open "+file+": no such file or directory" {
		t.Error(err)
	}
}
