package command

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/runs"
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

// giveAway makes all below a directory the attacker's.
func giveAway(t *testing.T, dir string) {
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

// Whatever root does in a directory of another user, it leaves root's own files
// alone: each name that a command has made there is, before the command runs again,
// a symbolic link of that user to a file of root's, to a directory of root's, and to
// nothing yet in one of root's, or where there are many, one of these. What a command makes is that user's.
func TestRootFollowsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("wants root, which alone has files to lose")
	}
	weft := func(line string) func(*testing.T, string) error {
		return func(_ *testing.T, dir string) error {
			if status, out, errs := weftProcess(strings.Fields(strings.ReplaceAll(line, "DIR", dir))...); status != 0 {
				return fmt.Errorf("weft %s: status %d: %s%s", line, status, out, errs)
			}
			return nil
		}
	}
	kept := t.TempDir()
	keep(t, kept, "a", 3)
	backup := filepath.Join(t.TempDir(), "backup")
	must(t, "store backup "+backup+" --data-dir "+kept)
	store := func(t *testing.T, dir string) {
		if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
	}
	certs := func(t *testing.T, dir string) { must(t, "certs init --dir "+dir) }
	for _, c := range []struct {
		name  string
		begin func(*testing.T, string) // puts into the directory what there is before
		run   func(*testing.T, string) error
		fails bool     // here, after its first file
		names []string // of files that are gone at its end
	}{
		{name: "store status", begin: store, run: weft("store status --data-dir DIR")},
		{name: "store backup", begin: store, run: weft("store backup " + filepath.Join(t.TempDir(), "b") + " --data-dir DIR")},
		{name: "store backup into it", run: weft("store backup DIR/backup --data-dir " + kept)},
		{name: "store restore", begin: store, run: weft("store restore " + backup + " --data-dir DIR")},
		{name: "store restore anew", run: weft("store restore " + backup + " --data-dir DIR/data")},
		{name: "store repair", begin: store, run: weft("store repair --accept-loss --data-dir DIR")},
		{name: "store repair of what cannot be opened", begin: func(t *testing.T, dir string) {
			store(t, dir)
			if err := os.RemoveAll(filepath.Join(dir, "jetstream")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, run: weft("store repair --accept-loss --data-dir DIR")},
		{name: "certs init", run: weft("certs init --force --dir DIR")},
		{name: "certs issue", begin: certs, run: weft("certs issue --force --dir DIR w1")},
		{name: "certs controller", run: weft("certs controller --dir DIR")},
		{name: "certs switch", begin: certs, run: weft("certs switch 1 --dir DIR")},
		{name: "export", run: weft("export compose split --force --dir DIR")},
		{name: "man", run: weft("man --markdown DIR")},
		{name: "man pages", run: weft("man DIR")},
		{name: "size --plot", run: weft("size --rate 970 --service 0.6ms --plot DIR/size.svg")},
		{name: "support", run: weft("support --out DIR/support.tar.gz --server http://127.0.0.1:1"), fails: true, names: []string{"support.tar.gz"}},
		{name: "lab capture", run: weft("lab capture h1 -w DIR/h1.pcapng --name no-such-lab"), fails: true},
		{name: "experiment run", run: func(t *testing.T, dir string) error {
			e := experiments.Experiment{
				Name: "none", Columns: []string{"x"}, Cases: func(experiments.Parameters) []experiments.Case { return nil },
				Sum: func(*experiments.Context) error { return nil },
			}
			_, err := experiments.Run(context.Background(), e, experiments.Parameters{Runs: 1}, dir, 0, &experiments.Progress{})
			return err
		}},
		{name: "experiment run --fresh", names: []string{"none"}, run: func(_ *testing.T, dir string) error {
			return experiments.Discard(experiments.Experiment{Name: "none"}, dir)
		}},
		{name: "experiment serve", run: func(_ *testing.T, dir string) error {
			s, err := runs.Open(runs.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			return s.Close()
		}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			begin := func(dir string) {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if c.begin != nil {
					c.begin(t, dir)
				}
				giveAway(t, dir)
			}
			base := t.TempDir()
			if err := os.Chmod(filepath.Dir(base), 0o755); err != nil { // others pass
				t.Fatal(err)
			}
			dir := filepath.Join(base, "dir")
			begin(dir)
			if err := c.run(t, dir); (err != nil) != c.fails {
				t.Fatal(err)
			}
			names := c.names
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
			for _, beside := range []string{"lock", "jetstream", "manifests", "manifests/" + keptBucket + ".manifest.new", "store.json.new", "room"} {
				if strings.HasPrefix(c.name, "store") && !slices.Contains(names, beside) {
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
					giveAway(t, tried)
					err := c.run(t, tried)
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

// What root reads on a path of another user, it reads as that user: no command shows a
// line of root's file to which a link of that user leads, and none waits at a FIFO.
func TestRootReadsNothingForOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("wants root, which alone has files to show")
	}
	const secret = "secret-of-root"
	base := t.TempDir()
	theirs := filepath.Join(base, "theirs")
	for _, err := range []error{
		os.Chmod(filepath.Dir(base), 0o755), os.Mkdir(theirs, 0o755),
		os.WriteFile(filepath.Join(base, "shadow"), []byte(secret+": "+secret+"\n-----BEGIN "+secret+"-----\nAAAA\n-----END "+secret+"-----\n"), 0o600),
		os.Symlink("../shadow", filepath.Join(theirs, "link")), syscall.Mkfifo(filepath.Join(theirs, "fifo"), 0o666),
		os.Symlink("link", filepath.Join(theirs, "link.crt")), os.Symlink("fifo", filepath.Join(theirs, "fifo.crt")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	giveAway(t, theirs)
	const nowhere = " --server http://127.0.0.1:1"
	for _, line := range []string{
		"check FILE", "plan show FILE", "plan diff FILE FILE", "config check FILE", "config show --file FILE", "lab graph FILE",
		"lab up FILE", "lab apply --dry-run FILE", "lab map ring:3 --machines FILE", "apply FILE" + nowhere, "l2vpn apply FILE" + nowhere,
		"certs show FILE", "store restore FILE --data-dir " + filepath.Join(base, "new"), "nf ids lo lo --rules FILE", "size --rate 1 --profile FILE",
		"lab traffic h1 h2 --words FILE", "node run FILE", "up --config FILE --data-dir " + filepath.Join(base, "data"),
		"get hosts --token-file FILE" + nowhere, "get hosts --ca FILE --server https://127.0.0.1:1", "get hosts --client-cert FILE.crt --server https://127.0.0.1:1",
	} {
		for name, want := range map[string]string{"link": "permission denied", "fifo": "it is a FIFO"} {
			words := strings.Fields(strings.ReplaceAll(line, "FILE", filepath.Join(theirs, name)))
			status, out, errs := weftProcess(words...)
			if said := out + errs; status == 0 || strings.Contains(said, secret) || !strings.Contains(said, want) {
				t.Errorf("weft %s with %s: status %d: %.500s; want %q", line, name, status, said, want)
			}
		}
	}

	data := filepath.Join(base, "kept")
	keep(t, data, "a", 3)
	if err := syscall.Mkfifo(filepath.Join(data, "manifests", "a.manifest"), 0o600); err != nil {
		t.Fatal(err)
	}
	giveAway(t, data)
	if status, out, errs := weftProcess("store", "status", "--data-dir", data); status == 0 || !strings.Contains(errs, "neither a file nor a directory") {
		t.Errorf("a FIFO in a data directory: status %d: %s%s", status, out, errs)
	}
}
