package test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// run runs a command of weft that has to succeed, and returns what it prints.
func (f *carrierFaults) run(args ...string) string {
	f.t.Helper()
	out, err := f.command(f.t.Context(), args...)
	if err != nil {
		f.t.Fatalf("weft %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// counted waits until a circuit has counted frames from its customers.
func (f *carrierFaults) counted(circuit string) {
	f.t.Helper()
	f.eventually("frames counted by "+circuit, func() bool {
		var c struct {
			Rx string `json:"rx_packets"`
		}
		f.json(&c, "l2vpn", "get", circuit)
		return c.Rx != "" && c.Rx != "0"
	})
}

// ends: a port is an end beside a VLAN of it, and has the rest; VLANs of a list keep their tags, in a
// VLAN of the carrier's; tags leave with the type that an end says.
func (f *carrierFaults) ends() {
	f.t.Helper()
	one, two := f.at("green1"), f.at("green2")
	frame := func(from, kind string, vlan uint16) []byte { return f.frame(from, kind, everyone, vlan, 0x88b5) }
	f.run("l2vpn", "add", "rest", one, two)
	f.run("l2vpn", "add", "v100", one+".100", two+".200@0x88a8")
	f.circuitsUp(standing + 2)
	f.passes("green1", "green2", "rest", frame("green1", "rest", 0))
	f.passes("green1", "green2", "rest-101", frame("green1", "rest-101", 101))
	f.passes("green2", "green1", "rest-101", frame("green2", "rest-101", 101))
	f.passes("green1", "green2", "v100", frame("green1", "v100", 100))
	f.passes("green2", "green1", "v100", frame("green2", "v100", 200))
	f.counted("v100")
	f.wires["green2"].send(frame("green2", "leak", 100)) // at the far end 100 is the rest's, here it is not
	f.passes("green2", "green1", "rest-102", frame("green2", "rest-102", 102))
	if n := f.got("green1", "green2", "leak"); n > 0 {
		f.t.Errorf("green1 heard %d frames of a VLAN that another circuit has there", n)
	}
	if out, err := f.command(f.t.Context(), "l2vpn", "add", "old", one+".300@0x9100", two+".300"); err == nil || !strings.Contains(string(out)+err.Error(), "not a valid VLAN ethertype") {
		f.t.Errorf("an end of type 0x9100: %v: %s", err, out)
	}
	f.run("l2vpn", "delete", "rest")
	f.run("l2vpn", "add", "list", one+"/10-20,30", two+".500")
	f.circuitsUp(standing + 2)
	for _, vlan := range []uint16{10, 15, 20, 30} {
		f.passes("green1", "green2", fmt.Sprint("list-", vlan), frame("green1", fmt.Sprint("list-", vlan), vlan))
	}
	for _, vlan := range []uint16{0, 9, 21, 31} {
		f.wires["green1"].send(frame("green1", fmt.Sprint("other-", vlan), vlan))
	}
	f.passes("green1", "green2", "list-last", frame("green1", "list-last", 30))
	for _, vlan := range []uint16{0, 9, 21, 31} {
		if n := f.got("green2", "green1", fmt.Sprint("other-", vlan)); n > 0 {
			f.t.Errorf("green2 heard %d frames of VLAN %d, which is in no list", n, vlan)
		}
	}
	f.eventually("the switches' entries as they should be", func() bool {
		out, err := f.command(f.t.Context(), "l2vpn", "validate")
		return err == nil || !strings.Contains(string(out), "entries")
	})
	f.run("l2vpn", "delete", "list")
	f.run("l2vpn", "delete", "v100")
	f.circuitsUp(standing)
}

// operations: a circuit is swapped to its standby path and back, and rerouted, without a frame lost;
// its history says so.
func (f *carrierFaults) operations() {
	f.t.Helper()
	path := func() (list []string) {
		var c struct{ Path []string }
		f.json(&c, "l2vpn", "get", "red")
		return c.Path
	}
	swap := func() {
		f.eventually("red has a standby path", func() bool {
			var c struct{ Standby []string }
			f.json(&c, "l2vpn", "get", "red")
			return len(c.Standby) > 0
		})
		f.run("l2vpn", "swap", "red")
	}
	stream := endless(f.t, f.l, "red1", "red2", 10*time.Millisecond)
	stream.flows(20)
	first := path()
	swap()
	if now := path(); slices.Equal(now, first) || len(now) != len(first) {
		f.t.Errorf("red goes by %v after a swap, and before", now)
	}
	stream.flows(20)
	f.run("l2vpn", "reroute", "red")
	if len(first) > 1 {
		f.run("l2vpn", "reroute", "--via-link", first[0]+"-"+first[1])
	}
	stream.flows(20)
	swap()
	if now := path(); !slices.Equal(now, first) {
		f.t.Errorf("red goes by %v after two swaps, want %v", now, first)
	}
	stream.flows(20)
	f.run("l2vpn", "set", "red", "--rate", "30M")
	f.run("l2vpn", "set", "red", "--rate", "20M")
	if r := stream.end(); r.Lost() > 0 {
		f.t.Errorf("%d of %d frames were lost while red was swapped and rerouted; the longest outage was %v ms", r.Lost(), r.Sent, r.Outage)
	}
	history := f.run("l2vpn", "history", "red")
	for _, want := range []string{"swap: its way was " + strings.Join(first, " "), "rate_kbps: 20000, now 30000", "client"} {
		if !strings.Contains(history, want) {
			f.t.Errorf("the history of red does not say %q:\n%s", want, history)
		}
	}
	f.circuitsUp(standing)
}
