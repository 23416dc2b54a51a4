// Package policytest tests services that policy.Spec declares. Tests import it, nothing
// else does.
package policytest

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/policy"
	"github.com/weft-sdn/weft/wefttest"
)

// Run sets, lists and deletes an object with two switches, and restarts the service
// meanwhile. good has some flows on each switch; each of bad is rejected as invalid.
func Run[M policy.Message](t *testing.T, spec weft.Spec, flows int, good M, bad ...M) {
	t.Helper()
	set, remove, list := spec.Serves[0], spec.Serves[1], spec.Serves[2]
	wefttest.Run(t, spec, func(t *testing.T, h *wefttest.Harness) {
		s := &switches{flows: map[string]map[string]bool{}}
		wefttest.Fake(h, api.SetStanding, s.set)
		call := func(m weft.Method, fill func(protoreflect.Message)) (protoreflect.Message, error) {
			req, _ := m.NewMessages()
			fill(req.(proto.Message).ProtoReflect())
			resp, err := wefttest.CallAny(t.Context(), h, m, req)
			if err != nil {
				return nil, err
			}
			return resp.(proto.Message).ProtoReflect(), nil
		}
		object := func(o M) func(protoreflect.Message) {
			var none M
			return func(req protoreflect.Message) {
				if o == none {
					return
				}
				req.Set(req.Descriptor().Fields().Get(0), protoreflect.ValueOfMessage(proto.CloneOf(o).ProtoReflect()))
			}
		}
		name := func(req protoreflect.Message) {
			object := good.ProtoReflect()
			req.Set(req.Descriptor().Fields().ByName("name"), object.Get(object.Descriptor().Fields().ByName("name")))
		}
		connect := func(dpid string) {
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: true, Openflow: "1.3", Tables: 254}})
		}
		await := func(what string, want int, dpids ...string) {
			t.Helper()
			testwait.Until(t, what, func() bool {
				for _, d := range dpids {
					if s.count(d) != want {
						return false
					}
				}
				return true
			})
		}
		listed := func(want int) {
			t.Helper()
			resp, err := call(list, func(protoreflect.Message) {})
			if err != nil {
				t.Fatal(err)
			}
			if n := resp.Get(resp.Descriptor().Fields().Get(0)).List().Len(); n != want {
				t.Errorf("%d objects are listed, want %d", n, want)
			}
		}
		const first, second = "0000000000000001", "0000000000000002"
		h.Start()
		connect(first)
		await("an empty set", 0, first)
		if _, err := call(set, object(good)); err != nil {
			t.Fatal(err)
		}
		await("flows of an object", flows, first)
		connect(second)
		await("flows on a second switch", flows, second)
		listed(1)
		for _, b := range bad {
			if _, err := call(set, object(b)); api.KindOf(err) != codes.InvalidArgument {
				t.Errorf("%v: %v, want InvalidArgument", b, err)
			}
		}
		s.forget()
		h.Restart() // the bucket stays
		connect(first)
		connect(second)
		await("flows after a restart", flows, first, second)
		listed(1)
		if _, err := call(remove, name); err != nil {
			t.Fatal(err)
		}
		await("no flows of a deleted object", 0, first, second)
		listed(0)
	})
}

// switches stands for flowrules, and has the flows of each switch.
type switches struct {
	mu    sync.Mutex // guards flows
	flows map[string]map[string]bool
	last  map[string]uint64
}

func (s *switches) set(_ context.Context, q *api.SetStandingRequest) (*api.SetStandingResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Base == 0 {
		s.flows[q.Dpid] = map[string]bool{}
	} else if s.last[q.Dpid] != q.Base && s.last[q.Dpid] != q.Revision {
		return nil, api.Errorf(codes.FailedPrecondition, "declare the whole set")
	}
	key := func(f *api.FlowEntry) string {
		b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&api.FlowEntry{Table: f.Table, Priority: f.Priority, Match: f.Match})
		return string(b)
	}
	for _, f := range q.Flows {
		s.flows[q.Dpid][key(f)] = true
	}
	for _, f := range q.Gone {
		delete(s.flows[q.Dpid], key(f))
	}
	if s.last == nil {
		s.last = map[string]uint64{}
	}
	s.last[q.Dpid] = q.Revision
	return &api.SetStandingResponse{}, nil
}

// count returns how many flows a switch has; -1 if nothing was sent to it.
func (s *switches) count(dpid string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flows[dpid] == nil {
		return -1
	}
	return len(s.flows[dpid])
}

// forget empties the switches.
func (s *switches) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.flows)
	clear(s.last)
}
