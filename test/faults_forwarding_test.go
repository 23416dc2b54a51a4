package test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/lab"
)

// forwardingKilled has one network in two partitions, each with a forwarding of
// its own, and real switches. It kills the forwarding of one partition, with its
// paths: established flows do not notice, new ones are connected, and it finds
// its routes on the switches. Then a link across the border fails under traffic
// and comes back.
func (f *faults) forwardingKilled(t *testing.T) {
	west := freeAddress(t)
	d := f.prepare(t, "")
	d.several = true
	d.plan = d.write("plan.yaml", fmt.Sprintf(`name: forwarding
transport: grpc
events: grpc
partitions:
  east: {switches: ["1-2"]}
  west: {switches: [rest]}
workers:
  east: {partition: east, services: [southbound], settings: {southbound: {listen: ["tcp:%s"]}}}
  west: {partition: west, services: [southbound], settings: {southbound: {listen: ["tcp:%s"]}}}
  east-routing: {partition: east, services: [paths, forwarding]}
  west-routing: {partition: west, services: [paths, forwarding]}
  rest: {services: [discovery, hosts, flowrules, stats, gateway]}
`, d.openflow, west))
	d.supervise()
	d.allUp()
	l := d.quiet("ring:4", d.openflow, west) // s1 and s2 are of east, s3 and s4 of west
	d.firstPacket(l, "h1", "h3")             // nobody knows h3: the question is flooded in both partitions
	d.firstPacket(l, "h4", "h1")
	for _, process := range []string{"east-routing", "west-routing"} {
		eventually(t, process+" has programmed a route", func() bool { // its figures may be late
			return d.figure(`weft_forwarding_route_changes_total{kind="programmed",process="`+process+`"}`) > 0
		})
	}

	before, began := entries(t, l), time.Now()
	flows := steady(l, "h1", "h3", 400, 5*time.Millisecond)
	old := d.pids()["east-routing"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.firstPacket(l, "h2", "h3") // from a switch of east
	d.firstPacket(l, "h4", "h2") // to one
	if r := <-flows; r.Lost() > 0 || r.Error != "" {
		t.Errorf("%d of %d packets of an established flow are lost while east's forwarding is away %s", r.Lost(), r.Sent, r.Error)
	}
	eventually(t, "east's forwarding is back", func() bool { pid := d.pids()["east-routing"]; return pid != 0 && pid != old })
	d.allUp()
	eventually(t, "it has found the routes", func() bool {
		return d.figure(`weft_forwarding_routes{process="east-routing"}`) == d.figure(`weft_forwarding_routes{process="west-routing"}`)
	})
	passed := time.Since(began).Seconds() // however long it takes to look at them, they are older
	after := entries(t, l)
	for entry := range before {
		if now, there := after[entry]; !there || now < passed-0.1 {
			t.Errorf("entry %s is gone, or was written again: it is %.1f s old, and was there %.1f s ago", entry, now, passed)
		}
	}
	n := len(l.Topology().Hosts)
	if list := d.allRoutes(l); len(list) != n*(n-1) {
		t.Errorf("%d routes, want those between %d hosts: %v", len(list), n, list)
	}

	// The border is crossed elsewhere while a link across it is away.
	h1, h3 := d.mac(l, "h1"), d.mac(l, "h3")
	way := d.routes()[h1+" "+h3]
	a, b := "s2", "s3"
	if strings.Contains(way, " 4:") {
		a, b = "s4", "s1"
	}
	crossing := endless(t, l, "h1", "h3", 5*time.Millisecond)
	crossing.flows(20)
	if err := l.LinkDown(context.Background(), a, b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the route leads another way", func() bool { return d.routes()[h1+" "+h3] != way })
	mended(t, l)
	crossing.flows(20)
	if r := crossing.end(); r.Error != "" {
		t.Errorf("%s-%s cut under traffic: %+v", a, b, r)
	} else {
		t.Logf("%s-%s cut: %d of %d lost, outage %.0f ms", a, b, r.Lost(), r.Sent, r.Outage)
	}
	if err := l.LinkUp(context.Background(), a, b); err != nil {
		t.Fatal(err)
	}
	pingAll(t, l, false)

	for name, n := range d.allFigures() {
		if lossFigure.MatchString(name) && n > 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
}

// mac returns the Ethernet address of a host.
func (d *deployment) mac(l *lab.Lab, host string) string {
	d.t.Helper()
	h, err := l.Host(host)
	if err != nil {
		d.t.Fatal(err)
	}
	return h.MAC.String()
}
