package serve

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
)

// TestApplyJob: a dry run touches nothing, a change is made, and one that was made
// from an older lab is refused.
func TestApplyJob(t *testing.T) {
	const name = "serve-apply"
	c := serve(t, AllowUp)
	c.up(name)
	was := &api.LabDetails{}
	c.call("GET", "/v1/lab/labs/"+name, nil, was)
	text := strings.Replace(lines(name), "hosts: [", "hosts: [{name: h3, switch: s1}, ", 1)
	req := &api.ApplyLabRequest{File: text, DryRun: true, MadeFrom: was.GetRevision()}
	resp := &api.ApplyLabResponse{}
	c.call("POST", "/v1/lab/labs:apply", req, resp)
	if a := resp.GetAdded(); len(a) == 0 || !strings.Contains(strings.Join(a, " "), "host h3") || resp.GetJob() != "" {
		t.Errorf("dry run: %v", resp)
	}
	l, err := lab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Host("h3"); err == nil {
		t.Error("a dry run has made h3")
	}
	req.DryRun = false
	c.call("POST", "/v1/lab/labs:apply", req, resp)
	if j := c.done(resp.GetJob()); j.GetError() != "" {
		t.Fatalf("apply: %v", j)
	}
	r := &api.PingLabResponse{}
	c.call("POST", "/v1/lab/labs/"+name+"/ping", &api.PingLabRequest{From: "h3", To: "h2"}, r)
	if r.GetReceived() != 3 {
		t.Errorf("ping: %v", r)
	}
	is := &api.LabDetails{}
	c.call("GET", "/v1/lab/labs/"+name, nil, is)
	if is.GetRevision() == was.GetRevision() || is.GetFile() != text {
		t.Errorf("after it: %v", is)
	}
	c.refused(409, "changed meanwhile", "POST", "/v1/lab/labs:apply", req)
}
