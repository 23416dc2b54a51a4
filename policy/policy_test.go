package policy_test

import (
	"context"
	"errors"
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

// TestAdmit: a policy is refused beside another and changes nothing; Order is that of lists;
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
