package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/internal/asowner/asownertest"
	"github.com/weft-sdn/weft/internal/testprogram"
)

// TestRootFollowsNobody: whatever root does in a directory of another user, it leaves
// root's own files alone.
func TestRootFollowsNobody(t *testing.T) {
	addBenchToPath(t)
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
	cases := []asownertest.Case{
		{Name: "store status", Begin: store, Run: weft("store status --data-dir DIR")},
		{Name: "store backup", Begin: store, Run: weft("store backup " + filepath.Join(t.TempDir(), "b") + " --data-dir DIR")},
		{Name: "store backup into it", Run: weft("store backup DIR/backup --data-dir " + kept)},
		{Name: "store restore", Begin: store, Run: weft("store restore " + backup + " --data-dir DIR")},
		{Name: "store restore anew", Run: weft("store restore " + backup + " --data-dir DIR/data")},
		{Name: "store repair", Begin: store, Run: weft("store repair --accept-loss --data-dir DIR")},
		{Name: "store repair of what cannot be opened", Begin: func(t *testing.T, dir string) {
			store(t, dir)
			if err := os.RemoveAll(filepath.Join(dir, "jetstream")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, Run: weft("store repair --accept-loss --data-dir DIR")},
		{Name: "certs init", Run: weft("certs init --force --dir DIR")},
		{Name: "certs issue", Begin: certs, Run: weft("certs issue --force --dir DIR w1")},
		{Name: "certs controller", Run: weft("certs controller --dir DIR")},
		{Name: "certs switch", Begin: certs, Run: weft("certs switch 1 --dir DIR")},
		{Name: "export", Run: weft("export compose split --force --dir DIR")},
		{Name: "man", Run: weft("man --markdown DIR")},
		{Name: "man pages", Run: weft("man DIR")},
		{Name: "size --plot", Run: weft("size --rate 970 --service 0.6ms --plot DIR/size.svg")},
		{Name: "support", Run: weft("support --out DIR/support.tar.gz --server http://127.0.0.1:1"), Fails: true, Names: []string{"support.tar.gz"}},
		{Name: "lab capture", Run: weft("lab capture h1 -w DIR/h1.pcapng --name no-such-lab"), Fails: true},
	}
	for i, c := range cases {
		if strings.HasPrefix(c.Name, "store") {
			cases[i].Beside = []string{"lock", "jetstream", "manifests", "manifests/" + keptBucket + ".manifest.new", "store.json.new", "room"}
		}
	}
	asownertest.FollowsNobody(t, cases...)
}

// addBenchToPath has commands of the laboratory find weft-bench.
func addBenchToPath(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", filepath.Dir(testprogram.WithBench(t))+":"+os.Getenv("PATH"))
}

// What root reads on a path of another user, it reads as that user: no command shows a
// line of root's file to which a link of that user leads, and none waits at a FIFO.
func TestRootReadsNothingForOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("wants root, which alone has files to show")
	}
	addBenchToPath(t)
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
	asownertest.GiveAway(t, theirs)
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
	asownertest.GiveAway(t, data)
	if status, out, errs := weftProcess("store", "status", "--data-dir", data); status == 0 || !strings.Contains(errs, "neither a file nor a directory") {
		t.Errorf("a FIFO in a data directory: status %d: %s%s", status, out, errs)
	}
}
