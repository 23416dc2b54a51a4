package virtual

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/flow"
)

const barePlan = `name: bare
partial: true
workers:
  all: {services: [southbound, flowrules, firewall, witness]}
config:
  firewall: {rules: [%s]}
`

// TestNoRolesToCome: where no service of the plan publishes roles of ports, what an earlier
// run has left on a switch, and nobody wants, is deleted: nothing is to come that would
// settle it.
func TestNoRolesToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var cancel context.CancelFunc
		w.life, cancel = context.WithCancel(context.Background())
		s := &standstill{site: &site{world: w}}
		d := w.addSwitch()
		apply := func(rule string) {
			if err := w.cluster.apply(w.life, fmt.Sprintf(barePlan, rule)); err != nil {
				t.Fatal(err)
			}
			s.start()
		}
		apply(`{id: r, action: deny, match: {udp_dst: "7000"}}`)
		defer func() {
			cancel()
			s.supervised.Wait()
			w.cluster.stop()
			w.work.Wait()
		}()
		w.powerOn(w.life, d)
		entries := func() (n int) {
			time.Sleep(20 * time.Second)
			for _, f := range d.Flows() {
				if f.Cookie.Owner() == flow.OwnerFirewall {
					n++
				}
			}
			return n
		}
		if entries() == 0 {
			t.Error("no entries of a rule")
		}
		s.kill()
		apply("")
		if n := entries(); n != 0 {
			t.Errorf("%d entries of a rule that is there no more", n)
		}
	})
}
