package firewall

import (
	"context"
	"log/slog"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/wefttest"
)

// slowNetwork carries out decisions when it is let.
type slowNetwork struct {
	network
	asked, let chan struct{}
}

func (n *slowNetwork) Apply(context.Context, *flow.Decision) (*api.ApplyResult, error) {
	n.asked <- struct{}{}
	<-n.let
	return &api.ApplyResult{}, nil
}

// TestEventsDoNotWaitForSwitches: while verdicts are removed from a switch, which
// may take seconds, the firewall takes events; and what the switch has confirmed
// before it connected again says nothing of the new session.
func TestEventsDoNotWaitForSwitches(t *testing.T) {
	n := &slowNetwork{asked: make(chan struct{}), let: make(chan struct{})}
	b := newStore(DefaultConfig(), n, slog.New(slog.DiscardHandler))
	feed := wefttest.Network(nib.Switches|nib.Roles, b.networkChanged)
	connect := func(since string) {
		feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254, Since: since}})
	}
	connect("now")
	for again := range 2 {
		done := make(chan error, 1)
		go func() { done <- b.sites.of(1).revoke(t.Context(), b.net) }()
		<-n.asked
		feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: flow.DPID(1).String(), Port: 2}, Role: "link"}})
		if again == 0 {
			connect("later")
		}
		n.let <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if s := b.sites.of(1); s.unknown != (again == 0) {
			t.Errorf("verdicts unknown: %v, with a new session meanwhile: %v", s.unknown, again == 0)
		}
	}
}
