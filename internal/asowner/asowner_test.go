package asowner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// needRoot fails without root, which alone gives files away; make race, whose tests are
// short, runs without it.
func needRoot(t *testing.T) {
	t.Helper()
	switch {
	case os.Geteuid() == 0:
	case testing.Short():
		t.Skip("SKIPPED: make race runs without root, which alone gives files away")
	default:
		t.Fatal("wants root, which alone gives files away")
	}
}

const somebody = 64998 // nobody is

// Who decides where a path leads is the first owner other than root along it, links
// included; what does not exist is nobody's, but may be anybody's.
func TestOwnerOf(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Chmod(filepath.Dir(dir), 0o755),
		os.MkdirAll(at("theirs/deep"), 0o755), os.Lchown(at("theirs"), somebody, somebody),
		os.WriteFile(at("file"), nil, 0o644), os.WriteFile(at("their-file"), nil, 0o644), os.Lchown(at("their-file"), somebody, somebody),
		os.Symlink("theirs/deep", at("into")), os.Symlink("file", at("own")), os.Symlink("loop", at("loop")),
		os.Symlink("file", at("their-link")), os.Lchown(at("their-link"), somebody, somebody),
		os.Mkdir(at("open"), 0o755), os.Chmod(at("open"), 0o777|fs.ModeSticky),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		want owner
	}{
		{"", owner{}}, {"file", owner{}}, {"own", owner{}}, {"absent", owner{}}, {"absent/more", owner{}},
		{"theirs", owner{uid: somebody, gid: somebody}}, {"theirs/deep", owner{uid: somebody, gid: somebody}},
		{"theirs/../file", owner{uid: somebody, gid: somebody}}, {"into/new", owner{uid: somebody, gid: somebody}},
		{"into/../../file", owner{uid: somebody, gid: somebody}}, {"their-file", owner{uid: somebody, gid: somebody}},
		{"their-link", owner{uid: somebody, gid: somebody}}, {"open/new", owner{shared: true}},
	} {
		got, err := ownerOf(dir + "/" + c.path)
		if got.path = ""; err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.path, got, err, c.want)
		}
	}
	if _, err := ownerOf(at("loop")); err == nil {
		t.Error("a loop of links has an owner")
	}
	if _, err := ownerOf("/dev/stdout"); err != nil {
		t.Error(err)
	}
	if err := Check(at("their-link")); err == nil {
		t.Error("a path in others' hands passes")
	}
}

// Root works with the rights of a directory's owner there, on a thread and as a
// whole, and has its own again.
func TestRightsOfTheOwner(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	theirs, secret := filepath.Join(dir, "theirs"), filepath.Join(dir, "secret")
	for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(theirs, 0o700), os.WriteFile(secret, []byte("s"), 0o600), os.Lchown(theirs, somebody, somebody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	readable := func() error { _, err := os.ReadFile(secret); return err }
	if err := Do(theirs, readable); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with rights of theirs: %v", err)
	}
	in, back, err := Become(theirs)
	if err != nil || in != theirs {
		t.Fatal(in, err)
	}
	if err := readable(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("as the directory's owner: %v", err)
	}
	if err := os.WriteFile(filepath.Join(in, "new"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := errors.Join(back(), readable()); err != nil {
		t.Errorf("root again: %v", err)
	}

	// Root's directory in one of theirs cannot be led elsewhere meanwhile.
	roots := filepath.Join(theirs, "roots")
	if err := os.Mkdir(roots, 0o755); err != nil {
		t.Fatal(err)
	}
	in, back, err = Become(roots)
	if err != nil || in == roots {
		t.Fatal(in, err)
	}
	if err := os.Rename(roots, filepath.Join(theirs, "away")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(in, "new"), nil, 0o600), back()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(theirs, "away", "new")); err != nil {
		t.Error(err)
	}

	link := filepath.Join(theirs, "link")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, []byte("x"), 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("written through their link: %v", err)
	}
	if err := WriteWhole(link, []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "s" {
		t.Errorf("%q, %v", text, err)
	}
}
