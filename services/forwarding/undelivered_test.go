package forwarding

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// lose has what an instance sends to a switch get lost until the test calls what
// lose returns. It is told so if told is set: a process that is stopped does not
// answer, one that is killed may have.
func (c *cluster) lose(i *instance, at flow.DPID, told bool) (end func()) {
	send := i.send
	i.send = func(d *flow.Decision) (*api.ApplyResult, error) {
		result := &api.ApplyResult{}
		rest := *d
		rest.Ops = slices.DeleteFunc(slices.Clone(d.Ops), func(op flow.Op) bool {
			if op.Switch == at && told {
				result.Failures = append(result.Failures, &api.ApplyFailure{Dpid: at.String(), Transient: true})
			}
			return op.Switch == at
		})
		_, err := send(&rest)
		return result, err
	}
	return func() { i.send = send }
}

// The entries that would lead packets another way do not reach the switch where
// they enter: the old ones, over which packets go for ever, are not left there.
func TestOldEntriesLeft(t *testing.T) {
	for _, told := range []bool{true, false} {
		net, hosts, edges := ring(t, 2)
		c := newCluster(t, net, 1, nil, edges...)
		i := c.run[0]
		for k := 0; k < len(hosts); k += 2 {
			c.packet(0, hosts[k], hosts[k+1])
		}
		end := c.lose(i, 1, told)
		var left flow.Location // where packets between the first two leave switch 1
		i.routes.each(func(r *route) {
			if r.src == hosts[0].mac {
				left = flow.Location{Switch: 1, Port: r.first().out}
			}
		})
		c.cut(left)
		for range 8 { // once more while it is so
			c.clock = c.clock.Add(2 * time.Second)
			i.upkeep()
		}
		end()
		if !told { // the switch connects again
			c.clock = c.clock.Add(unsure)
			i.handleRouteReport(c.entries(1))
		}
		for range 20 {
			c.clock = c.clock.Add(time.Second)
			i.upkeep()
		}
		c.check()
		for k := 0; k < len(hosts); k += 2 {
			c.arrives(hosts[k], hosts[k+1])
		}
		c.sent = nil
		for range 60 {
			c.clock = c.clock.Add(time.Second)
			i.upkeep()
		}
		if len(c.sent) > 0 {
			t.Errorf("told %v: %d decisions when all is as it should be", told, len(c.sent))
		}
	}
}

// What an entry does is compared as the switch reports it, with its rewriting.
func TestEntryDoesWhatItShould(t *testing.T) {
	tag := []flow.Action{{Kind: flow.ActionPopVLAN}}
	r := &route{hops: []hop{{1, 1, 2}, {2, 1, 3}}, rewrite: tag}
	for _, x := range []struct {
		hop  int
		does action
		want bool
	}{
		{0, action{out: 2}, true},
		{0, action{out: 3}, false},
		{0, action{out: 2, rewrite: tag}, false},
		{0, action{}, true}, // a group that could not be read
		{1, action{out: 3, rewrite: tag}, true},
		{1, action{out: 3}, false},
	} {
		if got := r.hasAction(x.hop, x.does); got != x.want {
			t.Errorf("hop %d, %v: %v, want %v", x.hop, x.does, got, x.want)
		}
	}
}

// A host that has moved speaks, and what its packet decides is lost with the
// packet: the entries to where it was are not left there. With several instances
// that to which the packet came need not own the pair.
func TestDecisionOfPacketLost(t *testing.T) {
	for n := range 3 {
		net, hosts, edges := ring(t, 4)
		c := newCluster(t, net, 3, nil, edges...)
		for k := 0; k < len(hosts); k += 2 {
			c.packet(n, hosts[k], hosts[k+1])
		}
		c.carry()
		c.clock = c.clock.Add(time.Minute)
		for k := 1; k < len(hosts); k += 2 {
			h := &hosts[k]
			h.at.Switch = 3
			for _, i := range c.run {
				setRole(i.engine.portTable, h.at, flow.RoleEdge)
			}
			in := packetIn(*h, &hosts[k-1], tcp(*h, hosts[k-1]), c.clock.UnixNano())
			c.run[n].open(3)(in, &flow.Decision{})
		}
		c.carry()
		for range 20 {
			c.clock = c.clock.Add(time.Second)
			for _, i := range c.run {
				i.upkeep()
			}
			c.carry()
		}
		for k := 0; k < len(hosts); k += 2 {
			c.arrives(hosts[k], hosts[k+1])
		}
		c.check()
	}
}
