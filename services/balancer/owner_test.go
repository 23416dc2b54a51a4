package balancer

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// TestOwners: neither the operator nor scp changes the other's VIPs, and clients
// are the operator whatever they say.
func TestOwners(t *testing.T) {
	g := newRig(t)
	ctx := context.Background()
	claimed := web("", 5)
	claimed.Owner = "scp"
	if v := g.set(claimed); v.Owner != "operator" {
		t.Errorf("a client's VIP belongs to %s", v.Owner)
	}
	theirs := web("", 6)
	theirs.Name, theirs.Port = "udm", 81
	if v, err := g.b.SetOwnedVip(ctx, &api.SetOwnedVipRequest{Owner: "scp", Vip: theirs}); err != nil || v.Owner != "scp" {
		t.Fatalf("%v, %v", v, err)
	}
	var errs []error
	refused := func(_ any, err error) { errs = append(errs, err) }
	_, _, err := g.b.vips.Set(ctx, theirs)
	refused(nil, err)
	refused(g.b.vips.Delete(ctx, &api.Vip{Name: "udm"}))
	refused(g.b.SetMember(ctx, &api.SetMemberRequest{Vip: "udm", Member: &api.PoolMember{Address: v4(7).String()}}))
	refused(g.b.DeleteMember(ctx, &api.DeleteMemberRequest{Vip: "udm", Address: v4(6).String(), Port: 8080}))
	refused(g.b.DrainMember(ctx, &api.DrainMemberRequest{Vip: "udm", Address: v4(6).String(), Port: 8080}))
	refused(g.b.SetOwnedVip(ctx, &api.SetOwnedVipRequest{Owner: "scp", Vip: claimed}))
	refused(g.b.DeleteOwnedVip(ctx, &api.DeleteOwnedVipRequest{Owner: "scp", Name: "web"}))
	for i, err := range errs {
		if api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("change %d of another's VIP: %v", i, err)
		}
	}
	for _, o := range []string{"", "operator", "nobody"} {
		if _, err := g.b.SetOwnedVip(ctx, &api.SetOwnedVipRequest{Owner: o, Vip: theirs}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("owner %q: %v", o, err)
		}
	}
	g.start(g.store) // another run
	if g.show("udm").Owner != "scp" || g.show("web").Owner != "operator" {
		t.Errorf("%v %v", g.show("udm"), g.show("web"))
	}
	if r, err := g.b.DeleteOwnedVip(ctx, &api.DeleteOwnedVipRequest{Owner: "scp", Name: "udm"}); err != nil || !r.Deleted {
		t.Errorf("%v, %v", r, err)
	}
	if old, err := g.b.vips.Delete(ctx, &api.Vip{Name: "udm"}); err != nil || old != nil {
		t.Errorf("one that is not there: %v, %v", old, err)
	}
}

// TestPriority: members of the lowest priority that serves get all connections,
// by their weights.
func TestPriority(t *testing.T) {
	g := newRig(t)
	v := web("", 5, 6, 7)
	v.Pool[0].Priority, v.Pool[0].Weight = 1, 65_535
	v.Pool[1].Weight, v.Pool[2].Weight = 30_000, 10_000
	g.set(v)
	if got := g.shares(40); got[5] != 0 || got[6] != 30 || got[7] != 10 {
		t.Errorf("%v", got)
	}
	for _, n := range []int{6, 7} {
		if _, err := g.b.DrainMember(context.Background(), &api.DrainMemberRequest{Vip: "web", Address: v4(n).String(), Port: 8080}); err != nil {
			t.Fatal(err)
		}
	}
	if got := g.shares(4); got[5] != 4 {
		t.Errorf("the lower ones are drained: %v", got)
	}
}
