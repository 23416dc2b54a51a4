package localsocket

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestOnlySocketsAreRemoved: what is at the path and is no socket stays, at the
// start and at the end.
func TestOnlySocketsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	gone, err := net.ListenUnix("unix", &net.UnixAddr{Name: at("left"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	gone.SetUnlinkOnClose(false)
	gone.Close()
	for link, to := range map[string]string{"to-file": "file", "to-socket": "left", "to-nothing": "nothing"} {
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "dir", "to-file", "to-socket", "to-nothing"} {
		if l, err := Listen(at(name)); err == nil {
			t.Errorf("%s: listens", name)
			l.Close()
		}
		if _, err := os.Lstat(at(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(at("file")); err != nil || string(text) != "kept" {
		t.Errorf("the file is now %q, %v", text, err)
	}

	// A socket that is left over is replaced; one in use is not.
	l, err := Listen(at("left"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(at("left")); err == nil {
		t.Error("two listen at one path")
	}
	if c, err := net.Dial("unix", at("left")); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	// What has taken its place meanwhile stays.
	if err := os.Rename(at("file"), at("left")); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if text, err := os.ReadFile(at("left")); err != nil || string(text) != "kept" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	if l, err = Listen(at("new")); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := os.Lstat(at("new")); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
