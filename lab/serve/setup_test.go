package serve

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
)

// TestSetUp sets nodes up by the commands of their lab's file: what each wrote is said of
// each, and one that fails hinders none.
func TestSetUp(t *testing.T) {
	const name = "serve-setup"
	c := serve(t, AllowUp, AllowDown, AllowExec)
	c.up(name)
	at := "/v1/lab/labs/" + name
	c.refused(400, "no node of the lab's file has x-setup", "POST", at+":setup", &api.SetUpLabRequest{})
	text := strings.NewReplacer(
		"{name: s1,", `{name: s1, x-setup: "ovs-vsctl list-ports $WEFT_LAB_BRIDGE",`,
		"{name: h1,", "{name: h1, x-setup: 'echo $WEFT_LAB_HOST; for i in $(seq 9999); do echo line $i; done; echo at last',",
		"{name: h2,", "{name: h2, x-setup: 'echo out; echo no disk >&2; exit 3',",
	).Replace(lines(name))
	applied := &api.ApplyLabResponse{}
	c.call("POST", "/v1/lab/labs:apply", &api.ApplyLabRequest{File: text}, applied)
	if id := applied.GetJob(); id != "" {
		c.done(id)
	}
	setUp := func(nodes ...string) *api.LabJob {
		resp := &api.SetUpLabResponse{}
		c.call("POST", at+":setup", &api.SetUpLabRequest{Nodes: nodes}, resp)
		return c.done(resp.GetJob())
	}
	j := setUp()
	if j.GetKind() != "setup" || j.GetError() != "1 of 3 nodes are not set up" || len(j.GetSteps()) != 3 {
		t.Fatalf("%v", j)
	}
	s1, h1, h2 := j.GetSteps()[0], j.GetSteps()[1], j.GetSteps()[2]
	if s1.GetState() != stepDone || len(strings.Fields(s1.GetOutput())) != 2 {
		t.Errorf("%v", s1)
	}
	if out := h1.GetOutput(); h1.GetState() != stepDone || len(out) != mostOutput || !strings.HasSuffix(out, "at last\n") {
		t.Errorf("%v", h1)
	}
	if h2.GetState() != stepFailed || !strings.Contains(h2.GetText(), "exit status 3") || h2.GetOutput() != "out\nno disk\n" {
		t.Errorf("%v", h2)
	}
	if j := setUp("h1"); j.GetError() != "" || len(j.GetSteps()) != 1 {
		t.Errorf("%v", j)
	}
	c.refused(400, `no x-setup of node "s2"`, "POST", at+":setup", &api.SetUpLabRequest{Nodes: []string{"s2"}})
	c.refused(404, "no such lab is up", "POST", "/v1/lab/labs/serve-nowhere:setup", &api.SetUpLabRequest{})

	few := serve(t, slices.DeleteFunc(Allowances(), func(a string) bool { return a == AllowExec })...)
	few.refused(403, "does not allow exec", "POST", at+":setup", &api.SetUpLabRequest{})
	if !lab.Exists(name) {
		t.Error("the lab is gone")
	}
}
