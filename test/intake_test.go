package test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// intakeKilled has real switches send the packets of their entries to an intake
// and everything else to the southbound, kills the intake, and starts it again.
// The first packet of a pair arrives each time, and routes are the same whoever
// the packets come to.
func (f *faults) intakeKilled(t *testing.T) {
	intake := freeAddress(t)
	d := f.prepare(t, fmt.Sprintf(`name: functional
transport: grpc
events: grpc
workers:
  switches: {services: [southbound, discovery, flowrules]}
  packets:
    services: [intake]
    machine: by-hand
    settings: {intake: {listen: ["tcp:%s"]}}
  routing: {services: [hosts, paths, forwarding]}
  north: {services: [stats, gateway]}
config:
  forwarding: {idle_timeout: 1s}
`, intake))
	d.supervise()
	d.byHand("packets", d.weft)
	d.allUp()
	l := d.quiet("ring:4", d.openflow, intake)
	d.directed(true)
	d.firstPacket(l, "h1", "h3")
	routes := d.allRoutes(l)
	if n := d.figure("weft_intake_packet_ins_total"); n < 4 {
		t.Errorf("%v packet-ins to the intake", n)
	}

	const lapsed = "weft_flowrules_directions_lapsed"
	before := d.figure(lapsed) // an intake that gets no time is taken for one that is away
	killed := time.Now()
	if err := syscall.Kill(d.pids()["packets"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.directed(false)
	t.Logf("the southbound has the packets %v after the intake was killed", time.Since(killed).Round(10*time.Millisecond))
	if n := d.figure(lapsed) - before; n < 4 {
		t.Errorf("%v switches counted whose packets went back, want 4", n)
	}
	d.noRoutes()
	d.firstPacket(l, "h4", "h2")
	if again := d.allRoutes(l); !maps.Equal(routes, again) {
		t.Errorf("with packets by the intake the routes are\n%v\nand by the southbound\n%v", routes, again)
	}

	d.byHand("packets", d.weft)
	d.directed(true)
	d.noRoutes()
	d.firstPacket(l, "h2", "h1")
	if again := d.allRoutes(l); !maps.Equal(routes, again) {
		t.Errorf("with packets by the intake again the routes are\n%v\nand were\n%v", again, routes)
	}
	for name, least := range map[string]float64{"weft_intake_packet_ins_total": 4, "weft_intake_carried_total": 1} {
		if n := d.figure(name); n < least {
			t.Errorf("%s is %v", name, n)
		}
	}
	// What an intake is sent before it has its number, the southbound has, too: unwanted.
	for _, name := range []string{"weft_intake_decisions_shed_total", "weft_intake_operations_failed_total"} {
		if n := d.figure(name); n > 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
}

// directed waits until all entries of the switches that send packets to a
// controller, but for LLDP, name the intake, or none does.
func (d *deployment) directed(intake bool) {
	d.t.Helper()
	south := api.NewSouthboundClient(d.conn)
	var odd string
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(20 * time.Millisecond) {
		odd = ""
		traps := 0
		for i := range 4 {
			r, err := south.ReadFlows(context.Background(), &api.ReadFlowsRequest{Dpid: fmt.Sprint(i + 1)})
			if err != nil {
				odd = err.Error()
			}
			for _, f := range r.GetFlows() {
				text := strings.Join(f.Actions, ",")
				if !strings.Contains(text, "controller") {
					continue
				}
				traps++
				if named := strings.Contains(text, "id=1)"); named != (intake && f.Match["eth_type"] != "0x88cc") {
					odd = fmt.Sprintf("switch %s: %v does %s", f.Dpid, f.Match, text)
				}
			}
		}
		if odd == "" && traps >= 4*9 {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("packets are directed to the intake: want %v; %s\n%s", intake, odd, d.logs())
		}
	}
}

// firstPacket checks that the first packet of a pair, before which there is no
// route, is answered.
func (d *deployment) firstPacket(l *lab.Lab, from, to string) {
	d.t.Helper()
	r, err := l.Ping(context.Background(), from, to, traffic.PingOptions{Count: 1, Timeout: patience})
	if err != nil || r.Received != 1 {
		d.t.Errorf("the first packet from %s to %s is not answered: %+v, %v", from, to, r, err)
	}
}

// routes returns where the routes lead, by their ends.
func (d *deployment) routes() map[string]string {
	d.t.Helper()
	r, err := api.NewForwardingClient(d.conn).ListRoutes(context.Background(), &api.ListRoutesRequest{})
	if err != nil {
		d.t.Fatal(err)
	}
	list := map[string]string{}
	for _, x := range r.Routes {
		way := ""
		for _, h := range x.Hops {
			way += fmt.Sprintf(" %s:%d", strings.TrimLeft(h.Dpid, "0"), h.OutPort)
		}
		list[x.Src+" "+x.Dst] = way
	}
	return list
}

// allRoutes has all hosts ping each other and returns where the routes lead.
func (d *deployment) allRoutes(l *lab.Lab) (list map[string]string) {
	d.t.Helper()
	n := len(l.Topology().Hosts)
	list = map[string]string{}
	eventually(d.t, "routes of all pairs", func() bool { // on a busy machine some end before others begin
		pingAll(d.t, l, false)
		maps.Copy(list, d.routes())
		return len(list) == n*(n-1)
	})
	return list
}

// noRoutes waits until the routes have ended for want of packets.
func (d *deployment) noRoutes() {
	d.t.Helper()
	eventually(d.t, "no routes", func() bool { return len(d.routes()) == 0 })
}

// figure returns the sum of a counter's values.
func (d *deployment) figure(name string) (sum float64) {
	d.t.Helper()
	list := d.allFigures()
	for key, v := range list {
		if key == name || strings.HasPrefix(key, name+"{") {
			sum += v
		}
	}
	return sum
}
