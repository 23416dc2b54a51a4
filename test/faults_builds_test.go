package test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/test/testbed"
)

// otherBuilds are programs that differ from the one under test, each built when
// it is first needed.
type otherBuilds struct {
	previous, ahead sync.Once
	program         [2]string
}

// onHand is the plan of four workers, three of which somebody else runs.
func onHand(transport string) string {
	text := fourWorkers(transport, transport)
	for _, worker := range []string{"southbound", "topology", "routing"} {
		text = strings.Replace(text, worker+": {", worker+": {machine: by-hand, ", 1)
	}
	return text
}

// previousBuild has one worker of the build before this one beside the new
// ones, and has it succeeded by a new one and back, as in an upgrade.
func (f *faults) previousBuild(t *testing.T, transport string) {
	f.builds.previous.Do(func() { f.builds.program[0] = f.previous(t) })
	f.succeed(t, transport, f.builds.program[0], "of the previous build")
}

// clockOff has one worker after the other live an hour later than the others.
func (f *faults) clockOff(t *testing.T, transport string) {
	f.builds.ahead.Do(func() { f.builds.program[1] = f.ahead(t) })
	f.succeed(t, transport, f.builds.program[1], "an hour ahead")
}

// succeed replaces one worker after the other by one of another program and
// back, under load: all of them over gRPC, and over the other transports, to
// save time, the one in the middle, to which packets cross and from which they
// cross again.
func (f *faults) succeed(t *testing.T, transport, program, what string) {
	if program == "" {
		t.Fatal("the other program was not built; the test that built it says why")
	}
	d := f.prepare(t, onHand(transport))
	d.supervise()
	byHand := map[string]*testbed.Process{}
	for _, process := range []string{"southbound", "topology", "routing"} {
		byHand[process] = d.byHand(process, f.weft)
	}
	d.allUp()
	l := d.network("ring:4")
	source := d.connect()
	e, w := d.establish(l), d.watch()
	processes := []string{"topology"}
	if transport == plan.GRPC {
		processes = []string{"routing", "topology", "southbound"}
	}
	for _, process := range processes {
		for _, next := range []string{program, f.weft} {
			var load *load
			if process != "southbound" {
				load = d.load(source)
				time.Sleep(300 * time.Millisecond)
			}
			o := d.replace(w, process, byHand[process], func() { byHand[process] = d.byHand(process, next) })
			if process == "southbound" { // and with it the connections of switches
				source.Close()
				source = d.connect()
				load = d.load(source)
			}
			time.Sleep(700 * time.Millisecond)
			name := process + " " + what
			if next == f.weft {
				name += " replaced again"
			}
			d.report(load.end(), name, o)
		}
	}
	pingAll(t, l, false)
	e.undisturbed(t)
	w.truthful("north")
}

// replace ends a worker that was started by hand and starts another.
func (d *deployment) replace(w *watch, process string, p *testbed.Process, start func()) outage {
	d.t.Helper()
	old := d.pids()[process]
	o := outage{process: process, from: time.Now()}
	if err := syscall.Kill(old, syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, process+" ended", func() bool { return p.Ended() != nil })
	o.gone = time.Now()
	start()
	o.to = time.Now()
	o.pid = d.started[len(d.started)-1].PID()
	d.again(w, &o, 0)
	return o
}

// previous builds the commit before the last that has workers; where there is
// no history, this one with another version.
func (f *faults) previous(t *testing.T) string {
	git := func(args ...string) ([]byte, error) {
		return exec.Command("git", append([]string{"-C", ".."}, args...)...).Output()
	}
	list, err := git("rev-list", "--max-count=10", "HEAD~1", "--", ".")
	if err != nil {
		list = nil
	}
	for _, commit := range strings.Fields(string(list)) {
		if _, err := git("cat-file", "-e", commit+":cmd/weft/main.go"); err != nil {
			break
		}
		files, err := git("archive", commit)
		folder := filepath.Join(f.dir, commit)
		if err == nil {
			err = untar(files, folder)
		}
		if err != nil {
			t.Fatalf("files of commit %s: %v", commit, err)
		}
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(f.dir, "previous"), "./cmd/weft")
		build.Dir = folder
		if out, err := build.CombinedOutput(); err != nil {
			t.Logf("commit %s does not build, so the one before it: %v\n%s", commit[:10], err, out)
			continue
		}
		t.Logf("the previous build is of commit %s", commit[:10])
		return filepath.Join(f.dir, "previous")
	}
	t.Log("there is no earlier commit with workers: the previous build is this one with another version")
	return f.build(t, "previous", ".", "-ldflags", "-X github.com/weft-sdn/weft/cmd/weft/run.version=previous")
}

// ahead builds the program with a clock that is an hour ahead: with another
// time.Now.
func (f *faults) ahead(t *testing.T) string {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const read = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if bytes.Count(text, []byte(read)) != 1 {
		t.Fatalf("%s is not as expected; see how Now reads the clock there", file)
	}
	changed := filepath.Join(f.dir, "time.go")
	overlay := filepath.Join(f.dir, "overlay.json")
	err = errors.Join(
		os.WriteFile(changed, bytes.Replace(text, []byte(read), []byte(read+"\tsec += 3600\n"), 1), 0o644),
		os.WriteFile(overlay, []byte(`{"Replace": {"`+file+`": "`+changed+`"}}`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return f.build(t, "ahead", ".", "-overlay", overlay)
}

// untar unpacks an archive into a new folder.
func untar(archive []byte, folder string) error {
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(folder, filepath.FromSlash(h.Name))
		if !filepath.IsLocal(h.Name) || h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, b, 0o644))
		}
		if err != nil {
			return err
		}
	}
}
