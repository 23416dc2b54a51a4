package ryu

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/wefttest"
)

// TestAuditLog: every request that may change something has its line, with who
// sent it from where and what became of it; questions have none, also those by
// POST.
func TestAuditLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	wefttest.Run(t, Spec(Process{Name: "edge", Audit: dir}), func(t *testing.T, h *wefttest.Harness) {
		file := filepath.Join(dir, "edge.ryu.jsonl")
		os.RemoveAll(dir) // of the mode before
		c := newBrowser(t, h, "")
		wefttest.Fake(h, api.ReadMultipart, func(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
			return &api.ReadMultipartResponse{}, nil
		})
		result := &api.ApplyResult{}
		wefttest.Fake(h, api.Apply, func(context.Context, *flow.Decision) (*api.ApplyResult, error) { return result, nil })
		h.Start()
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		h.Settle()
		c.want("GET", "/stats/switches", "", 200, "*")
		c.want("POST", "/stats/flow/5", `{"table_id": 0}`, 200, "*")
		c.want("POST", "/stats/flowentry/add", `{"dpid": 5, "priority": 7}`, 200, "")
		result = &api.ApplyResult{Failures: []*api.ApplyFailure{{Text: "table full"}}}
		c.want("POST", "/stats/flowentry/add", `{"dpid": 5}`, 200, "")
		c.want("POST", "/stats/flowentry/add", `{"dpid": 99}`, 404, "*")
		c.want("PUT", "/v1.0/conf/switches/0000000000000005/x", strings.Repeat("9", auditText+1), 201, "")
		c.want("DELETE", "/v1.0/conf/switches/0000000000000005", "", 202, "")
		c.want("POST", "/stats/role", strings.Repeat("x", maxBody+1), 413, "*")

		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
			var r auditlog.Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if r.Who != "ryu" || r.Role != "operate" || !strings.HasPrefix(r.From, "127.0.0.1:") || r.Time.IsZero() || len(r.Request) > 2*auditText {
				t.Errorf("%s", line)
			}
			got = append(got, r.Method+" "+r.Result)
		}
		want := []string{
			"ryu.POST /stats/flowentry/add OK",
			"ryu.POST /stats/flowentry/add FailedPrecondition",
			"ryu.POST /stats/flowentry/add NotFound",
			"ryu.PUT /v1.0/conf/switches/0000000000000005/x OK",
			"ryu.DELETE /v1.0/conf/switches/0000000000000005 OK",
			"ryu.POST /stats/role ResourceExhausted",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if !bytes.Contains(text, []byte(`\"priority\": 7`)) || !bytes.Contains(text, []byte("table full")) {
			t.Errorf("%s", text)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}
