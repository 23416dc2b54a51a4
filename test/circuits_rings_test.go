package test

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ringStorm is what each end of ring's circuits may send to all, kbit/s.
const ringStorm = 1000

// rings: a customer joins two circuits to a loop by bridges at both sides. What runs in it
// is bounded, and both circuits say so; the others carry on, and both are up when it is gone.
func (f *carrierFaults) rings() {
	f.t.Helper()
	for _, c := range [][]string{{"ring-a", f.at("ring1"), f.at("ring2")}, {"ring-b", f.at("ring3"), f.at("ring4")}} {
		if out, err := f.command(f.t.Context(), append([]string{"l2vpn", "add", "--storm", fmt.Sprint(ringStorm, "k")}, c...)...); err != nil {
			f.t.Fatalf("%v: %s", err, out)
		}
	}
	f.circuitsUp(standing + 2)
	f.bridged("ring1", "ring3")
	time.Sleep(3 * time.Second) // more than the time between two probes
	if states := f.circuits(); states["ring-a"] != "up " || states["ring-b"] != "up " {
		f.t.Errorf("joined at one side only: %v", states)
	}
	f.bridged("ring2", "ring4")
	f.eventually("both circuits in a loop", func() bool {
		states := f.circuits()
		return strings.HasPrefix(states["ring-a"], "degraded a loop: ") && strings.Contains(states["ring-a"], "circuit ring-b") &&
			strings.HasPrefix(states["ring-b"], "degraded a loop: ") && strings.Contains(states["ring-b"], "circuit ring-a")
	})
	end := f.storming("ring1")
	kbps := f.arriving("ring2", func() {
		f.carried()
		f.program.flows(20)
		time.Sleep(2 * time.Second)
	})
	end()
	if least, most := 0.3*ringStorm, 1.5*ringStorm; kbps < least || kbps > most {
		f.t.Errorf("%.0f kbit/s go round in a loop, want %.0f to %.0f", kbps, least, most)
	}
	f.t.Logf("%.0f kbit/s went round in a loop of %d kbit/s", kbps, ringStorm)
	f.parted("ring1")
	f.parted("ring2")
	f.circuitsUp(standing + 2)
	for _, name := range []string{"ring-a", "ring-b"} {
		if out, err := f.command(f.t.Context(), "l2vpn", "delete", name); err != nil {
			f.t.Fatalf("%v: %s", err, out)
		}
	}
	f.whole()
}

// storming has a host send broadcasts, ten times what its circuit lets pass, until it is told
// to end. They are sent on and on: the bound takes what goes round away within a moment.
func (f *carrierFaults) storming(host string) (end func()) {
	f.t.Helper()
	frame := append(f.frame(host, "storm", everyone, 0, 0x88b5), make([]byte, 1200)...)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				for range 20 {
					f.wires[host].send(frame)
				}
			}
		}
	}()
	return func() { close(stop); <-ended }
}

// arriving returns what arrives at a host during something, kbit/s.
func (f *carrierFaults) arriving(host string, during func()) float64 {
	f.t.Helper()
	octets := func() float64 {
		out, err := f.l.Exec(f.t.Context(), host, "awk", "$1 == \"eth0:\" { print $2 }", "/proc/net/dev")
		if err != nil {
			f.t.Fatal(err)
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
		if err != nil {
			f.t.Fatal(err)
		}
		return n
	}
	before, began := octets(), time.Now()
	during()
	return (octets() - before) * 8 / 1000 / time.Since(began).Seconds()
}

// bridged joins two hosts by bridges and a cable.
func (f *carrierFaults) bridged(a, b string) {
	f.t.Helper()
	f.exec(a, "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", f.l.HostNetns(b))
	for _, host := range []string{a, b} {
		f.exec(host, "sh", "-c", "ip link add bridge type bridge && ip link set eth0 master bridge && ip link set cable master bridge && ip link set bridge up && ip link set cable up")
	}
}

// parted takes the cable of a host away.
func (f *carrierFaults) parted(host string) { f.exec(host, "ip", "link", "del", "cable") }

// exec runs a program in a host.
func (f *carrierFaults) exec(host string, argv ...string) {
	f.t.Helper()
	if out, err := f.l.Exec(f.t.Context(), host, argv...); err != nil {
		f.t.Fatalf("%s: %v: %s", host, err, out)
	}
}
