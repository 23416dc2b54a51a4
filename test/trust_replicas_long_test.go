//go:build long

package test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/api"
)

// TestTrustReplicas is the part of TestTrust about replicas of the store that
// takes a minute. Each of three servers is killed and wiped in turn; then the master
// of the switches is killed, and its standby takes over.
func TestTrustReplicas(t *testing.T) {
	f := &faults{dir: openDir(t)}
	f.weft = f.build(t, "weft", ".")
	r := f.replicated(t)
	r.write()
	for _, s := range r.servers {
		r.wiped(s)
	}
	if err := syscall.Kill(r.pids()[r.master], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"southbound": "southbound-standby", "southbound-standby": "southbound"}[r.master]
	r.role(other, "master")
	r.write()
	r.kept()
}

// TestTrustPartition cuts servers of the store off, which wake up later with what
// they knew. With one away, writes go on. With two away, nothing can be written,
// health says so, switches keep their entries, and the master goes on by the
// promises of its standby; when they are back nothing is lost.
func TestTrustPartition(t *testing.T) {
	f := &faults{dir: t.TempDir()}
	f.weft = f.build(t, "weft", ".")
	r := f.replicated(t)
	r.write()
	cut := func(signal syscall.Signal, servers ...*natsServer) {
		t.Helper()
		for _, s := range servers {
			if err := syscall.Kill(s.process.PID(), signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut(syscall.SIGSTOP, r.servers[0])
	r.write()
	cut(syscall.SIGCONT, r.servers[0])
	r.stored(3)
	majority := r.servers[1:]
	cut(syscall.SIGSTOP, majority...)
	eventually(t, 60*time.Second, "health fails for want of a majority", func() bool {
		out, err := exec.Command(r.weft, "get", "health", "--server", "http://"+r.north).Output()
		return err != nil && bytes.Contains(out, []byte("be changed"))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	m, err := r.flows.AddFlows(ctx, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{Dpid: r.sw, Priority: 19999}}})
	cancel()
	if err == nil {
		t.Errorf("an entry is taken without a majority: %v", m)
	}
	cut(syscall.SIGCONT, majority...)
	r.stored(3)
	r.write()
	r.stays()
	r.kept()
}

// TestTrustClock sets the clock of the master's process an hour forward, back, and
// an hour back, while it runs: it stays master under its epoch, the standby does
// not take over, and no entry is withdrawn or written anew.
func TestTrustClock(t *testing.T) {
	f := &faults{dir: t.TempDir()}
	f.weft = f.jumping(t)
	r := f.replicated(t)
	r.write()
	before := r.allFigures()
	for _, signal := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGUSR2, syscall.SIGUSR1} {
		for _, process := range []string{r.master, "rest"} {
			if err := syscall.Kill(r.pids()[process], signal); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second) // several leases, and the sweep of what is retained
			r.write()
			r.stays()
			r.kept()
		}
	}
	for name, n := range r.allFigures() {
		if strings.HasPrefix(name, "weft_southbound_lease_suspensions_total") && n > before[name] {
			t.Errorf("%s has grown from %v to %v", name, before[name], n)
		}
	}
	if m, err := api.NewDiscoveryClient(r.conn).ListLinks(t.Context(), &api.ListLinksRequest{}); err != nil || len(m.Links) != 2 {
		t.Errorf("links after the clock has jumped: %v, %v", m, err)
	}
}

// jumping builds cmd/weft with a clock that SIGUSR1 sets an hour forward, and
// SIGUSR2 back.
func (f *faults) jumping(t *testing.T) string {
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
	main, err := filepath.Abs(filepath.Join("..", "cmd", "weft", "jump.go"))
	if err != nil {
		t.Fatal(err)
	}
	clock, jump, overlay := filepath.Join(f.dir, "time.go"), filepath.Join(f.dir, "jump.go"), filepath.Join(f.dir, "overlay.json")
	err = errors.Join(
		os.WriteFile(clock, append(bytes.Replace(text, []byte(read), []byte(read+"\tsec += *Ahead\n"), 1), "\n// Ahead is by how many seconds the clock is wrong.\nvar Ahead = new(int64)\n"...), 0o644),
		os.WriteFile(jump, []byte(`package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

func init() {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range c {
			next := *time.Ahead + 3600
			if s == syscall.SIGUSR2 {
				next -= 7200
			}
			time.Ahead = &next
		}
	}()
}
`), 0o644),
		os.WriteFile(overlay, []byte(`{"Replace": {"`+file+`": "`+clock+`", "`+main+`": "`+jump+`"}}`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return f.build(t, "jumping", ".", "-overlay", overlay)
}
