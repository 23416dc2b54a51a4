package test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/test/testbed"
)

// supervisorKilled kills weft up, and with it the embedded bus: the workers go
// on, are adopted by the next one, and are kept again.
func (f *faults) supervisorKilled(t *testing.T, transport string) {
	d := f.deploy(t, fourWorkers(transport, "nats"))
	l := d.network("ring:4")
	source := d.connect()
	e, w := d.establish(l), d.watch()
	pids := d.pids()
	load := d.load(source)
	time.Sleep(500 * time.Millisecond)
	away := d.busKilled(w, transport, d.started[0], func() { d.supervise() })
	d.allUp()
	away(time.Now())
	for process, pid := range d.pids() {
		if pids[process] != pid {
			t.Errorf("%s is process %d, was %d: it has not been adopted", process, pid, pids[process])
		}
	}
	o := d.kill(w, "routing") // it is kept again
	time.Sleep(500 * time.Millisecond)
	d.report(load.end(), "bus and supervisor killed, then routing", o)
	pingAll(t, l, false)
	e.undisturbed(t)
	w.truthful("north")
}

// externalRestarted kills an external NATS server, and a worker while it is
// away, and starts the server again.
func (f *faults) externalRestarted(t *testing.T, transport string) {
	address := freeAddress(t)
	dir := openDir(t)
	server, token := startBus(t, "", dir, address, "")
	t.Cleanup(func() { server.Stop() }) // the last one, after all that needs it
	text := fourWorkers(transport, "nats") + fmt.Sprintf("bus: {url: \"nats://%s@%s\"}\n", token, address)
	d := f.deploy(t, text)
	l := d.network("ring:4")
	source := d.connect()
	e, w := d.establish(l), d.watch()
	load := d.load(source)
	time.Sleep(500 * time.Millisecond)
	old := d.pids()["routing"]
	o := outage{process: "routing"}
	away := d.busKilled(w, transport, server, func() {
		server, _ = startBus(t, "", dir, address, "")
	}, func() {
		o.from = time.Now()
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "routing gone", func() bool { return d.pids()["routing"] != old })
		o.gone = time.Now()
	})
	eventually(t, "routing started again", func() bool { o.pid = d.pids()["routing"]; return o.pid != 0 && o.pid != old })
	o.to = time.Now()
	d.again(w, &o, 1)
	d.allUp()
	away(time.Now())
	time.Sleep(500 * time.Millisecond)
	d.report(load.end(), "external bus restarted, and routing killed while it was away", o)
	pingAll(t, l, false)
	e.undisturbed(t)
	w.truthful("north")
}

// busKilled kills the process that has the bus, has other things happen, and
// starts it again after a second. The function that it returns is to be called
// when all is well again. If the transport is that of the bus, nobody can tell
// meanwhile who is up.
func (d *deployment) busKilled(w *watch, transport string, p *testbed.Process, again func(), meanwhile ...func()) func(time.Time) {
	d.t.Helper()
	from := time.Now()
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	for _, f := range meanwhile {
		f()
	}
	time.Sleep(time.Second)
	again()
	return func(ready time.Time) {
		if transport != "nats" {
			return
		}
		for process, pid := range w.known {
			if process == "routing" && len(meanwhile) > 0 {
				continue // it has an outage of its own
			}
			w.note(outage{process: process, from: from, gone: from, to: from, ready: ready, pid: pid})
		}
	}
}

// startBus starts a NATS server in a process of its own, in a namespace if one
// is named, and returns the secret of its clients. With certificates it wants
// those of its clients. The caller stops it.
func startBus(t *testing.T, namespace, dir, address, certificates string) (*testbed.Process, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, busListens))
	command := within(namespace, self, "-test.run=^TestBusProcess$", "--", dir, address, certificates)
	p, err := testbed.StartProcess("bus", -1, command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	var secret []byte
	eventually(t, "NATS started", func() bool {
		if err := p.Ended(); err != nil {
			t.Fatal(p.Failed(err))
		}
		if _, err := os.Stat(filepath.Join(dir, busListens)); err != nil {
			return false
		}
		secret, _ = os.ReadFile(filepath.Join(dir, "token"))
		return len(secret) > 0 && listens(namespace, address)
	})
	return p, strings.TrimSpace(string(secret))
}

// busListens is the file by which the process of startBus says that NATS listens.
const busListens = "listens"

// listens reports whether somebody accepts connections at an address.
func listens(namespace, address string) bool {
	return inside(namespace, func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err
	}) == nil
}

// within returns a command that runs in a namespace if one is named.
func within(namespace string, command ...string) []string {
	if namespace == "" {
		return command
	}
	return append([]string{"ip", "netns", "exec", namespace}, command...)
}

// TestBusProcess is the process of startBus; run as a test it does nothing.
func TestBusProcess(t *testing.T) {
	t.Parallel()
	if flag.NArg() != 3 {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c := bus.Config{Directory: flag.Arg(0), Listen: flag.Arg(1)}
	if dir := flag.Arg(2); dir != "" {
		identity, err := certs.Load(dir, "bus")
		if err != nil {
			t.Fatal(err)
		}
		c.TLS = identity.Server()
	}
	store, err := bus.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Directory, busListens), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
