package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
)

// runPages are the pages of the guide whose blocks marked "sh run" are run, one
// after the other, in order.
var runPages = []string{"firewall", "balancer", "nat", "router", "qos", "tenants", "planning", "sizing", "configuration", "security"}

// TestGuide runs the guide's commands against a controller and a lab of three
// switches with two hosts each: every block marked "sh run" has to end well, and
// the block marked "text output" behind one has the lines, in order, that must
// be in what it prints, with … for what differs. A block marked file=NAME is a
// file that the commands find. All runs in a network namespace of its own, so
// that the addresses are those of the guide.
func TestGuide(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("wants root: the guide's commands are run on real switches, in network namespaces")
	}
	g := newGuide(t)
	ran := 0
	for _, page := range runPages {
		t.Run(page, func(t *testing.T) {
			began, output := time.Now(), ""
			for _, b := range blocks(t, "docs/guide/"+page+".md") {
				switch {
				case b.file != "":
					if err := os.WriteFile(filepath.Join(g.dir, b.file), []byte(b.text), 0o644); err != nil {
						t.Fatal(err)
					}
				case b.language == "sh" && b.mark == "run":
					ran++
					var err error
					if output, err = g.sh(b.text); err != nil {
						t.Fatalf("%s:%d: %v\n%s", b.document, b.line, err, output)
					}
				case b.language == "text" && b.mark == "output":
					if line := missing(output, b.text); line != "" {
						t.Errorf("%s:%d: the output does not have %q, or not at that place; it is\n%s", b.document, b.line, line, output)
					}
				}
			}
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
	if ran < 15 {
		t.Errorf("only %d blocks are marked to be run", ran)
	}
}

// missing returns the first line of want that does not come in the output, or
// not behind those before it; empty if all do. Spaces are alike.
func missing(output, want string) string {
	lines := strings.Split(output, "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		fields := strings.Fields(line)
		for i, f := range fields {
			fields[i] = strings.ReplaceAll(regexp.QuoteMeta(f), "…", ".*")
		}
		pattern := regexp.MustCompile(`^\s*` + strings.Join(fields, `\s+`) + `\s*$`)
		found := false
		for len(lines) > 0 && !found {
			found = pattern.MatchString(lines[0])
			lines = lines[1:]
		}
		if !found {
			return line
		}
	}
	return ""
}

// guide is where the guide's commands run.
type guide struct {
	ns, dir, bin string
}

// newGuide starts a controller and a lab, and waits until it is discovered.
func newGuide(t *testing.T) *guide {
	t.Helper()
	binary := testprogram.Weft(t)
	g := &guide{ns: fmt.Sprintf("guide%d", os.Getpid()), dir: t.TempDir(), bin: filepath.Dir(binary)}
	if out, err := exec.Command("ip", "netns", "add", g.ns).CombinedOutput(); err != nil {
		t.Fatalf("ip netns add: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "delete", g.ns).CombinedOutput(); err != nil {
			t.Errorf("ip netns delete: %v: %s", err, out)
		}
	})
	must := func(script string) {
		t.Helper()
		if out, err := g.sh(script); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	must("ip link set lo up")
	var log bytes.Buffer
	data := t.TempDir()
	if err := os.Chmod(filepath.Dir(data), 0o711); err != nil { // the controller leaves root
		t.Fatal(err)
	}
	up := g.command("exec weft up --data-dir " + data)
	up.Stdout, up.Stderr = &log, &log
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = up.Wait()
		if t.Failed() {
			t.Logf("the controller's log:\n%s", log.String())
		}
	})
	t.Cleanup(func() {
		if out, err := g.sh("weft lab down " + g.ns); err != nil {
			t.Errorf("weft lab down: %v: %s", err, out)
		}
	})
	must("weft lab up linear:3,2 --name " + g.ns)
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(100 * time.Millisecond) {
		out, err := g.sh("weft get links")
		if err == nil && strings.Count(out, " up ") == 4 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the lab is not discovered: %v\n%s", err, out)
		}
	}
	must("weft lab ping --all -W 10s --name " + g.ns)
	return g
}

// command is a script to be run in the guide's directory and namespace, with
// its own weft.
func (g *guide) command(script string) *exec.Cmd {
	c := exec.Command("nsenter", "--net=/run/netns/"+g.ns, "sh", "-c", "set -eu\n"+script)
	c.Dir = g.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "WEFT_") && !strings.HasPrefix(v, "PATH=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "PATH="+g.bin+":"+os.Getenv("PATH"))
	return c
}

// sh runs a script and returns what it prints.
func (g *guide) sh(script string) (string, error) {
	var out bytes.Buffer
	c := g.command(script)
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		return "", err
	}
	timer := time.AfterFunc(testwait.Limit, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	err := c.Wait()
	return out.String(), err
}
