// Package asownertest tests that root leaves its own files alone in directories of
// other users.
//
// Tests import it, nothing else does.
package asownertest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// attacker is a user that nobody is.
const attacker = 64999

// untouched returns what is in a directory of root's, and whose it is, as text.
func untouched(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.Sys().(*syscall.Stat_t).Uid)
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%s\n", text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// GiveAway makes all below a directory a user's that nobody is.
func GiveAway(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, attacker, attacker)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Case is something that root does in a directory of another user.
type Case struct {
	Name   string
	Begin  func(*testing.T, string) // writes the files that Run finds
	Run    func(*testing.T, string) error
	Fails  bool     // here, after its first file
	Names  []string // of files that are gone at its end
	Beside []string // further names to try
}

// FollowsNobody runs each case before and after each name that it has made there is
// a symbolic link of that user to a file of root's, to a directory of root's, and to
// nothing yet in one of root's, or where there are many, one of these: what is
// root's stays as it is, and what a case makes is that user's.
func FollowsNobody(t *testing.T, cases ...Case) {
	if os.Geteuid() != 0 {
		t.Fatal("wants root, which alone has files to lose")
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.Name, " ", "-"), func(t *testing.T) {
			begin := func(dir string) {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if c.Begin != nil {
					c.Begin(t, dir)
				}
				GiveAway(t, dir)
			}
			base := t.TempDir()
			if err := os.Chmod(filepath.Dir(base), 0o755); err != nil { // others pass
				t.Fatal(err)
			}
			dir := filepath.Join(base, "dir")
			begin(dir)
			if err := c.Run(t, dir); (err != nil) != c.Fails {
				t.Fatal(err)
			}
			names := c.Names
			err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || path == dir {
					return err
				}
				info, err := e.Info()
				if err == nil && info.Sys().(*syscall.Stat_t).Uid != attacker {
					t.Errorf("%s is of user %d", path, info.Sys().(*syscall.Stat_t).Uid)
				}
				name, err2 := filepath.Rel(dir, path)
				if depth := strings.Count(name, "/"); depth < 2 && len(names) < mostNames {
					names = append(names, name)
				}
				if err == nil {
					err = err2
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, beside := range c.Beside {
				if !slices.Contains(names, beside) {
					names = append(names, beside)
				}
			}
			if len(names) == 0 {
				t.Fatal("it has made nothing")
			}
			roots := filepath.Join(base, "root")
			if err := os.MkdirAll(filepath.Join(roots, "empty"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(roots, "file"), []byte("root's alone"), 0o600); err != nil {
				t.Fatal(err)
			}
			before := untouched(t, roots)
			for i, name := range names {
				targets := []string{"file", "empty", "new"}
				if len(names) > len(targets) {
					targets = targets[i%len(targets):][:1] // in turn
				}
				for _, to := range targets {
					tried := filepath.Join(base, fmt.Sprint("try", i, to))
					begin(tried)
					link := filepath.Join(tried, name)
					if os.MkdirAll(filepath.Dir(link), 0o755) != nil {
						continue // it is a file
					}
					if err := os.RemoveAll(link); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(filepath.Join(roots, to), link); err != nil {
						t.Fatal(err)
					}
					GiveAway(t, tried)
					err := c.Run(t, tried)
					if after := untouched(t, roots); after != before {
						t.Fatalf("with %s -> root/%s: root's files were\n%sand are\n%s(%v)", name, to, before, after, err)
					}
				}
			}
		})
	}
}

// mostNames is how many names of a command are tried.
const mostNames = 5
