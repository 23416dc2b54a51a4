package firewall

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
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

// TestOlderStore: a store of an earlier version loads, with a change that it has not
// finished; and the service does not start with a part of the rules.
func TestOlderStore(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		newPeers(h)
		numbered := func(n uint32, r *api.FirewallRule) *api.FirewallRule { r.Number = n; return r }
		text := func(m proto.Message) []byte {
			value, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		put := func(key string, value []byte) {
			if _, err := h.Bucket("rules").Put(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
		}
		put("rules/00000000", text(&api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{numbered(1, deny("one", 1, "tcp_dst=80", "ip_dscp=4")), numbered(7, deny("seven", 2))}}))
		put("defaults", text(&api.FirewallStatus{DefaultAction: "deny", Switches: []*api.FirewallSwitch{{Dpid: "00:00:00:00:00:00:00:02", DefaultAction: "block", OwnDefault: true}}}))
		put("segments", text(&api.ListNetworksResponse{Networks: []*api.TenantNetwork{{Tenant: "red", Segment: 20}}}))
		put("of/another-version", []byte("x"))
		red := &api.FirewallRule{Id: "red", Number: 600, Action: "deny", Tenant: "red"}
		writes, err := json.Marshal([]object.Write{{Key: "rules/00000001", After: text(&api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{red}})}})
		if err != nil {
			t.Fatal(err)
		}
		put("=change/a/head", fmt.Appendf(nil, `{"writes":%s}`, writes))
		h.Start()
		connect(h, 1, true)
		check := func(vlan, id string) {
			t.Helper()
			resp, err := wefttest.Call(h, api.CheckFirewall, &api.CheckFirewallRequest{Packet: map[string]string{"eth_type": "0x0806", "vlan_vid": vlan}})
			if err != nil || resp.Action != actionDeny || resp.Rule.GetId() != id {
				t.Errorf("VLAN %s: %v, %v", vlan, resp, err)
			}
		}
		check("20", "seven")
		if _, err := wefttest.Call(h, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{Ids: []string{"seven"}}); err != nil {
			t.Fatal(err)
		}
		check("20", "red")
		check("21", "")
		if status, err := wefttest.Call(h, api.GetFirewallStatus, &api.GetFirewallStatusRequest{}); err != nil || status.Rules != 2 || status.DefaultAction != "deny" {
			t.Errorf("status: %v, %v", status, err)
		}

		h.Stop()
		red.Number = 601
		for _, bad := range []proto.Message{
			&api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{numbered(1, deny("three", 1))}},
			&api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{numbered(1024, deny("red", 1))}},
			&api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{numbered(1024, deny("a", 1)), numbered(1024, deny("b", 1))}},
			&api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{numbered(1024, deny("c", 1, "nothing=1"))}},
			&api.AddFirewallRulesRequest{},
		} {
			put("rules/00000002", text(bad))
			if err := h.StartError(); err == nil || !strings.Contains(err.Error(), "rules/00000002") {
				t.Errorf("with %v: %v", bad, err)
			}
		}
	})
}

// TestRulesOfAnotherInstance: what another instance stores comes into force, and what it
// does not touch keeps its counts.
func TestRulesOfAnotherInstance(t *testing.T) {
	s := newSlow(t)
	close(s.hold)
	open := func() *store {
		b := newStore(DefaultConfig(), nil, slog.New(slog.DiscardHandler))
		b.kept.Open(s)
		b.keeper = content{}
		return b
	}
	a, b := open(), open()
	ctx, end := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { b.kept.Follow(ctx) })
	defer work.Wait()
	defer end()
	add := func(to *store, rules ...*api.FirewallRule) error {
		_, err := to.addRules(t.Context(), &api.AddFirewallRulesRequest{Rules: rules})
		return err
	}
	many := make([]*api.FirewallRule, 600)
	for i := range many {
		many[i] = deny(fmt.Sprint("r", i), uint32(i), "tcp_dst="+fmt.Sprint(i+1))
	}
	if err := add(a, many...); err != nil {
		t.Fatal(err)
	}
	rules := func() int { return b.now.Load().rules }
	testwait.Until(t, "its rules in force", func() bool { return rules() == 600 })
	b.mu.Lock()
	b.rules["r3"].count.add(60)
	b.mu.Unlock()
	if _, err := a.deleteRules(t.Context(), &api.DeleteFirewallRulesRequest{Ids: []string{"r4", "r590"}}, func(*rule) bool { return false }); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "two of them gone", func() bool { return rules() == 598 })
	if _, err := a.setDefault(t.Context(), &api.SetFirewallDefaultRequest{Action: "block"}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "its default in force", func() bool { return b.now.Load().fallback == actionBlock })
	resp, err := b.listRules(t.Context(), &api.ListFirewallRulesRequest{Ids: []string{"r3"}})
	if err != nil || len(resp.Rules) != 1 || resp.Rules[0].Packets != 1 || resp.Rules[0].Bytes != 60 {
		t.Errorf("%v, %v", resp, err)
	}
	if err := add(b, deny("again", 1), deny("more", 1), deny("one-more", 1)); err != nil || rules() != 601 {
		t.Errorf("%v, %d rules", err, rules())
	}
}
