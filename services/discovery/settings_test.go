package discovery

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLinkSettings: what the operator says of a link is told with it, also of one that is not there
// yet, and stays over a restart.
func TestLinkSettings(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("settle: 200ms\ninterval: 100ms\ntimeout: 2m")
		frames, traps := fakes(h)
		a, b := at(1, 1), at(0xb, 2)
		set := func(m *api.LinkSettings, change ...string) (*api.LinkSettings, error) {
			r, err := wefttest.Call(h, api.SetLink, &api.SetLinkRequest{A: api.NewLocation(b), B: api.NewLocation(a), Settings: m, Change: change})
			return r.GetSettings(), err
		}
		want := &api.LinkSettings{CapacityKbps: 1000, DelayUs: 7, Colours: []string{"gold", "sea"}, RiskGroups: []string{"duct-1"}}
		if got, err := set(&api.LinkSettings{CapacityKbps: 1000, DelayUs: 7, Colours: []string{"sea", "gold", "sea"}, RiskGroups: []string{"duct-1"}}); err != nil || !proto.Equal(got, want) {
			t.Fatalf("%v, %v", got, err)
		}
		come := func() {
			t.Helper()
			wefttest.Publish(h, api.SwitchChangedEvent, connected(1, 1, 2))
			wefttest.Publish(h, api.SwitchChangedEvent, connected(0xb, 2))
			for range 2 {
				<-traps
			}
			carry(t, h, frames, a, b, 4)
		}
		come()
		told := func() *api.Link {
			return wefttest.Await(h, api.LinkChangedEvent, func(e *api.LinkChanged) bool {
				return !e.Removed && e.Link.State == "up" && proto.Equal(e.Link.Settings, want)
			}).Link
		}
		if l := told(); l.CapacityKbps != 1000 {
			t.Errorf("%v", l)
		}
		want.Drained, want.CapacityKbps, want.Colours = true, 0, nil
		if got, err := set(&api.LinkSettings{Drained: true}, "drained", "capacity_kbps", "colours"); err != nil || !proto.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
		told()
		for what, m := range map[string]*api.LinkSettings{
			"capacity": {CapacityKbps: capacityMax + 1}, "delay": {DelayUs: delayMax + 1}, "metric": {Metric: maxWeight + 1},
			"colour": {Colours: []string{"a b"}}, "risk group": {RiskGroups: []string{strings.Repeat("x", 33)}}, "33 risk groups": {RiskGroups: many(33)},
		} {
			if _, err := set(m); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := set(nil, "speed"); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "want one of capacity_kbps, delay_us, metric, colours, risk_groups, drained") {
			t.Errorf("%v", err)
		}
		other := &api.SetLinkRequest{A: api.NewLocation(at(1, 2)), B: api.NewLocation(at(2, 2)), Settings: &api.LinkSettings{Colours: many(coloursMax)}}
		if _, err := wefttest.Call(h, api.SetLink, other); err != nil {
			t.Error(err)
		}
		if _, err := set(&api.LinkSettings{Colours: []string{"one-more"}}, "colours"); api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("64 colours: %v", err)
		}
		other.B = other.A
		if _, err := wefttest.Call(h, api.SetLink, other); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("a link of one switch: %v", err)
		}
		h.Restart()
		come()
		told()
		r, err := wefttest.Call(h, api.ListLinks, &api.ListLinksRequest{})
		if err != nil || len(r.Settings) != 2 || !proto.Equal(r.Settings[0].Settings, want) {
			t.Errorf("%v, %v", r, err)
		}
		want = nil
		if got, err := set(nil); err != nil || proto.Size(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
		told()
	})
}

func many(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("name-%02d", i))
	}
	return names
}
