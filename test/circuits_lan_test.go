package test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// once begins the kind of frames that come to a host once at most.
const once = "once-"

// lans is the hosts of lan.
var lans = []string{"lan1", "lan2", "lan3"}

// lanVLAN is the tag of the frames of lan3; those of lan1 and lan2 have none.
const lanVLAN = 7

// lanEnd is the end of a host of lan.
func (f *carrierFaults) lanEnd(host string) string {
	f.t.Helper()
	if host == "lan3" {
		return fmt.Sprintf("%s.%d", f.at(host), lanVLAN)
	}
	return f.at(host)
}

// lan is the circuit of some hosts of lan, in a file of circuits.
func (f *carrierFaults) lan(hosts ...string) string {
	f.t.Helper()
	var ends []string
	for _, h := range hosts {
		ends = append(ends, fmt.Sprintf("%q", f.lanEnd(h)))
	}
	return fmt.Sprintf("  - {name: lan, type: vpls, protect: true, ends: [%s]}\n", strings.Join(ends, ", "))
}

// sends sends a frame of a host of lan that may come to a host once, and returns its kind.
func (f *carrierFaults) sends(from, to string) string {
	f.t.Helper()
	f.mu.Lock()
	f.casts++
	kind := fmt.Sprint(once, f.casts)
	f.mu.Unlock()
	vlan := uint16(0)
	if from == "lan3" {
		vlan = lanVLAN
	}
	f.wires[from].send(f.frame(from, kind, to, vlan, 0x88b5))
	return kind
}

// cast sends frames to all from a host of lan until one of them has come to all others.
func (f *carrierFaults) cast(from string, others ...string) {
	f.t.Helper()
	var kinds []string
	f.eventually(fmt.Sprintf("broadcast of %s at %v", from, others), func() bool {
		kinds = append(kinds, f.sends(from, everyone))
		return slices.ContainsFunc(kinds, func(kind string) bool {
			return !slices.ContainsFunc(others, func(to string) bool { return f.got(to, from, kind) == 0 })
		})
	})
}

// known: frames to a host of lan come to it alone, as soon as it is known where it is.
func (f *carrierFaults) known() {
	f.t.Helper()
	f.eventually("the hosts of lan learnt", func() bool {
		var c struct{ Members []struct{ Macs int } }
		f.json(&c, "l2vpn", "get", "lan")
		return len(c.Members) == 3 && c.Members[0].Macs == 1 && c.Members[1].Macs == 1 && c.Members[2].Macs == 1
	})
	for from, others := range map[string][]string{"lan1": {"lan2", "lan3"}, "lan2": {"lan3", "lan1"}, "lan3": {"lan1", "lan2"}} {
		to, third := others[0], others[1]
		address := mac(f.t, f.l, to).String()
		var kinds []string
		heard := func(host, kind string) bool { return f.got(host, from, kind) > 0 }
		f.eventually(fmt.Sprintf("frames of %s at %s alone", from, to), func() bool {
			kinds = append(kinds, f.sends(from, address))
			f.cast(from, others...) // what has been sent before has arrived
			last := kinds[len(kinds)-1]
			return heard(to, last) && !heard(third, last)
		})
		kinds = nil
		for range 50 {
			kinds = append(kinds, f.sends(from, address))
		}
		f.cast(from, others...)
		n := 0
		for _, kind := range kinds {
			if heard(to, kind) {
				n++
			}
			if heard(third, kind) {
				f.t.Errorf("%s heard a frame of %s to %s, which is known", third, from, to)
			}
		}
		if n == 0 {
			f.t.Errorf("%s heard none of 50 frames of %s", to, from)
		}
	}
}

// joins: an end of lan leaves and comes back while the others send.
func (f *carrierFaults) joins() {
	f.t.Helper()
	stop, stopped := make(chan struct{}), make(chan []string, 1)
	go func() {
		var kinds []string
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				stopped <- kinds
				return
			case <-tick.C:
				kinds = append(kinds, f.sends("lan1", everyone))
			}
		}
	}()
	apply := func(name string, hosts ...string) {
		f.t.Helper()
		file := f.file(name, 0, hosts...)
		f.eventually("ends of lan changed", func() bool { _, err := f.command(f.t.Context(), "l2vpn", "apply", file); return err == nil })
		f.circuitsUp(standing)
	}
	apply("two.yaml", "lan1", "lan2")
	before := f.sends("lan1", everyone)
	f.cast("lan1", "lan2")
	strays := []string{f.sends("lan3", everyone), f.sends("lan3", everyone)}
	apply("three.yaml", lans...)
	f.carried()
	close(stop)
	kinds := <-stopped
	lost := 0
	for _, kind := range kinds {
		if f.got("lan2", "lan1", kind) == 0 {
			lost++
		}
	}
	f.t.Logf("while an end left and came back, %d of %d frames between the others were lost", lost, len(kinds))
	if f.got("lan3", "lan1", before) > 0 {
		f.t.Error("lan3 heard a frame after it had left")
	}
	for _, kind := range strays {
		if f.got("lan1", "lan3", kind)+f.got("lan2", "lan3", kind) > 0 {
			f.t.Error("a frame of lan3 passed after it had left")
		}
	}
}
