package test

import (
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
)

// pathsStopped stops the process that computes paths: a packet whose path it
// alone knows holds up nobody else, and goes on when it is back.
func (f *faults) pathsStopped(t *testing.T) {
	d := f.deploy(t, `name: apart
workers:
  most: {services: [southbound, discovery, hosts, forwarding, flowrules, stats, gateway]}
  paths: {services: [paths]}
`)
	l := d.network("linear:2")
	w := d.watch()
	h1, err := l.Host("h1")
	if err != nil {
		t.Fatal(err)
	}
	h2, err := l.Host("h2")
	if err != nil {
		t.Fatal(err)
	}
	near, far := attach(t, l, "h1"), attach(t, l, "h2")
	stranger := flow.MAC{2, 0, 0, 0, 0x5e, 0xed}
	replies, arrived := make(chan struct{}, 100), make(chan struct{}, 1)
	near.listen(func(frame []byte) {
		if a, ok := packet.ParseARP(frame); ok && a.Op() == 2 {
			replies <- struct{}{}
		}
	})
	far.listen(func(frame []byte) {
		if len(frame) > 12 && flow.MAC(frame[6:12]) == stranger {
			arrived <- struct{}{}
		}
	})
	// ask asks from a switch's host for the other's address and returns how long
	// the answer takes.
	ask := func() time.Duration {
		began := time.Now()
		near.send(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: flow.MAC(h1.MAC), SenderIP: h1.IPv4.Addr(), TargetIP: h2.IPv4.Addr()}))
		select {
		case <-replies:
		case <-time.After(testwait.Limit):
			t.Error("ARP is not answered")
		}
		return time.Since(began)
	}
	before := ask()
	pid := d.pids()["paths"]
	o := outage{process: "paths", pid: pid, from: time.Now()} // a slow machine may find it unresponsive
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	near.send(packet.AppendUDP(nil, packet.Ether{Src: stranger, Dst: flow.MAC(h2.MAC)}, packet.IP{Src: h1.IPv4.Addr().Next().Next().Next(), Dst: h2.IPv4.Addr()}, 7, 7, nil))
	var longest time.Duration
	for range 20 {
		longest = max(longest, ask())
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case <-arrived:
		t.Error("the stranger's packet has a path although nobody knows one")
	default:
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived:
	case <-time.After(testwait.Limit):
		t.Errorf("the stranger's packet does not go on when paths are known again\n%s", d.logs())
	}
	waits := d.figure(`weft_forwarding_deferred_total{process="most"}`)
	if waits == 0 {
		t.Error("no packet has waited for a path")
	}
	t.Logf("answers to ARP: %v before, at most %v while paths is stopped; %v packets have waited for a path in all", before, longest, waits)
	pingAll(t, l, false)
	o.to = time.Now()
	o.gone, o.ready = o.to, o.to
	w.outages = append(w.outages, o)
	w.truthful("most")
}
