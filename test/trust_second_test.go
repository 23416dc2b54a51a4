package test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// trustSecond has the switches of a network leave for good, and others come
// that have their numbers and other links and hosts.
func trustSecond(t *testing.T, f *faults) {
	d := f.deploy(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n",
		"--set", "discovery.lock_after=1s") // what a minute with the first network would do
	first, down := d.lab("ring:6")
	d.whole(first)
	pingAll(t, first, false)
	time.Sleep(time.Second) // lock_after
	down()
	second, _ := d.lab("tree:2,2")
	began := time.Now()
	mended(t, second)
	t.Logf("all hosts of the second network reached each other after %v", time.Since(began).Round(time.Millisecond))

	// The switches that have not returned fail the health until they are forgotten.
	ctx := context.Background()
	if _, err := d.command(ctx, "get", "health"); err == nil {
		t.Error("the health is green while three switches are away")
	}
	for _, gone := range []string{"4", "5", "6"} {
		if out, err := d.command(ctx, "explain", "port", gone, "1"); err != nil || !strings.Contains(string(out), "weft switch forget") {
			t.Errorf("explain port: %v: %s, want that it may be forgotten", err, out)
		}
		if out, err := d.command(ctx, "switch", "forget", gone); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	eventually(t, "the health green", func() bool {
		_, err := d.command(ctx, "get", "health")
		return err == nil
	})
}

// lab brings switches up for the controller, and returns what takes them down
// before the test ends.
func (d *deployment) lab(spec string) (l *lab.Lab, down func()) {
	d.t.Helper()
	topo, err := topology.Resolve(spec)
	if err != nil {
		d.t.Fatal(err)
	}
	l, err = lab.Up(context.Background(), topo, lab.Options{
		Name: fmt.Sprintf("f%d", time.Now().UnixNano()%1e9), Temporary: true,
		Controllers: []string{"tcp:" + d.openflow}, KeeperCommand: []string{os.Args[0]},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	down = sync.OnceFunc(func() {
		if err := l.Down(context.Background()); err != nil {
			d.t.Error(err)
		}
	})
	d.t.Cleanup(down)
	return l, down
}
