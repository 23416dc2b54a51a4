package firewall

import (
	"context"
	"log/slog"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
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
	b := newStore(DefaultConfig(), n, nil, slog.New(slog.DiscardHandler))
	connected := &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}}
	b.switchChanged(connected)
	for again := range 2 {
		done := make(chan error, 1)
		go func() { done <- b.site(1).revoke(t.Context(), b, nil, true) }()
		<-n.asked
		b.roleChanged(flow.Location{Switch: 1, Port: 2}, "link")
		if again == 0 {
			b.switchChanged(connected)
		}
		n.let <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if s := b.site(1); s.unknown != (again == 0) {
			t.Errorf("verdicts unknown: %v, with a new session meanwhile: %v", s.unknown, again == 0)
		}
	}
}
