package deploy_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// TestHeardOfEachRun: a publisher that returns to a process where it has run before is heard
// in full, by a service that has been subscribed there since then.
func TestHeardOfEachRun(t *testing.T) {
	var runs atomic.Uint32
	mac := flow.MACFrom(1)
	c := newCluster(t, []weft.Spec{
		{Name: "hosts", Publishes: weft.Subjects(api.HostChangedEvent, api.HostsSettledEvent), Scale: weft.Single, Config: &named{Name: "a"}},
		{Name: "gateway", Reads: nib.Hosts, Scale: weft.Single, Config: &named{Name: "a"}},
		{Name: "first", Scale: weft.Any}, {Name: "second", Scale: weft.Any},
	}, map[string]func(*actor){"hosts": func(p *actor) {
		weft.Publish(p.env, api.HostChangedEvent, &api.HostChanged{Host: &api.Host{Mac: mac.String(), Moves: runs.Add(1)}})
		weft.Publish(p.env, api.HostsSettledEvent, &api.HostsSettled{})
	}})
	for n, plan := range []string{"[first, hosts], %s [second]", "[first], %s [second, hosts]", "[first, hosts], %s [second]"} {
		c.apply("{name: a, events: grpc, workers: {w0: {services: [gateway]}, w1: {services: " + fmt.Sprintf(plan, "}, w2: {services:") + "}}}")
		if n == 0 {
			c.startAll()
		}
		c.settled()
		env := c.run("gateway").env
		c.eventually("the host of the run is known", func() bool {
			h := weft.NIB(env).Host(nib.HostKey{MAC: mac})
			return h != nil && h.Is.Moves == uint32(n+1)
		})
		c.eventually("the run is heard in full", func() bool { return weft.NIB(env).Heard(nib.Hosts) })
	}
}
