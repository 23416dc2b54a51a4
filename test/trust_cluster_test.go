package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/test/testbed"
)

// trustFirstDay follows the recipe of a NATS cluster with certificates in
// docs/guide/cluster.md as it is written, kills a server and wipes its disk, and
// has strangers turned away. And weft get health writes nothing.
func trustFirstDay(t *testing.T, f *faults) {
	r := f.recipe(t, "cluster.md")
	r.follow()

	// Health asks, and writes nothing.
	before := r.state()
	for range 5 {
		r.must("weft get health")
	}
	if after := r.state(); after != before {
		t.Errorf("weft get health has changed the state:\n%s\nbefore:\n%s", after, before)
	}

	// Who has no worker's certificate is turned away, and so is a server that has one.
	bus := "tls://192.0.2.1:4222,tls://192.0.2.2:4222,tls://192.0.2.3:4222"
	r.must("weft certs issue portal --app --dir certs --host 192.0.2.7; mkdir app; cp certs/ca.crt app; for x in crt key; do cp certs/portal.$x app/routing.$x; done; weft certs init --dir other; weft certs issue routing --dir other; cp certs/ca.crt other")
	for _, dir := range []string{"app", "other"} {
		if out, err := r.sh("weft worker --user root --process routing --wait 1s --certs " + dir + " --bus " + bus); err == nil {
			t.Errorf("a worker with certificates of %s is let in: %s", dir, out)
		}
	}
	stranger := r.start("NAME=nats-4 ADDRESS=192.0.2.7 CERT=certs/nats-3.crt KEY=certs/nats-3.key ROUTE_CERT=certs/nats-3.crt ROUTE_KEY=certs/nats-3.key nats-server -c nats.conf")
	eventually(t, "a server with a worker's certificate turned away", func() bool {
		said := ""
		for _, server := range r.started[:3] {
			said += fmt.Sprint(server.Failed(errors.New("what it said")))
		}
		return strings.Contains(said, "TLS route handshake error")
	})
	r.must("weft get health | grep '3 servers up'")
	stranger.Stop()

	// One server and its disk are lost.
	lost := r.started[2]
	lost.Stop()
	if err := os.RemoveAll(filepath.Join(r.dir, "nats-3")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "health tells of the server that is missing", func() bool {
		out, _ := r.sh("weft get health") // warns
		return strings.Contains(out, "2 servers up, quorum, 3 replicas")
	})
	eventually(t, "a token is made without it", func() bool {
		_, err := r.sh("weft token create --name x --role read > token")
		return err == nil
	})
	r.start(r.lines[2])
	eventually(t, "the server has its copies again", func() bool {
		out, err := r.sh("weft get health")
		return err == nil && strings.Contains(out, "3 servers up, quorum, 3 replicas")
	})
}

// recipe is a page of the guide that is followed in a network namespace and a
// directory of its own.
type recipe struct {
	t       *testing.T
	page    string
	ns, dir string
	path    string // of programs
	lines   []string
	started []*testbed.Process // by lines
}

// recipe prepares a page: the programs, and the addresses that it names.
func (f *faults) recipe(t *testing.T, page string) *recipe {
	t.Helper()
	r := &recipe{t: t, ns: fmt.Sprintf("recipe-%d", os.Getpid()), dir: t.TempDir(), path: t.TempDir()}
	text, err := os.ReadFile(filepath.Join("..", "docs", "guide", page))
	if err != nil {
		t.Fatal(err)
	}
	r.page = string(text)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(r.path, "nats-server"), "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("build of nats-server: %v\n%s", err, out)
	}
	if err := os.Symlink(f.weft, filepath.Join(r.path, "weft")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(r.dir), filepath.Dir(f.weft)} { // of other users, too
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("ip", "netns", "add", r.ns).CombinedOutput(); err != nil {
		t.Fatalf("ip netns add: %v: %s", err, out)
	}
	t.Cleanup(func() {
		for i := range r.started {
			r.started[len(r.started)-1-i].Stop()
		}
		if out, err := exec.Command("ip", "netns", "delete", r.ns).CombinedOutput(); err != nil {
			t.Errorf("ip netns delete: %v: %s", err, out)
		}
	})
	r.must("ip link set lo up; for i in 1 2 3 7; do ip addr add 192.0.2.$i/32 dev lo; done")
	return r
}

var (
	fence  = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	spaces = regexp.MustCompile(`[ …]+`)
)

// follow writes the page's files, runs its commands and starts what is to run on.
// The lines of an output must be in what the command before it prints, at last.
func (r *recipe) follow() {
	r.t.Helper()
	command := ""
	for _, b := range fence.FindAllStringSubmatch(r.page, -1) {
		info, text := b[1], b[2]
		switch _, file, named := strings.Cut(info, " file="); {
		case named:
			if err := os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644); err != nil {
				r.t.Fatal(err)
			}
		case info == "sh start":
			for line := range strings.Lines(text) {
				r.start(strings.TrimSpace(line))
			}
		case info == "sh run":
			if command = text; !strings.Contains(text, "weft get") {
				r.must(text)
			}
		case info == "text output":
			out := ""
			eventually(r.t, fmt.Sprintf("%s prints %s", command, text), func() bool {
				out, _ = r.sh(command)
				for line := range strings.Lines(text) {
					if !strings.Contains(spaces.ReplaceAllString(out, " "), strings.TrimSpace(spaces.ReplaceAllString(line, " "))) {
						return false
					}
				}
				return true
			})
		}
	}
	if len(r.started) != 5 {
		r.t.Fatalf("%d processes are started by the page; want three servers and two of the controller", len(r.started))
	}
}

// start starts a line that runs on.
func (r *recipe) start(line string) *testbed.Process {
	r.t.Helper()
	name, _, _ := strings.Cut(line, " ")
	p, err := testbed.StartProcess(name, -1, "ip", "netns", "exec", r.ns, "sh", "-c", r.prologue()+"exec env "+line)
	if err != nil {
		r.t.Fatal(err)
	}
	r.lines, r.started = append(r.lines, line), append(r.started, p)
	return p
}

func (r *recipe) prologue() string { return "set -eu; cd " + r.dir + "; PATH=" + r.path + ":$PATH; " }

// sh runs a script and returns what it prints.
func (r *recipe) sh(script string) (string, error) {
	out, err := exec.Command("ip", "netns", "exec", r.ns, "sh", "-c", r.prologue()+script).CombinedOutput()
	return string(out), err
}

func (r *recipe) must(script string) string {
	r.t.Helper()
	out, err := r.sh(script)
	if err != nil {
		for _, p := range r.started {
			if p.Ended() != nil {
				r.t.Log(p.Failed(p.Ended()))
			}
		}
		r.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// state returns the durable state, but for what processes renew as long as they
// run.
func (r *recipe) state() string {
	r.t.Helper()
	return r.must(`rm -f backup; weft store backup backup >&2; grep -v '"key":"alive"\|"sha256"' backup`)
}
