package test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// trustDamping has the only link between two switches go down again and again:
// damping says so and leaves it in use.
func trustDamping(t *testing.T, f *faults) {
	d := f.deploy(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n",
		"--set", "discovery.flap.hold=10m", "--set", "discovery.flap.max_hold=1h")
	l := d.network("linear:2")
	events := d.run("events", d.weft, "events", "--subjects", "discovery.LinkChanged", "--server", "http://"+d.north)
	links := func() (dampened int) {
		m, _ := api.NewDiscoveryClient(d.conn).ListLinks(context.Background(), &api.ListLinksRequest{}) // none if it fails
		for _, k := range m.GetLinks() {
			if k.State == "dampened" && k.Weight > 1000 {
				dampened++
			}
		}
		return dampened
	}
	for n := 0; n < 8 || n < 60 && links() < 2; n++ {
		for _, change := range []func(context.Context, string, string) error{l.LinkDown, l.LinkUp} {
			if err := change(context.Background(), "s1", "s2"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(120 * time.Millisecond)
		}
	}
	eventually(t, "both directions dampened", func() bool { return links() == 2 })
	mended(t, l)
	if n := links(); n != 2 {
		t.Errorf("%d directions dampened after the hosts have reached each other, want 2", n)
	}
	eventually(t, "an event and a log line of the damping", func() bool {
		return strings.Contains(events.Failed(errors.New("output")).Error(), "dampened") && strings.Contains(d.logs(), "goes down too often and is dampened")
	})
}
