package deploy_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// TestApplyWhatCannotStart checks that a plan with a process that could not
// start is refused as a start refuses it, in a dry run, too, and changes
// nothing.
func TestApplyWhatCannotStart(t *testing.T) {
	c := newCluster(t, []weft.Spec{{Name: "plain"}}, nil)
	const form = "{name: a, events: grpc, workers: {w0: {services: [plain], listen: \"%\"}}}"
	plan := func(listen string) string { return strings.Replace(form, "%", listen, 1) }
	c.apply(plan("127.0.0.1:0"))
	c.startAll()
	n := c.process("w0").node
	for listen, want := range map[string]string{
		"0.0.0.0:17340":   "there is no TLS",
		"192.0.2.1:17340": "there is no TLS",
		"127.0.0.1":       "listen",
	} {
		for _, dry := range []bool{true, false} {
			resp, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: plan(listen), DryRun: dry})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "w0") {
				t.Errorf("listen at %s, dry run %v: %v, %v; want %q", listen, dry, resp, err, want)
			}
			if kind := api.KindOf(err); kind != codes.FailedPrecondition && kind != codes.InvalidArgument {
				t.Errorf("listen at %s: kind %v", listen, kind)
			}
		}
	}
	p, err := n.GetPlan(t.Context(), &api.GetPlanRequest{})
	if err != nil || p.Generation != 1 {
		t.Errorf("the plan in force is now %v, %v", p, err)
	}
	if _, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: plan("localhost:17340"), DryRun: true}); err != nil {
		t.Errorf("a plan that can start: %v", err)
	}
}
