package test

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
)

// optimised: a tunnel that fills a way has the tunnel of a circuit move to the other one by weft tunnel
// optimise, while frames are sent in the circuit. None is lost.
func (f *carrierFaults) optimised() {
	f.t.Helper()
	run := func(args ...string) {
		f.t.Helper()
		if _, err := f.command(f.t.Context(), args...); err != nil {
			f.t.Fatal(err)
		}
	}
	var links struct {
		Links []struct{ Src, Dst *api.Location }
	}
	f.json(&links, "get", "links")
	for _, k := range links.Links {
		if k.Src.Dpid < k.Dst.Dpid {
			run("link", "set", fmt.Sprintf("%s:%d", k.Src.Dpid, k.Src.Port), fmt.Sprintf("%s:%d", k.Dst.Dpid, k.Dst.Port), "--capacity", "100M")
		}
	}
	run("l2vpn", "add", "fast", f.at("green1"), f.at("green2"), "--rate", "30M")
	f.circuitsUp(standing + 1)
	from, to := dpid(f.t, f.l, "pe1"), dpid(f.t, f.l, "pe2")
	var list struct {
		Tunnels []struct {
			Name, From, State string
			Path              []string
			ReservedKbps      string `json:"reserved_kbps"`
			Protect           bool
		}
	}
	name, core := "", ""
	f.json(&list, "tunnel", "list")
	for _, m := range list.Tunnels {
		if m.From == from && m.ReservedKbps == "30000" && !m.Protect && len(m.Path) == 3 {
			name, core = m.Name, m.Path[1]
		}
	}
	if name == "" {
		f.t.Fatalf("no tunnel has the booking of the circuit: %+v", list.Tunnels)
	}
	stream := lossless(f.t, f.l, "green1", "green2", 10*time.Millisecond)
	stream.flows(20)
	run("tunnel", "add", "full", "--from", from, "--to", to, "--bandwidth", "40M", "--pin", core)
	var done struct {
		Moves []struct {
			Tunnel, State string
			From, To      []string
		}
		Gain float64
	}
	f.eventually("a move by weft tunnel optimise", func() bool { // once nothing else is to be seen to
		f.json(&done, "tunnel", "optimise")
		return len(done.Moves) > 0
	})
	stream.flows(50)
	if r := stream.end(); r.Lost() > 0 {
		f.t.Errorf("%d of %d frames were lost while the tunnel moved; the longest outage was %v ms", r.Lost(), r.Sent, r.Outage)
	}
	m := done.Moves[0]
	if len(done.Moves) != 1 || m.Tunnel != name || m.State != "moved" || done.Gain < 5 || !slices.Contains(m.From, core) || slices.Contains(m.To, core) {
		f.t.Errorf("%s left switch %s: %+v", name, core, done)
	}
	run("l2vpn", "delete", "fast")
	run("tunnel", "delete", "full")
	f.whole()
}
