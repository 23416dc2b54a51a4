package policy_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/policy"
	"github.com/weft-sdn/weft/policy/policytest"
	"github.com/weft-sdn/weft/wefttest"
)

// kind is a kind of marks, set by the calls of qos. A mark of N has N flows.
func kind() policy.Kind[*api.QosPolicy, *api.QosPolicy] {
	return policy.Kind[*api.QosPolicy, *api.QosPolicy]{
		What: "mark", Many: "marks", Owner: flow.OwnerQoS,
		Set: api.QosSetPolicy, Delete: api.QosDeletePolicy, List: api.QosListPolicies,
		Check: func(m *api.QosPolicy) (*api.QosPolicy, error) {
			if m.MarkDscp == nil {
				return nil, errors.New("mark_dscp: missing")
			}
			return m, nil
		},
		Compile: func(_ *api.Switch, m *api.QosPolicy) (r policy.Rules) {
			for n := range m.GetMarkDscp() {
				r.Flows = append(r.Flows, flow.Entry{Table: flow.TableQoS, Priority: uint16(n + 1)})
			}
			return r
		},
	}
}

func mark(n uint32) *uint32 { return &n }

func TestKind(t *testing.T) {
	policytest.Run(t, policy.Spec("qos", "marks", kind()), 3, &api.QosPolicy{Name: "m", MarkDscp: mark(3)},
		nil, &api.QosPolicy{MarkDscp: mark(1)}, &api.QosPolicy{Name: "m"}, &api.QosPolicy{Name: "../x", MarkDscp: mark(1)})
}

// TestAdmit: a policy is refused beside another and changes nothing; one that is as it was is
// told apart; Order is that of lists;
// what is stored and cannot be read is left out, and the rest is there.
func TestAdmit(t *testing.T) {
	k := kind()
	var p *policy.Policy[*api.QosPolicy, *api.QosPolicy]
	k.Admit = func(now, old *api.QosPolicy) error {
		for o := range p.All() {
			if o != old && o.GetMarkDscp() == now.GetMarkDscp() {
				return api.Errorf(codes.AlreadyExists, "policy %s has that mark", o.Name)
			}
		}
		return nil
	}
	bucket, err := wefttest.NewStore().Bucket(t.Context(), "qos.objects")
	if err != nil {
		t.Fatal(err)
	}
	unchanged := ""
	k.Unchanged = func(m *api.QosPolicy) { unchanged += m.Name }
	k.Most, k.Raise = func() int { return 2 }, "qos.policies"
	p = policy.New(k)
	p.Open(bucket)
	for _, c := range []struct {
		name string
		mark uint32
		want codes.Code
	}{{"a", 1, codes.OK}, {"b", 2, codes.OK}, {"b", 1, codes.AlreadyExists}, {"a", 1, codes.OK}, {"c", 3, codes.ResourceExhausted}} {
		if _, _, err := p.Set(t.Context(), &api.QosPolicy{Name: c.name, MarkDscp: mark(c.mark)}); api.KindOf(err) != c.want {
			t.Errorf("%s %d: %v, want %v", c.name, c.mark, err, c.want)
		}
	}
	if unchanged != "a" {
		t.Errorf("unchanged: %q, want a", unchanged)
	}
	if old, err := p.Delete(t.Context(), &api.QosPolicy{Name: "a"}); err != nil || old.GetName() != "a" {
		t.Errorf("deleted %v, %v", old, err)
	}
	if old, err := p.Delete(t.Context(), &api.QosPolicy{Name: "a"}); err != nil || old != nil {
		t.Errorf("deleted twice: %v, %v", old, err)
	}
	if _, err := bucket.Put(t.Context(), "z", []byte("{")); err != nil {
		t.Fatal(err)
	}
	k, bad := kind(), ""
	k.Bad = func(name string, _ error) { bad += name }
	again := policy.New(k)
	again.Open(bucket)
	if err := again.Load(t.Context()); err != nil || bad != "z" || again.Len() != 1 {
		t.Errorf("%v, unreadable %q, %d objects", err, bad, again.Len())
	}
}

