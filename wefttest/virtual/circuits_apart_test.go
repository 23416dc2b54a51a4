package virtual

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// TestCircuitsApart: on switches that are no hybrid nodes nothing of ordinary hosts comes to a
// customer, and nothing of a customer to ordinary hosts or other customers: with a circuit that
// is up, with one of a VLAN, with one whose other end cannot be reached, before the time of one,
// after that of one, and after a restart of the controller.
func TestCircuitsApart(t *testing.T) { synctest.Test(t, circuitsApart) }

func circuitsApart(t *testing.T) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b, island := w.addSwitchAs(cfg), w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	var circuits []*api.Circuit
	customers := map[string][2]*station{}
	for _, name := range []string{"up", "tagged", "unreachable", "waits", "ended"} {
		far, tag := b, ""
		switch name {
		case "unreachable":
			far = island
		case "tagged":
			tag = ".7"
		}
		c := &api.Circuit{Name: name, Ends: []string{fmt.Sprintf("%d:%d%s", a.sw, a.next, tag), fmt.Sprintf("%d:%d%s", far.sw, far.next, tag)}}
		switch name {
		case "waits":
			c.From = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		case "ended":
			c.Until = time.Now().Add(2 * time.Minute).UTC().Format(time.RFC3339)
		}
		customers[name] = [2]*station{w.addStation(a), w.addStation(far)}
		circuits = append(circuits, c)
	}
	hosts := []*station{w.addStation(a), w.addStation(b)}
	plan := "name: circuits\npartial: true\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, tunnels, l2vpn, witness]}\n"
	if err := w.cluster.apply(ctx, plan); err != nil {
		t.Fatal(err)
	}
	w.work.Go(func() { w.cluster.supervise(ctx) })
	defer func() {
		cancel()
		w.cluster.stop()
		w.work.Wait()
	}()
	for _, d := range []*device{a, b, island} {
		w.powerOn(ctx, d)
	}
	ping := func(when string) {
		t.Helper()
		if !hosts[0].ping(ctx, hosts[1], w.number(), time.Minute) {
			t.Fatalf("%s: no answer\n%s\n%s", when, w.story.String(), w.logs.b.String())
		}
	}
	ping("at first")
	for _, ends := range customers { // they are ordinary hosts until they have a circuit
		for _, s := range ends {
			s.announce()
		}
		ends[0].ping(ctx, hosts[1], w.number(), 10*time.Second)
	}
	if err := until(ctx, time.Minute, func(ctx context.Context) error {
		return setCircuits(ctx, w.cluster.present().env, circuits)
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Minute)
	apart := func(when string) {
		t.Helper()
		ping(when)
		for _, s := range w.stations {
			s.Received()
		}
		mark := func(s *station, dst flow.MAC, tag []byte) []byte { // a frame that no other is like
			frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: s.mac, Dst: dst}, 0x88b5))
			copy(frame[20:], s.name+" to "+dst.String())
			frame = slices.Concat(frame[:12], tag, frame[12:])
			s.Send(frame)
			return frame
		}
		destinations := []flow.MAC{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 0, 0, 9}, {2, 0xab, 0xcd, 0, 0, 1}}
		for _, s := range w.stations {
			destinations = append(destinations, s.mac)
		}
		for _, vlan := range []byte{0, 7, 8} {
			var tag []byte
			ordinary := map[*station]bool{hosts[0]: true, hosts[1]: true}
			may := map[*station]*station{} // whom a frame of a customer may come to
			pair := func(name string) {
				ends := customers[name]
				may[ends[0]], may[ends[1]] = ends[1], ends[0]
			}
			pair("up")
			if vlan != 0 {
				tag = []byte{0x81, 0, 0, vlan}
			}
			if vlan == 7 {
				pair("tagged")
			} else { // their ports are the ordinary network's, too
				ordinary[customers["tagged"][0]], ordinary[customers["tagged"][1]] = true, true
			}
			for _, from := range w.stations {
				for _, dst := range destinations {
					frame := mark(from, dst, tag)
					time.Sleep(100 * time.Millisecond)
					for _, to := range w.stations {
						came := 0
						for _, got := range to.Received() {
							if bytes.Equal(got, frame) {
								came++
							}
						}
						switch {
						case may[from] == to && came != 1:
							t.Errorf("%s: a frame of %s for %v, VLAN %d, comes %d times to the other end", when, from.name, dst, vlan, came)
						case came > 0 && may[from] != to && !(ordinary[from] && ordinary[to]):
							t.Errorf("%s: a frame of %s for %v, VLAN %d, comes to %s", when, from.name, dst, vlan, to.name)
						}
					}
				}
			}
		}
	}
	apart("with circuits")
	for _, p := range w.cluster.all() {
		w.cluster.kill(p)
	}
	time.Sleep(time.Minute)
	apart("after a restart")
}
