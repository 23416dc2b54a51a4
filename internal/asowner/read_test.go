package asowner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Root reads what it finds on a path of another user with that user's rights: no file
// of root's by any link, nothing that blocks or has no end, and no more than fits.
func TestReadsWithRightsOfTheOwner(t *testing.T) {
	needRoot(t)
	base := t.TempDir()
	theirs, closed := filepath.Join(base, "theirs"), filepath.Join(base, "closed")
	at := func(name string) string { return filepath.Join(theirs, name) }
	for _, err := range []error{
		os.Chmod(filepath.Dir(base), 0o755), os.Mkdir(theirs, 0o755), os.Mkdir(closed, 0o700),
		os.WriteFile(at("file"), []byte("theirs"), 0o600),
		os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(base, "open"), []byte("open"), 0o644),
		os.WriteFile(filepath.Join(closed, "readable"), []byte("secret"), 0o644), // by its mode, not by its directory's
		os.Symlink("file", at("link")), os.Symlink("../open", at("to-open")), os.Symlink("../secret", at("to-secret")),
		os.Symlink("/proc/self/cwd/readable", at("by-cwd")), os.Symlink("/dev/zero", at("device")),
		os.Mkdir(at("dir"), 0o755), unix.Mkfifo(at("fifo"), 0o666),
		os.WriteFile(at("huge"), nil, 0o600), os.Truncate(at("huge"), MostOctets+1),
		os.Symlink(theirs, filepath.Join(base, "roots-link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := filepath.WalkDir(theirs, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, somebody, somebody))
	}); err != nil {
		t.Fatal(err)
	}
	t.Chdir(closed)
	for _, c := range []struct{ name, text, err string }{
		{"theirs/file", "theirs", ""}, {"theirs/link", "theirs", ""}, {"theirs/to-open", "open", ""}, {"roots-link/file", "theirs", ""},
		{"theirs/to-secret", "", "permission denied"}, {"theirs/by-cwd", "", "too many levels"}, {"theirs/none", "", "no such file"},
		{"theirs/device", "", "it is a device"}, {"theirs/fifo", "", "it is a FIFO"}, {"theirs/dir", "", "is a directory"}, {"theirs/huge", "", "give a smaller file"},
		{"secret", "secret", ""}, {"closed/readable", "secret", ""},
	} {
		text, err := ReadFile(filepath.Join(base, c.name))
		if string(text) != c.text || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), c.name)) {
			t.Errorf("%s: %.20q, %v; want %q, %q", c.name, text, err, c.text, c.err)
		}
	}
	if _, err := OpenFile(at("fifo"), os.O_WRONLY|os.O_CREATE, 0o600); err == nil { // nobody reads it
		t.Error("a FIFO is written to")
	}
	if _, err := LoadKeyPair(at("to-secret"), at("file")); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}

	// What root gives by its number leads to the file behind it.
	f, err := os.Open(at("file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.WriteString("piped")
	w.Close()
	for number, want := range map[uintptr]string{f.Fd(): "theirs", r.Fd(): "piped"} {
		if text, err := ReadFile(fmt.Sprintf("/dev/fd/%d", number)); err != nil || string(text) != want {
			t.Errorf("/dev/fd/%d: %q, %v; want %q", number, text, err, want)
		}
	}
}
