package scp

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// TestAppWeights: an app chooses by weights, at end points and for requests, for as long as it
// sets them; what it does not say is as without it.
func TestAppWeights(t *testing.T) {
	g := newRig(t)
	none := func(p *sbi.NFProfile) { p.HeartBeatTimer = 0 }
	one := g.function(5, sbi.UDM, none)
	g.function(6, sbi.UDM, none)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	set := func(n int, app string, weight, seconds uint32) codes.Code {
		_, err := setWeight(g.proxy, &api.SetProducerWeightRequest{Instance: id(n), App: app, Weight: weight, Seconds: seconds}, g.now.Load())
		return api.KindOf(err)
	}
	if got := set(5, "nearby", 1, 0); got != codes.FailedPrecondition {
		t.Errorf("by another algorithm: %v", got)
	}
	policy, err := readPolicy(&api.ScpPolicy{Type: "UDM", Algorithm: "app:Nearby", Per: "connection"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.proxy.policies.Change(t.Context(), "UDM", func(*api.ScpPolicy) (*api.ScpPolicy, error) { return policy, nil }); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		for range 20 {
			if _, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...); strings.HasPrefix(body, "5 ") {
				n++
			}
		}
		return n
	}
	vip := "scp-udm." + strconv.Itoa(int(one.at.Port()))
	is := func(when string, want int, state string, weight uint32) {
		t.Helper()
		if n := count(); n != want {
			t.Errorf("%s: %d of 20 requests, want %d", when, n, want)
		}
		g.vip(vip, func(v *api.Vip) bool {
			return v.Policy == "weighted" && v.Pool[0].State == state && v.Pool[0].Weight == weight
		})
	}
	is("without weights", 10, "", 100)
	if got := set(5, "NEARBY", 300, 30); got != codes.OK {
		t.Fatalf("weight: %v", got)
	}
	is("three times that of the other", 15, "", 300)
	set(5, "nearby", 0, 30)
	is("nothing new", 0, "draining", 1)
	set(6, "nearby", 0, 30)
	if n := count(); n != 10 {
		t.Errorf("nothing new at all: %d of 20 requests, want what it was", n)
	}
	g.now.Add(int64(31 * time.Second))
	is("later", 10, "", 100)
	for name, got := range map[string]codes.Code{
		"nobody": set(99, "nearby", 1, 0), "too large": set(5, "nearby", 70_000, 0), "too long": set(5, "nearby", 1, 4000), "another app": set(5, "other", 1, 0),
	} {
		if got == codes.OK {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, name := range []string{"app:", "app:a b", "apps"} {
		if _, err := readPolicy(&api.ScpPolicy{Type: "UDM", Algorithm: name}); err == nil {
			t.Errorf("algorithm %q: accepted", name)
		}
	}
}
