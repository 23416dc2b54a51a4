package firewall

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// slow is a bucket that does not answer before it is let go.
type slow struct{ hold chan struct{} }

func (s slow) Put(context.Context, string, []byte) (uint64, error) { <-s.hold; return 1, nil }
func (s slow) Delete(context.Context, string) error                { <-s.hold; return nil }
func (s slow) All(context.Context, func(string, []byte, uint64) error) error {
	return nil
}

// content is a keeper whose switches have what they are to have.
type content struct{}

func (content) Changed(...flow.DPID)             {}
func (content) Settle(context.Context) error     { return nil }
func (content) Status(flow.DPID) (string, error) { return "in_sync", nil }

// While the store does not answer, rules are listed, and others wait no longer
// than they want to.
func TestSlowStore(t *testing.T) {
	s := slow{make(chan struct{})}
	b := newStore(DefaultConfig(), nil, s, slog.New(slog.DiscardHandler))
	b.keeper = content{}
	added := make(chan error, 1)
	go func() {
		_, err := b.addRules(context.Background(), &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "one", Action: "deny"}}})
		added <- err
	}()
	time.Sleep(10 * time.Millisecond)
	listed := func() uint32 {
		resp, err := b.listRules(t.Context(), &api.ListFirewallRulesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Total
	}
	if n := listed(); n != 0 {
		t.Errorf("%d rules are there before they are stored", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := b.setDefault(ctx, &api.SetFirewallDefaultRequest{Action: "deny"}); err == nil {
		t.Error("the default is changed while rules are stored")
	}
	close(s.hold)
	if err := <-added; err != nil || listed() != 1 {
		t.Errorf("%v, %d rules", err, listed())
	}
}
