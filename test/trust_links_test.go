package test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/packet"
)

// trustLinks has hosts on fresh ports pass on genuine probes to each other, with
// delay: no relay becomes a link, each is held with an event, and what the
// operator allows comes up. The cables of the network come up all the while.
func trustLinks(t *testing.T, f *faults) {
	d := f.deploy(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n")
	l := d.quiet("ring:4", d.openflow)
	relay(t, l, "h1", "h2", 5*time.Millisecond)
	relay(t, l, "h3", "h4", 300*time.Millisecond)
	ends := map[string]*api.Location{}
	for _, h := range []string{"h1", "h2", "h3", "h4"} {
		host := lookup(t, l, h)
		ends[h] = &api.Location{Dpid: dpid(t, l, host.Switch), Port: uint32(host.Port)}
	}
	state := func(a, b string) (s, reason string) {
		m, _ := api.NewDiscoveryClient(d.conn).ListLinks(context.Background(), &api.ListLinksRequest{}) // none if it fails
		for _, k := range m.GetLinks() {
			if k.Src.Dpid == ends[a].Dpid && k.Src.Port == ends[a].Port && k.Dst.Dpid == ends[b].Dpid && k.Dst.Port == ends[b].Port {
				return k.State, k.Reason
			}
		}
		return "", ""
	}
	// The ports come up anew, so that they are fresh.
	for _, h := range []string{"h1", "h2", "h3", "h4"} {
		host := lookup(t, l, h)
		for _, way := range []string{"down", "up"} {
			if _, err := l.OfCtl(context.Background(), host.Switch, "mod-port", fmt.Sprint(host.Port), way); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, pair := range [][2]string{{"h1", "h2"}, {"h3", "h4"}} {
		eventually(t, "the relay "+pair[0]+" - "+pair[1]+" held", func() bool {
			s, _ := state(pair[0], pair[1])
			if s == "up" || s == "one_way" {
				t.Fatalf("the relay %v is a link: %s", pair, s)
			}
			return s == "held"
		})
		_, reason := state(pair[0], pair[1])
		t.Logf("%v: %s", pair, reason)
	}
	out, err := d.command(context.Background(), "get", "links")
	if err != nil || !strings.Contains(string(out), "fastest of") {
		t.Errorf("weft get links: %s, %v; want the reason", out, err)
	}
	if !strings.Contains(d.logs(), "link is held") {
		t.Error("no log line says that a link is held")
	}
	end := func(h string) string { return fmt.Sprintf("%s:%d", ends[h].Dpid, ends[h].Port) }
	if _, err := d.command(context.Background(), "link", "allow", end("h1"), end("h2")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the link that is allowed up", func() bool {
		s, _ := state("h1", "h2")
		return s == "up"
	})
}

// relay has two hosts pass on the probes that they receive to each other.
func relay(t *testing.T, l *lab.Lab, a, b string, delay time.Duration) {
	t.Helper()
	ends := [2]*wire{attach(t, l, a), attach(t, l, b)}
	ended := make(chan struct{})
	var under sync.WaitGroup // frames under way
	for i, from := range ends {
		to := ends[1-i]
		stop := from.listen(func(frame []byte) {
			var k flow.Key
			if packet.ParseEthernet(frame, &k) && k.EthType == 0x88cc {
				copied := append([]byte(nil), frame...)
				under.Go(func() {
					select {
					case <-ended:
					case <-time.After(delay):
						to.send(copied)
					}
				})
			}
		})
		t.Cleanup(stop)
	}
	t.Cleanup(func() { // before the sockets close
		close(ended)
		under.Wait()
	})
}
