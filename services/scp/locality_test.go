package scp

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// TestLocalityOfConsumer: by the policy locality, consumers get producers of the locality that
// they have registered, as if they had asked for it, where requests are passed on, too, and
// others when none of that serves.
func TestLocalityOfConsumer(t *testing.T) {
	g := newRig(t)
	g.function(5, sbi.UDM, func(p *sbi.NFProfile) { p.Locality = "east" })
	west := g.function(6, sbi.UDM, func(p *sbi.NFProfile) { p.Locality = "west" })
	g.register(1, sbi.AMF, func(p *sbi.NFProfile) { p.Locality = "west" })
	g.register(2, sbi.AMF)
	set := func(algorithm string) {
		policy := &api.ScpPolicy{Type: "UDM", Algorithm: algorithm, Per: "connection", Again: "bound"}
		if _, _, err := g.proxy.policies.Change(t.Context(), "UDM", func(*api.ScpPolicy) (*api.ScpPolicy, error) { return policy, nil }); err != nil {
			t.Fatal(err)
		}
	}
	localityOf := func(n int, more string) string {
		_, found, _ := g.discover(n, sbi.AMF, sbi.UDM, more)
		if len(found.NFInstances) != 1 {
			t.Fatalf("found %v", found.NFInstances)
		}
		return found.NFInstances[0].Locality
	}
	count := func() (n int) {
		for range 10 {
			if _, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...); strings.HasPrefix(body, "6 ") {
				n++
			}
		}
		return n
	}
	set("weighted")
	if got, n := localityOf(1, ""), count(); got != "" || n != 5 {
		t.Errorf("weighted: an end point of %q, %d of 10 requests to the west", got, n)
	}
	set("locality")
	if got, n := localityOf(1, ""), count(); got != "west" || n != 10 {
		t.Errorf("by locality: an end point of %q, %d of 10 requests to the west", got, n)
	}
	if got, own := localityOf(2, ""), localityOf(1, "&preferred-locality=east"); got != "" || own != "east" {
		t.Errorf("of a consumer without a locality: %q, of one that prefers another: %q", got, own)
	}
	for _, e := range g.proxy.get(&api.GetScpRequest{}, nil, g.now.Load()).Endpoints {
		if v := g.vip(e.Vip, func(v *api.Vip) bool { return v.Policy == "weighted" }); e.Locality == "west" && len(v.Pool) != 1 && v.Pool[0].Priority <= v.Pool[1].Priority {
			t.Errorf("the end point of the west: %v", v.Pool)
		}
	}
	west.stop()
	if n := count(); n != 0 {
		t.Errorf("%d requests were answered by one that has ended", n)
	}
	if resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...); resp.StatusCode != 200 || !strings.HasPrefix(body, "5 ") {
		t.Errorf("when the west has ended: %s %s", resp.Status, body)
	}
}
