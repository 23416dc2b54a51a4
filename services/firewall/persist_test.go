package firewall

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/wefttest"
)

// slow is a bucket that does not answer before it is let go.
type slow struct {
	object.Bucket
	asked chan struct{} // notified of a write
	hold  chan struct{}
}

func newSlow(t *testing.T) slow {
	kept, err := wefttest.NewStore().Bucket(t.Context(), "rules")
	if err != nil {
		t.Fatal(err)
	}
	return slow{kept, make(chan struct{}, 1), make(chan struct{})}
}

func (s slow) Update(ctx context.Context, key string, value []byte, over uint64) (uint64, error) {
	object.Notify(s.asked)
	<-s.hold
	return s.Bucket.Update(ctx, key, value, over)
}

// content is a keeper whose switches have what they are to have.
type content struct{}

func (content) Settle(context.Context) error     { return nil }
func (content) Status(flow.DPID) (string, error) { return "in_sync", nil }

// While the store does not answer, rules are listed, and others wait no longer
// than they want to.
func TestSlowStore(t *testing.T) {
	s := newSlow(t)
	b := newStore(DefaultConfig(), nil, slog.New(slog.DiscardHandler))
	b.kept.Open(s)
	b.keeper = content{}
	added := make(chan error, 1)
	go func() {
		_, err := b.addRules(context.Background(), &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "one", Action: "deny"}}})
		added <- err
	}()
	<-s.asked
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

// All rules are not deleted while the store may lack some: they would be back
// once it is whole. Rules that are named are.
func TestDeleteOfDamaged(t *testing.T) {
	s := newSlow(t)
	close(s.hold)
	b := newStore(DefaultConfig(), nil, slog.New(slog.DiscardHandler))
	b.kept.Open(s)
	b.keeper = content{}
	if _, err := b.addByAPI(t.Context(), &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "one", Action: "deny"}, {Id: "two", Action: "deny"}}}); err != nil {
		t.Fatal(err)
	}
	b.damage = func() string { return "a page is gone" }
	for _, of := range []string{"all", "00:00:00:00:00:00:00:01"} {
		_, err := b.deleteByAPI(t.Context(), &api.DeleteFirewallRulesRequest{AllOf: of})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "a page is gone") {
			t.Errorf("deleting all of %s: %v", of, err)
		}
	}
	if resp, err := b.deleteByAPI(t.Context(), &api.DeleteFirewallRulesRequest{Ids: []string{"one"}}); err != nil || resp.Deleted != 1 {
		t.Errorf("deleting one: %v, %v", resp, err)
	}
	b.damage = func() string { return "" }
	if resp, err := b.deleteByAPI(t.Context(), &api.DeleteFirewallRulesRequest{AllOf: "all"}); err != nil || resp.Deleted != 1 {
		t.Errorf("deleting all: %v, %v", resp, err)
	}
}
