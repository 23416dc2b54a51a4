package run

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDataDirectory: what a start has made goes again as long as nothing is in it, and
// nothing else does.
func TestDataDirectory(t *testing.T) {
	above := filepath.Join(t.TempDir(), "a")
	dir := filepath.Join(above, "b")
	made, err := makeDataDirectory(dir)
	if info, statErr := os.Stat(dir); err != nil || len(made) != 2 || statErr != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v, %v", made, err, statErr)
	}
	if again, err := makeDataDirectory(dir); err != nil || len(again) != 0 {
		t.Errorf("there already: %v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made.removeEmpty()
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	made.removeEmpty()
	if _, err := os.Stat(above); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
	if err := os.WriteFile(above, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := makeDataDirectory(dir); err == nil {
		t.Errorf("below a file: %v", made)
	} else {
		made.removeEmpty()
	}
	if _, err := os.Stat(above); err != nil {
		t.Error("a file is removed")
	}
}