// TestHold: nothing is sent to a switch while it is held; then it gets what was set in the
// meantime.
func TestHold(t *testing.T) {
	var known atomic.Bool
	k := kind()
	k.Observed = func(e *api.FlowsObserved) { known.Store(true) }
	k.Hold = func(*api.Switch) time.Duration {
		if known.Load() {
			return 0
		}
		return time.Hour
	}
	wefttest.Run(t, policy.Spec("qos", "marks", k), func(t *testing.T, h *wefttest.Harness) {
		known.Store(false)
		given := make(chan int, 10) // how many flows
		wefttest.Fake(h, api.SetStanding, func(_ context.Context, q *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			given <- len(q.Flows)
			return &api.SetStandingResponse{}, nil
		})
		h.Start()
		const sw = "0000000000000001"
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Tables: 254}})
		h.Settle()
		if _, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: "m", MarkDscp: mark(3)}}); err != nil {
			t.Fatal(err)
		}
		if n := len(given); n > 0 {
			t.Errorf("%d sets are sent to a switch that keeps what it has", n)
		}
		wefttest.Publish(h, api.FlowsObservedEvent, &api.FlowsObserved{Dpid: sw, Owner: flow.OwnerQoS.String()})
		if n := <-given; n != 3 {
			t.Errorf("then it is given %d flows, want 3", n)
		}
	})
}

// TestDryRun: a dry run says what the call would do, is refused as the call would be, and
// changes nothing; an object that may not go stays.
func TestDryRun(t *testing.T) {
	kind := policy.Kind[*api.Vip, *api.Vip]{
		What: "vip", Many: "VIPs", Owner: flow.OwnerBalancer,
		Set: api.SetVip, Delete: api.DeleteVip, List: api.ListVips,
		Check: func(m *api.Vip) (*api.Vip, error) { return m, nil },
		Admit: func(now, old *api.Vip) error {
			if now.Port == 0 {
				return api.Errorf(codes.FailedPrecondition, "has no port")
			}
			return nil
		},
		Release: func(old *api.Vip) error {
			if old.Port == 80 {
				return api.Errorf(codes.FailedPrecondition, "stays")
			}
			return nil
		},
		Compile: func(*api.Switch, *api.Vip) (r policy.Rules) { return r },
	}
	wefttest.Run(t, policy.Spec("balancer", "VIPs", kind), func(t *testing.T, h *wefttest.Harness) {
		wefttest.Fake(h, api.SetStanding, func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return &api.SetStandingResponse{}, nil
		})
		h.Start()
		ports := func() (list []uint32) {
			t.Helper()
			resp, err := wefttest.Call(h, api.ListVips, &api.ListVipsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range resp.Vips {
				if list = append(list, v.Port); v.Effect != "" {
					t.Errorf("a list says %s", v.Effect)
				}
			}
			return list
		}
		for _, c := range []struct {
			port   uint32
			effect string
			want   []uint32
		}{{81, "added", nil}, {81, "unchanged", []uint32{81}}, {80, "replaced", []uint32{81}}, {0, "", []uint32{80}}} {
			if got := ports(); !slices.Equal(got, c.want) {
				t.Errorf("before port %d is set: %v, want %v", c.port, got, c.want)
			}
			req := &api.SetVipRequest{Vip: &api.Vip{Name: "a", Port: c.port}, DryRun: true}
			would, refused := wefttest.Call(h, api.SetVip, req)
			if got := ports(); !slices.Equal(got, c.want) {
				t.Errorf("a dry run of port %d has made of %v: %v", c.port, c.want, got)
			}
			is, err := wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: req.Vip})
			if would.GetEffect() != c.effect || is.GetEffect() != c.effect || api.KindOf(refused) != api.KindOf(err) {
				t.Errorf("port %d: %s, %v in a dry run, then %s, %v; want %s", c.port, would.GetEffect(), refused, is.GetEffect(), err, c.effect)
			}
		}
		for _, dry := range []bool{true, false} {
			if _, err := wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "a", DryRun: dry}); api.KindOf(err) != codes.FailedPrecondition {
				t.Errorf("deleting what stays: %v", err)
			}
		}
		if _, err := wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: &api.Vip{Name: "a", Port: 81}}); err != nil {
			t.Fatal(err)
		}
		for _, dry := range []bool{true, false} {
			resp, err := wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "a", DryRun: dry})
			if err != nil || !resp.Deleted || len(ports()) != map[bool]int{true: 1}[dry] {
				t.Errorf("deleting, dry run %v: %v, %v, then there are %v", dry, resp, err, ports())
			}
		}
	})
}
