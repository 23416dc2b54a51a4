package virtual

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// TestSingleTableEncodings is TestEncodings of the firewall on switches with one table and
// OpenFlow 1.0, which has no guards: there the controller judges what hides from the table.
func TestSingleTableEncodings(t *testing.T) {
	for _, name := range []string{"a deny by port", "verdicts by port", "a deny by address"} {
		for _, tags := range []int{1, 2} {
			p := policies[slices.IndexFunc(policies, func(p encoded) bool { return p.name == name })]
			t.Run(fmt.Sprintf("%s, tags %d", name, tags), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { holdsSingle(t, p, tags) })
			})
		}
	}
}

func holdsSingle(t *testing.T, p encoded, tags int) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := oftest.Config{Nicira: true, Tags: tags, Tables: 1, Versions: []openflow.Version{openflow.V10}, Desc: openflow.Desc{Hardware: api.OpenVSwitch}}
	a, b := w.addSwitchAs(cfg), w.addSwitchAs(cfg)
	w.addLink(a, b)
	s := &site{world: w, h1: w.addStation(a), h2: w.addStation(b), h3: w.addStation(b)}
	if err := w.cluster.apply(ctx, fmt.Sprintf(policyPlan, p.limit)); err != nil {
		t.Fatal(err)
	}
	w.work.Go(func() { w.cluster.supervise(ctx) })
	defer func() {
		cancel()
		w.cluster.stop()
		w.work.Wait()
	}()
	w.powerOn(ctx, a)
	w.powerOn(ctx, b)
	for _, h := range []*station{s.h2, s.h3} {
		if !s.h1.ping(ctx, h, w.number(), 20*time.Second) {
			t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
		}
	}
	time.Sleep(5 * time.Second) // until floods have their tree
	s.by = w.cluster.present()
	free := s.send(p)
	for _, want := range []string{"plain udp ipv4", "plain tcp ipv4", "plain udp ipv6", "plain tcp ipv6"} {
		if free[want] != 1 {
			t.Errorf("without the policy: %s: %d got there", want, free[want])
		}
	}
	if err := p.set(ctx, s); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	for name, got := range s.send(p) {
		if got > 0 {
			t.Errorf("%s: %d got there", name, got)
		}
	}
}
