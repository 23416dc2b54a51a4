package test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// standby has real switches under a southbound with a standby, kills the master,
// and stops the next one: the other programs the switches, over the sessions that
// it holds, and established flows do not notice. The former master stands by
// afterwards. How long that takes is logged here; wefttest/virtual TestTakeover bounds it.
func (f *faults) standby(t *testing.T) {
	second := freeAddress(t)
	d := f.deploy(t, fmt.Sprintf(`name: standby
transport: grpc
events: grpc
workers:
  southbound:
    services: [southbound]
    standby: 1
    settings: {southbound: {standby_listen: ["tcp:%s"]}}
  rest: {services: [discovery, hosts, paths, forwarding, flowrules, stats, gateway]}
`, second))
	l := d.quiet("ring:4", d.openflow, second)
	pingAll(t, l, false)
	d.heldReady(4)
	e := d.establish(l)

	took := d.takeover(l, "southbound", syscall.SIGKILL)
	t.Logf("master killed: the standby has programmed all switches after %v", took.Round(time.Millisecond))
	d.role("southbound-standby", "master")
	d.heldReady(4) // by the former master, which is started again

	stopped := d.pids()["southbound-standby"]
	took = d.takeover(l, "southbound-standby", syscall.SIGSTOP)
	t.Logf("master stopped: the standby has programmed all switches after %v", took.Round(time.Millisecond))
	_ = syscall.Kill(stopped, syscall.SIGCONT) // the supervisor may have killed it
	d.role("southbound", "master")
	d.role("southbound-standby", "standby")
	d.heldReady(4)
	pingAll(t, l, false)
	e.undisturbed(t)
	if n := d.figure(`weft_southbound_lease_held{process="southbound"}`) + d.figure(`weft_southbound_lease_held{process="southbound-standby"}`); n != 1 {
		t.Errorf("%v processes hold the mastership", n)
	}
}

// heldReady waits until a standby holds the sessions of so many switches.
func (d *deployment) heldReady(switches float64) {
	d.t.Helper()
	eventually(d.t, fmt.Sprintf("%v switches held ready", switches), func() bool {
		figures, err := d.figures()
		held := 0.0
		for name, n := range figures {
			if strings.HasPrefix(name, "weft_southbound_switches_standing_by{") {
				held += n
			}
		}
		return err == nil && held == switches
	})
}

// role waits until the southbound of a process has a role.
func (d *deployment) role(process, role string) {
	d.t.Helper()
	eventually(d.t, process+" is "+role, func() bool {
		m, err := d.workers(context.Background())
		if err != nil {
			return false
		}
		for _, w := range m.Workers {
			for _, s := range w.Services {
				if w.Process == process && s.Name == "southbound" && s.Role == role {
					return w.State == "up"
				}
			}
		}
		return false
	})
}

