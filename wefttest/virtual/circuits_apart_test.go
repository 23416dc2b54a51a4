package virtual

import (
	"bytes"
	"context"
	"fmt"
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
// customer's port, and nothing of a customer to ordinary hosts or other customers: with a
// circuit that is up, with one whose other end cannot be reached, before the time of one, after
// that of one, and after a restart of the controller.
func TestCircuitsApart(t *testing.T) { synctest.Test(t, circuitsApart) }

func circuitsApart(t *testing.T) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b, island := w.addSwitchAs(cfg), w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	var circuits []*api.Circuit
	customers := map[string][2]*station{}
	for name, far := range map[string]*device{"up": b, "unreachable": island, "waits": b, "ended": b} {
		c := &api.Circuit{Name: name, Ends: []string{fmt.Sprintf("%d:%d", a.sw, a.next), fmt.Sprintf("%d:%d", far.sw, far.next)}}
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
		mark := func(s *station, dst flow.MAC) []byte { // a frame that no other is like
			frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: s.mac, Dst: dst}, 0x88b5))
			copy(frame[20:], s.name+" to "+dst.String())
			s.Send(frame)
			return frame
		}
		destinations := []flow.MAC{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 0, 0, 9}, {2, 0xab, 0xcd, 0, 0, 1}}
		for _, s := range w.stations {
			destinations = append(destinations, s.mac)
		}
		may := map[*station]*station{} // whom a frame of a customer may come to
		for name, ends := range customers {
			if name == "up" {
				may[ends[0]], may[ends[1]] = ends[1], ends[0]
			}
		}
		ordinary := map[*station]bool{hosts[0]: true, hosts[1]: true}
		for _, from := range w.stations {
			for _, dst := range destinations {
				frame := mark(from, dst)
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
						t.Errorf("%s: a frame of %s for %v comes %d times to the other end", when, from.name, dst, came)
					case came > 0 && may[from] != to && !(ordinary[from] && ordinary[to]):
						t.Errorf("%s: a frame of %s for %v comes to %s", when, from.name, dst, to.name)
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
