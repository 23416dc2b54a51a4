package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
)

func newAudit(t *testing.T, dir, process string) *audit {
	t.Helper()
	a := &audit{auditlog.Log{Dir: dir, Name: process, Size: 2000, Files: 3, Failed: func(err error) { t.Error(err) }}}
	if err := a.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// Every change has its line: who, from where, what, and how it ended; what only
// reads has none; a refusal has one.
func TestAuditOfCalls(t *testing.T) {
	s := serve(t, nil)
	dir := filepath.Join(t.TempDir(), "audit")
	s.calls.audit = newAudit(t, dir, "edge")
	operator, reader := s.made(t, "operator", "operate"), s.made(t, "reader", "read")
	const flows = `{"flows":[{"dpid":"1","priority":7,"actions":["output:2"]}]}`
	s.request(t, "POST", "/v1/flows", flows, "Authorization", "Bearer "+operator)
	s.request(t, "POST", "/v1/flows", flows, "Authorization", "Bearer "+reader)
	s.request(t, "POST", "/v1/flows", flows)
	s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+operator)
	m, err := s.calls.audit.list(t.Context(), &api.ListAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range m.Records {
		got = append(got, fmt.Sprint(r.Who, " ", r.Role, " ", r.Method, " ", r.Result))
		request := `"priority":7`
		if r.Result == "PermissionDenied" { // before the request is read
			request = `"not read"`
		}
		if !strings.HasPrefix(r.From, "127.0.0.1:") || !strings.Contains(r.Request, request) {
			t.Errorf("%v", r)
		}
	}
	if want := "operator operate flowrules.AddFlows OK|reader read flowrules.AddFlows PermissionDenied|loopback admin flowrules.AddFlows OK"; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
	info, err := os.Stat(filepath.Join(dir, "edge.jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// Secrets are in no line, whether they are fields, or within the text of a plan.
func TestAuditHasNoSecrets(t *testing.T) {
	for _, req := range []any{
		&api.CreateTokenRequest{Name: "ci", Role: "read", Sha256: "SECRET"},
		&api.ApplyPlanRequest{Text: "name: x\nconfig:\n  gateway: {token: SECRET, listen: \"127.0.0.1:1\"}\n  discovery:\n    key: \"SECRET SECRET\"\n  other:\n    bus_password: 'SECRET'\n"},
		&api.ApplyPlanRequest{Text: "gateway.token=SECRET"},
		&api.ApplyPlanRequest{Text: `{"gateway":{"token":"SECRET"}}`},
	} {
		text := string(requestText(req))
		if strings.Contains(text, "SECRET") || !strings.Contains(text, redacted) || !json.Valid([]byte(text)) {
			t.Errorf("%s", text)
		}
	}
	plain := &api.ApplyPlanRequest{Text: "name: x\nworkers: {a: {services: [southbound]}}\nconfig: {gateway: {token_file: /etc/token}}\n"}
	if text := string(requestText(plain)); strings.Contains(text, redacted) || !strings.Contains(text, "/etc/token") {
		t.Errorf("%s", text)
	}
	big := &api.AddFlowsRequest{}
	for range 30 {
		big.Flows = append(big.Flows, &api.FlowEntry{Dpid: "1"})
	}
	if text := string(requestText(big)); !strings.Contains(text, "and 10 more") || len(text) > requestMost {
		t.Errorf("%s", text)
	}
	for range 100_000 {
		big.Flows = append(big.Flows, &api.FlowEntry{Dpid: "0000000000000001"})
	}
	if text := string(requestText(big)); !strings.Contains(text, "omitted") || len(text) > 100 {
		t.Errorf("%d octets", len(text))
	}
}

// Whoever may not change anything cannot push the changes of others out of the
// log, however often it tries.
func TestAuditKeepsChanges(t *testing.T) {
	dir := t.TempDir()
	a := newAudit(t, dir, "edge")
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a.Add(&record{Time: begin, Who: "boss", Method: "gateway.ApplyPlan", Request: json.RawMessage(`{}`), Result: "OK"})
	for i := range 1000 {
		a.Add(&record{Time: begin.Add(time.Duration(i+1) * time.Second), Who: "reader", Method: "flowrules.AddFlows", Request: json.RawMessage(`"not read"`), Result: "PermissionDenied"})
	}
	m, err := a.list(t.Context(), &api.ListAuditRequest{Who: "boss"})
	if err != nil || len(m.Records) != 1 {
		t.Errorf("%v, %v", m, err)
	}
	if m, err = a.list(t.Context(), &api.ListAuditRequest{}); err != nil || len(m.Records) < 10 || m.Records[0].Who != "boss" || m.Records[1].Who != "reader" {
		t.Errorf("%v, %v", m, err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1+3 {
		t.Errorf("%q", files)
	}
}

// The log is bounded, goes on after a restart or a line that was cut off, and
// is read with the files of other processes.
func TestAuditFiles(t *testing.T) {
	dir := t.TempDir()
	a := newAudit(t, dir, "edge")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(a *audit, i int) {
		a.Add(&record{Time: start.Add(time.Duration(i) * time.Second), Who: fmt.Sprint("n", i%2), Method: "flowrules.AddFlows", Request: json.RawMessage(`{}`), Result: "OK"})
	}
	for i := range 100 {
		add(a, i)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 3 {
		t.Fatalf("%q", files)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 2000 {
			t.Errorf("%s: %v %v", f, info.Size(), err)
		}
	}
	list := func(req *api.ListAuditRequest) []*api.AuditRecord {
		t.Helper()
		m, err := a.list(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return m.Records
	}
	all := list(&api.ListAuditRequest{Limit: 1000})
	if n := len(all); n < 20 || n > 60 || all[n-1].Time != start.Add(99*time.Second).Format(time.RFC3339Nano) {
		t.Errorf("%d records, the last %v", n, all[n-1])
	}
	if got := list(&api.ListAuditRequest{Who: "n1", Limit: 3}); len(got) != 3 || got[2].Who != "n1" || got[0].Time > got[2].Time {
		t.Errorf("%v", got)
	}
	if got := list(&api.ListAuditRequest{Since: start.Add(95 * time.Second).Format(time.RFC3339), Method: "flowrules"}); len(got) != 5 {
		t.Errorf("%v", got)
	}
	// Page by page, from the newest, every record is there once.
	var pages []*api.AuditRecord
	for before := ""; ; before = pages[0].Time {
		page := list(&api.ListAuditRequest{Limit: 7, Before: before})
		if len(page) == 0 {
			break
		}
		pages = append(page, pages...)
	}
	if len(pages) != len(all) || pages[0].Time != all[0].Time {
		t.Errorf("%d records in pages, %d in all", len(pages), len(all))
	}
	if got := list(&api.ListAuditRequest{Method: "flow"}); len(got) != 0 {
		t.Errorf("%v", got)
	}
	// A crash in the middle of a line, then another run.
	a.Close()
	f, err := os.OpenFile(filepath.Join(dir, "edge.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"time":"2026`)
	f.Close()
	a = newAudit(t, dir, "edge")
	add(a, 100)
	add(newAudit(t, dir, "other"), 101)
	if got := list(&api.ListAuditRequest{Limit: 2}); len(got) != 2 || got[0].Time != start.Add(100*time.Second).Format(time.RFC3339Nano) || got[1].Time <= got[0].Time {
		t.Errorf("%v", got)
	}
	for _, req := range []*api.ListAuditRequest{{Limit: auditMost + 1}, {Since: "yesterday"}, {Before: "now"}} {
		if _, err := a.list(t.Context(), req); err == nil {
			t.Errorf("%v: no error", req)
		}
	}
	if _, err := (&audit{}).list(t.Context(), &api.ListAuditRequest{}); err == nil {
		t.Error("no error where there is no log")
	}
}