// takeover sends a signal to the master and returns how long it takes until an
// entry of the operator's is confirmed on every switch. The entry is deleted
// again.
func (d *deployment) takeover(l *lab.Lab, master string, signal syscall.Signal) time.Duration {
	d.t.Helper()
	flows := api.NewFlowrulesClient(d.conn)
	req := &api.AddFlowsRequest{}
	for _, sw := range l.Topology().Switches {
		req.Flows = append(req.Flows, &api.FlowEntry{Dpid: sw.DPID.String(), Priority: 20001, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.1"}})
	}
	if err := syscall.Kill(d.pids()[master], signal); err != nil {
		d.t.Fatal(err)
	}
	began := time.Now()
	var took atomic.Int64
	asking, stop := context.WithTimeout(context.Background(), testwait.Limit)
	defer stop()
	var asked sync.WaitGroup
	confirmed := func() bool {
		r, err := flows.AddFlows(asking, req)
		if err != nil {
			return false
		}
		for _, f := range r.Flows {
			if f.State != "confirmed" {
				return false
			}
		}
		return true
	}
	for took.Load() == 0 && asking.Err() == nil { // one that is asked of the former master waits for it
		asked.Go(func() {
			if confirmed() {
				took.CompareAndSwap(0, int64(time.Since(began)))
			}
		})
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	asked.Wait() // so that none adds what is deleted
	if took.Load() == 0 {
		d.t.Errorf("the switches are not programmed within %v after the master has had signal %v\n%s", testwait.Limit, signal, d.logs())
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	eventually(d.t, "the operator's entries deleted, and nothing more to delete", func() bool {
		r, err := flows.DeleteFlows(ctx, &api.DeleteFlowsRequest{AllOf: "all"})
		return err == nil && r.Deleted == 0
	})
	return time.Duration(took.Load())
}

// moved has two partitions of one network, and plans that are applied give a
// switch from one to the other and back, while a flow over it is established and
// hosts ask for each other. Nothing is lost, and no entry is written anew.
func (f *faults) moved(t *testing.T) {
	west := freeAddress(t)
	text := fmt.Sprintf(`name: moved
transport: grpc
events: grpc
partitions:
  east: {switches: ["1-2"]}
  west: {switches: [rest]}
workers:
  east: {partition: east, services: [southbound]}
  west: {partition: west, services: [southbound], settings: {southbound: {listen: ["tcp:%s"]}}}
  rest: {services: [discovery, hosts, paths, forwarding, flowrules, stats, gateway]}
config:
  southbound: {hold_others: true}
`, west)
	d := f.prepare(t, text)
	d.several = true
	text = strings.Replace(text, "services: [southbound]}", fmt.Sprintf("services: [southbound], settings: {southbound: {listen: [%q]}}}", "tcp:"+d.openflow), 1)
	d.plan = d.write("plan.yaml", text)
	d.supervise()
	d.allUp()
	l := d.quiet("ring:4", d.openflow, west)
	pingAll(t, l, false)
	e := d.establish(l)
	before := d.allFigures()
	// A request for the neighbour that is lost is not made again before the ping is
	// over, and an answer that is late is none that is lost.
	if out, err := l.Exec(context.Background(), "h2", "ip", "ntable", "change", "name", "arp_cache", "dev", "eth0", "retrans", "30000"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asking, stop := context.WithCancel(context.Background())
	asked, missed := make(chan int, 1), 0
	go func() { // each a request for the neighbour, and its answer: packet-ins
		n := 0
		for ; asking.Err() == nil; n++ {
			if out, err := l.Exec(context.Background(), "h2", "ip", "neigh", "flush", "all"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if r, err := l.Ping(context.Background(), "h2", "h4", traffic.PingOptions{Count: 1, Timeout: patience}); err != nil || r.Lost() > 0 {
				missed++ // a message that is under way for longer than the new owner waits is too late
			}
			if missed > 1 {
				t.Errorf("h2 to h4, while the switch of h2 moves: %d lost", missed)
			}
		}
		asked <- n
	}()
	for i, switches := range []string{`"1"`, `"1-2"`} {
		next := d.write(fmt.Sprintf("moved-%d.yaml", i), strings.Replace(text, `"1-2"`, switches, 1))
		began := time.Now()
		if _, err := d.command(context.Background(), "apply", next); err != nil {
			t.Fatal(err)
		}
		process := []string{"west", "east"}[i]
		eventually(t, "the switch with "+process, func() bool {
			figures, err := d.figures()
			return err == nil && figures[`weft_southbound_switches{process="`+process+`"}`] == 3-float64(i)
		})
		t.Logf("moved to %s after %v", process, time.Since(began).Round(time.Millisecond))
		d.heldReady(4)
	}
	stop()
	t.Logf("%d times asked for a neighbour meanwhile", <-asked)
	e.undisturbed(t)
	for name, n := range d.allFigures() {
		if lossFigure.MatchString(name) && n > before[name]+1 {
			t.Errorf("%s has grown from %v to %v", name, before[name], n)
		}
	}
}

// lossFigure are the figures that count what was not carried out.
var lossFigure = regexp.MustCompile(`^weft_(southbound_messages_shed|deploy_packets_shed|deploy_operations_astray|southbound_errors)_total`)
