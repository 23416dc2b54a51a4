package virtual

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// circuitPlans are plans between which l2vpn and tunnels move, alone or with flowrules,
// which keeps their entries.
var circuitPlans = []string{
	`  switches: {services: [southbound]}
  topology: {services: [discovery, hosts]}
  routing: {services: [paths, forwarding]}
  rules: {services: [flowrules, witness]}
  circuits: {services: [l2vpn]}
  labels: {services: [tunnels]}
`,
	`  switches: {services: [southbound]}
  topology: {services: [discovery, hosts]}
  routing: {services: [paths, forwarding], replicas: 2}
  rules: {services: [flowrules, tunnels, witness]}
  circuits: {services: [l2vpn]}
`,
	`  switches: {services: [southbound]}
  topology: {services: [discovery, hosts, paths, forwarding]}
  policy: {services: [flowrules, tunnels, l2vpn, witness]}
`,
}

// TestCircuitsKilledAndMoved: the processes with l2vpn and tunnels are killed, and a moment
// later another plan is carried out, while switches are slow to say what they have. Half a
// minute later all circuits are back, with every entry confirmed, and what customers send
// comes to the other end, once.
func TestCircuitsKilledAndMoved(t *testing.T) {
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { circuitsKilledAndMoved(t, seed) })
		})
	}
}

func circuitsKilledAndMoved(t *testing.T, seed uint64) {
	w := newWorld(t, seed)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := oftest.Config{Nicira: true, Tags: 2, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	var ring []*device
	for range 4 {
		ring = append(ring, w.addSwitchAs(cfg))
	}
	for i := range ring {
		w.addLink(ring[i], ring[(i+1)%len(ring)])
	}
	type end struct {
		*station
		at string
	}
	customer := func(d *device) end {
		at := fmt.Sprintf("%d:%d", d.sw, d.next)
		return end{w.addStation(d), at}
	}
	var circuits []*api.Circuit
	var ends [][2]end
	for i, protect := range []bool{true, false, true} {
		e := [2]end{customer(ring[i]), customer(ring[(i+2)%4])}
		ends = append(ends, e)
		circuits = append(circuits, &api.Circuit{Name: fmt.Sprint("c", i), Ends: []string{e[0].at, e[1].at}, Protect: protect})
	}
	apply := func(n int) {
		t.Helper()
		text := "name: circuits\npartial: true\nevents: grpc\nworkers:\n" + circuitPlans[n]
		if err := until(ctx, time.Minute, func(ctx context.Context) error { return w.cluster.apply(ctx, text) }); err != nil {
			t.Fatal(err)
		}
	}
	apply(0)
	w.work.Go(func() { w.cluster.supervise(ctx) })
	defer func() {
		cancel()
		w.cluster.stop()
		w.work.Wait()
	}()
	for _, d := range ring {
		w.powerOn(ctx, d)
	}
	whole := func(within time.Duration, when string) {
		t.Helper()
		err := until(ctx, within, func(ctx context.Context) error {
			p := w.cluster.present()
			if p == nil {
				return errAbsent
			}
			r, err := weft.Call(ctx, p.env, api.ListCircuits, &api.ListCircuitsRequest{})
			if err != nil {
				return err
			}
			for _, c := range r.Circuits {
				if c.State != "up" {
					return fmt.Errorf("circuit %s is %s: %s", c.Name, c.State, c.Reason)
				}
			}
			if len(r.Circuits) < len(circuits) {
				return fmt.Errorf("%d circuits", len(r.Circuits))
			}
			for i, e := range ends {
				for side := range e {
					if n := pass(e[side].station, e[1-side].station, byte(i)); n != 1 {
						return fmt.Errorf("a frame of c%d from %s comes %d times", i, e[side].at, n)
					}
				}
			}
			return nil
		})
		if err != nil {
			var lines []string
			for line := range strings.Lines(w.logs.b.String()) {
				if strings.Contains(line, "confirmed") {
					lines = append(lines, line)
				}
			}
			t.Fatalf("%s: %v\n%s", when, err, strings.Join(lines[max(0, len(lines)-10):], ""))
		}
	}
	if err := until(ctx, time.Minute, func(ctx context.Context) error {
		p := w.cluster.present()
		if p == nil {
			return errAbsent
		}
		return setCircuits(ctx, p.env, circuits)
	}); err != nil {
		t.Fatal(err)
	}
	whole(2*time.Minute, "at first")
	plan := 0
	for round := range 6 {
		for _, p := range w.cluster.all() {
			if slices.ContainsFunc([]string{"circuits", "labels", "policy"}, func(name string) bool { return strings.HasPrefix(p.name, name) }) {
				w.cluster.kill(p)
			}
		}
		time.Sleep(time.Duration(w.chance.n(9000)) * time.Millisecond)
		plan = (plan + 1 + w.chance.n(2)) % len(circuitPlans)
		apply(plan)
		time.Sleep(time.Duration(w.chance.n(3000)) * time.Millisecond)
		for _, d := range ring { // it takes as long to tell what it has
			w.wires.stall(d.sw, time.Now().Add(time.Duration(w.chance.n(3000))*time.Millisecond))
		}
		time.Sleep(30 * time.Second) // the processes are those of the plan
		whole(10*time.Second, fmt.Sprintf("round %d, plan %d", round, plan))
	}
}

// pass returns how often a frame that one station sends comes to another.
func pass(from, to *station, n byte) (times int) {
	frame := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: from.mac, Dst: flow.MAC{2, 9, 9, 9, 9, n}}, 0x1234))
	to.Received()
	from.Send(frame)
	time.Sleep(100 * time.Millisecond)
	for _, f := range to.Received() {
		if string(f) == string(frame) {
			times++
		}
	}
	return times
}
