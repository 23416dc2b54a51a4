package balancer

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestDryRun: a dry run says what the same call then does, refuses what it
// refuses, and changes nothing.
func TestDryRun(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("vips: 2")
		fakes(h)
		h.Start()
		other := func(name string, port uint32) *api.Vip {
			v := web("", 5)
			v.Name, v.Port = name, port
			return v
		}
		for _, c := range []struct {
			name, effect string
			vip          *api.Vip
			code         codes.Code
		}{
			{"new", "added", web("", 5), codes.OK},
			{"the same", "unchanged", web("", 5), codes.OK},
			{"other", "replaced", web("", 5, 6), codes.OK},
			{"a second", "added", other("second", 81), codes.OK},
			{"no address", "", &api.Vip{Name: "bad"}, codes.InvalidArgument},
			{"the port of another", "", other("second", 80), codes.AlreadyExists},
			{"too many", "", other("third", 82), codes.ResourceExhausted},
			{"none", "", nil, codes.InvalidArgument},
		} {
			before := state(t, h)
			would, refused := wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: c.vip, DryRun: true})
			if !proto.Equal(before, state(t, h)) {
				t.Errorf("%s: the dry run has changed something", c.name)
			}
			is, err := wefttest.Call(h, api.SetVip, &api.SetVipRequest{Vip: c.vip})
			if api.KindOf(refused) != c.code || (err == nil) != (refused == nil) || err != nil && err.Error() != refused.Error() {
				t.Errorf("%s: the dry run says %v, the call %v", c.name, refused, err)
			}
			if would.GetEffect() != c.effect || is.GetEffect() != c.effect || would.GetMac() != is.GetMac() || len(would.GetPool()) != len(is.GetPool()) {
				t.Errorf("%s: would be %v, is %v", c.name, would, is)
			}
		}
		tried(t, h, "a new member", "replaced", api.SetMember, func(dry bool) *api.SetMemberRequest {
			return &api.SetMemberRequest{Vip: "web", Member: &api.PoolMember{Address: "10.0.0.7"}, DryRun: dry}
		})
		tried(t, h, "the same member", "unchanged", api.SetMember, func(dry bool) *api.SetMemberRequest {
			return &api.SetMemberRequest{Vip: "web", Member: &api.PoolMember{Address: "10.0.0.7"}, DryRun: dry}
		})
		tried(t, h, "a wrong member", "", api.SetMember, func(dry bool) *api.SetMemberRequest {
			return &api.SetMemberRequest{Vip: "web", Member: &api.PoolMember{Address: "x"}, DryRun: dry}
		})
		tried(t, h, "a member that drains", "replaced", api.DrainMember, func(dry bool) *api.DrainMemberRequest {
			return &api.DrainMemberRequest{Vip: "web", Address: "10.0.0.7", DryRun: dry}
		})
		tried(t, h, "draining of none", "", api.DrainMember, func(dry bool) *api.DrainMemberRequest {
			return &api.DrainMemberRequest{Vip: "web", Address: "10.0.0.8", DryRun: dry}
		})
		tried(t, h, "a member deleted", "replaced", api.DeleteMember, func(dry bool) *api.DeleteMemberRequest {
			return &api.DeleteMemberRequest{Vip: "web", Address: "10.0.0.7", DryRun: dry}
		})
		tried(t, h, "no member deleted", "unchanged", api.DeleteMember, func(dry bool) *api.DeleteMemberRequest {
			return &api.DeleteMemberRequest{Vip: "web", Address: "10.0.0.8", DryRun: dry}
		})
		tried(t, h, "a member of none", "", api.DeleteMember, func(dry bool) *api.DeleteMemberRequest {
			return &api.DeleteMemberRequest{Vip: "none", Address: "10.0.0.8", DryRun: dry}
		})
		for _, there := range []bool{true, false} {
			before := state(t, h)
			would, err := wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "second", DryRun: true})
			if err != nil || would.Deleted != there || !proto.Equal(before, state(t, h)) {
				t.Errorf("deleting second: would be %v, %v; want deleted %v and nothing changed", would, err, there)
			}
			if _, err := wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "second"}); err != nil {
				t.Error(err)
			}
		}
		if _, err := wefttest.Call(h, api.SetOwnedVip, &api.SetOwnedVipRequest{Owner: "scp", Vip: other("theirs", 90)}); err != nil {
			t.Fatal(err)
		}
		if _, err := wefttest.Call(h, api.DeleteVip, &api.DeleteVipRequest{Name: "theirs", DryRun: true}); api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("deleting that of a service: %v, want FailedPrecondition", err)
		}
	})
}

// tried compares the dry run of a change of a member with the change.
func tried[Req any](t *testing.T, h *wefttest.Harness, name, effect string, method api.Method[Req, api.Vip], request func(dry bool) *Req) {
	t.Helper()
	before := state(t, h)
	would, refused := wefttest.Call(h, method, request(true))
	if !proto.Equal(before, state(t, h)) {
		t.Errorf("%s: the dry run has changed something", name)
	}
	is, err := wefttest.Call(h, method, request(false))
	if (refused == nil) != (effect != "") || (err == nil) != (refused == nil) || err != nil && err.Error() != refused.Error() {
		t.Errorf("%s: the dry run says %v, the call %v", name, refused, err)
	}
	if would.GetEffect() != effect || is.GetEffect() != effect || len(would.GetPool()) != len(is.GetPool()) {
		t.Errorf("%s: would be %v, is %v", name, would, is)
	}
}

// state is the VIPs in force and stored.
func state(t *testing.T, h *wefttest.Harness) *api.ListVipsResponse {
	t.Helper()
	list, err := wefttest.Call(h, api.ListVips, &api.ListVipsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	resp := proto.CloneOf(list)
	if err := h.Bucket("vips").All(context.Background(), func(key string, value []byte, _ uint64) error {
		resp.Vips = append(resp.Vips, &api.Vip{Name: key, Mac: string(value)})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return resp
}
