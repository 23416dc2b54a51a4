package planner

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/wefttest"
)

// The tokens of the two clients: an administrator, and one who may only read.
const (
	adminToken  = "weft_administrator-0123"
	readerToken = "weft_reader-0123456789"
)

// plansOverHTTP is a gateway at which plans can be looked at.
type plansOverHTTP struct {
	*testing.T
	address string
}

// ask puts a request, and returns the status and the body of the answer.
func (p plansOverHTTP) ask(token, path, body string) (int, []byte) {
	p.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "http://"+p.address+path, strings.NewReader(body))
		if err != nil {
			p.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			if time.Since(began) > testwait.Limit {
				p.Fatal(err)
			}
			continue // it is about to listen
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			p.Fatal(err)
		}
		return resp.StatusCode, text
	}
}

// as puts a request as the administrator, and reads the answer.
func (p plansOverHTTP) as(path string, request, answer proto.Message) {
	p.Helper()
	body, err := protojson.Marshal(request)
	if err != nil {
		p.Fatal(err)
	}
	status, text := p.ask(adminToken, path, string(body))
	if status != http.StatusOK {
		p.Fatalf("%s: %d %s", path, status, text)
	}
	if err := protojson.Unmarshal(text, answer); err != nil {
		p.Fatalf("%s: %v: %s", path, err, text)
	}
}

// TestPlansOverHTTP: the four questions about plans, put to a gateway as Loom does.
func TestPlansOverHTTP(t *testing.T) {
	spec := gateway.Spec(gateway.Process{Answers: newPlanner(t).Answers})
	wefttest.Run(t, spec, func(t *testing.T, h *wefttest.Harness) {
		address, err := freeport.Loopback()
		if err != nil {
			t.Fatal(err)
		}
		p := plansOverHTTP{t, address}
		h.Configure("listen: " + p.address + "\ntoken: " + adminToken)
		h.Start()
		reader := fmt.Sprintf(`{"name": "reader", "role": "read", "sha256": "%x"}`, sha256.Sum256([]byte(readerToken)))
		if status, text := p.ask(adminToken, "/v1/tokens", reader); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		p.rights()
		p.refusals()
		p.answers()
	})
}

var plansPaths = []string{"/v1/plans:show", "/v1/plans:check", "/v1/plans:diff", "/v1/plans:explain"}

// rights: a plan may have secrets in its settings.
func (p plansOverHTTP) rights() {
	for _, path := range plansPaths {
		if status, text := p.ask("", path, "{}"); status != http.StatusUnauthorized {
			p.Errorf("%s without a token: %d %s", path, status, text)
		}
		if status, text := p.ask(readerToken, path, "{}"); status != http.StatusForbidden || !bytes.Contains(text, []byte("admin")) {
			p.Errorf("%s as one who may read: %d %s", path, status, text)
		}
	}
}

