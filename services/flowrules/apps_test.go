package flowrules

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// TestAppsOwnTheirEntries: an app writes and deletes its own entries only, and
// no more than it may have, also after a restart; the operator may touch all.
func TestAppsOwnTheirEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, defaults(), 1)
		g.connect(1)
		of := func(app string, priority uint32) *api.FlowEntry {
			f := wanted(1, priority, 1, 2)
			if app != "" {
				f.Owner = api.AppOwner(app)
			}
			return f
		}
		add := func(most uint32, f *api.FlowEntry) codes.Code {
			_, err := g.rules.AddFlows(t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{f}, Most: most})
			return api.KindOf(err)
		}
		remove := func(f *api.FlowEntry) uint32 {
			t.Helper()
			resp, err := g.rules.DeleteFlows(t.Context(), &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{f}})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Deleted
		}
		expect := func(what string, got, want codes.Code) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		expect("the operator's", add(0, of("", 1)), codes.OK)
		expect("a's", add(2, of("a", 2)), codes.OK)
		expect("a's again", add(2, of("a", 2)), codes.OK)
		expect("a in the operator's place", add(2, of("a", 1)), codes.PermissionDenied)
		expect("b in a's place", add(2, of("b", 2)), codes.PermissionDenied)
		expect("a's second", add(2, of("a", 3)), codes.OK)
		expect("a's third of two", add(2, of("a", 4)), codes.ResourceExhausted)
		if n := remove(of("b", 2)) + remove(of("a", 1)); n != 0 {
			t.Errorf("%d entries of others deleted", n)
		}
		g.start(defaults())
		g.connect(1)
		synctest.Wait()
		expect("b in a's place, after a restart", add(2, of("b", 2)), codes.PermissionDenied)
		list, err := g.rules.ListFlows(t.Context(), &api.ListFlowsRequest{})
		if err != nil || len(list.Flows) != 3 || list.Flows[0].Flow.Owner != "app a" || list.Flows[2].Flow.Owner != "operator" {
			t.Errorf("%v, %v", list, err)
		}
		if n := remove(of("a", 2)) + remove(of("", 3)); n != 2 {
			t.Errorf("%d deleted by who may, want 2", n)
		}
		expect("a's third of two, after others have gone", add(2, of("a", 4)), codes.OK)
	})
}