// refusals: what cannot be a plan is refused, with what is wrong.
func (p plansOverHTTP) refusals() {
	quoted := func(text string) string {
		b, err := json.Marshal(text)
		if err != nil {
			p.Fatal(err)
		}
		return string(b)
	}
	for _, path := range plansPaths {
		for want, text := range map[string]string{
			"not well-formed YAML":       "workers: [\n",
			"nonsense":                   "workers:\n  a: {services: [southbound, nonsense]}\n",
			"unknown key":                "workers:\n  a: {services: [southbound], telepathy: 1}\n",
			"key workers is there twice": "workers: {}\nworkers: {}\n",
			"name: want up to":           "name: \"<img src=x onerror=alert(1)>\"\nworkers: {a: {services: [southbound]}}\n",
			"a plan has at most":         "workers:\n" + strings.Repeat("  - ", 1<<16) + "\n",
			"aliases":                    "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nworkers: *c\n",
		} {
			status, got := p.ask(adminToken, path, `{"text": `+quoted(text)+`}`)
			wanted := http.StatusBadRequest
			if path == "/v1/plans:check" {
				wanted = http.StatusOK // whose answer they are
			}
			if status != wanted || !bytes.Contains(got, []byte(want)) {
				p.Errorf("%s %.60q: %d %.300s; want %d and %s", path, text, status, got, wanted, want)
			}
		}
		if status, got := p.ask(adminToken, path, `{"text": "", "telepathy": 1}`); status != http.StatusBadRequest || !bytes.Contains(got, []byte("telepathy")) {
			p.Errorf("%s with an unknown field: %d %s", path, status, got)
		}
		if status, got := p.ask(adminToken, path, `{"text": 7}`); status != http.StatusBadRequest {
			p.Errorf("%s with a number as text: %d %s", path, status, got)
		}
		if status, got := p.ask(adminToken, path, `{"text": `+quoted(strings.Repeat("#", 5<<20))+`}`); status != http.StatusRequestEntityTooLarge {
			p.Errorf("%s with 5 MiB: %d %.200s", path, status, got)
		}
	}
	for _, size := range []struct{ workers, replicas int }{{5000, 1 << 40}, {4000, 1}, {16, 256}} {
		var many strings.Builder
		many.WriteString("workers:\n")
		for i := range size.workers {
			fmt.Fprintf(&many, "  w%d: {services: [paths, hosts], replicas: %d}\n", i, size.replicas)
		}
		for _, path := range plansPaths {
			before := cputime.Used()
			status, got := p.ask(adminToken, path, `{"text": `+quoted(many.String())+`}`)
			if took := cputime.Used() - before; took > 20*time.Second || status >= 500 || len(got) > 4<<20 {
				p.Errorf("%s with %d workers: %d, %d octets, %v of processor time", path, size.workers, status, len(got), took)
			}
		}
	}
}

// answers: they are what the command says.
func (p plansOverHTTP) answers() {
	texts := []string{madeText(p.T), madeText(p.T, "--pin", "gateway=s2", "--pin", "discovery=s1", "--isolate", "process")}
	var files []string
	for i, text := range texts {
		files = append(files, filepath.Join(p.TempDir(), fmt.Sprintf("%d.yaml", i)))
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	shown := &api.ShowPlanResponse{}
	p.as("/v1/plans:show", &api.ShowPlanRequest{Text: texts[0]}, shown)
	var out bytes.Buffer
	show := planShowCommand()
	show.SetOut(&out)
	show.SetArgs([]string{files[0]})
	if err := show.ExecuteContext(p.Context()); err != nil || shown.Drawing != out.String() {
		p.Errorf("show: %v; got\n%s\nwant\n%s", err, shown.Drawing, out.String())
	}

	wrong := strings.Replace(texts[0], "gateway", "gatewy", 2)
	checked := &api.CheckPlanResponse{}
	p.as("/v1/plans:check", &api.CheckPlanRequest{Text: wrong}, checked)
	if err := os.WriteFile(files[0], []byte(wrong), 0o600); err != nil {
		p.Fatal(err)
	}
	result, err := CheckFile(files[0])
	if err != nil || checked.Ok || len(result.Problems) == 0 || len(checked.Problems) != len(result.Problems) {
		p.Fatalf("check: %v, %v; the command says %v", err, checked, result)
	}
	for i, one := range checked.Problems {
		if want := result.Problems[i]; int(one.Line) != want.Line || one.Message != want.Message {
			p.Errorf("check: %v; the command says %v", one, want)
		}
	}
	if err := os.WriteFile(files[0], []byte(texts[0]), 0o600); err != nil {
		p.Fatal(err)
	}

	explained, want := &api.ExplainPlanResponse{}, &api.ExplainPlanResponse{}
	p.as("/v1/plans:explain", &api.ExplainPlanRequest{Text: texts[1]}, explained)
	if printed(p.T, want, planExplainCommand(), files[1]); !proto.Equal(explained, want) {
		p.Errorf("explain: got %v\nwant %v", explained, want)
	}

	compared, differs := &api.DiffPlansResponse{}, &api.DiffPlansResponse{}
	p.as("/v1/plans:diff", &api.DiffPlansRequest{OldText: texts[0], Text: texts[1], Weigh: true}, compared)
	printed(p.T, differs, planDiffCommand(), files...)
	for _, c := range compared.Changes {
		c.Text = "" // only a client is told it in words as well
	}
	compared.Processes = nil
	if !proto.Equal(compared, differs) {
		p.Errorf("diff: got %v\nwant %v", compared, differs)
	}
}
