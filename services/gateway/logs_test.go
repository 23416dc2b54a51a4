package gateway

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// TestReadLog: lines have no secrets and are not overlong.
func TestReadLog(t *testing.T) {
	leaky := answerWith(api.ReadWorkerLog, &api.ReadWorkerLogResponse{Lines: []*api.LogLine{
		{Time: "2026-01-01T00:00:00Z", Text: "level=INFO msg=dialled token=abc123"}, {Text: strings.Repeat("x", 1<<20)},
	}})
	resp, err := withoutSecrets(leaky.Call)(t.Context(), &api.ReadWorkerLogRequest{Worker: "a"})
	m, _ := resp.(*api.ReadWorkerLogResponse)
	if err != nil || len(m.GetLines()) != 2 || m.Lines[0].Text != "level=INFO msg=dialled token="+redacted || m.Lines[0].Time == "" || len(m.Lines[1].Text) > textMost+100 {
		t.Errorf("%.300v, %v", m, err)
	}
	if role := api.RulesOf(api.ReadWorkerLog.Name).GetRole(); role != api.Role_ROLE_OPERATE {
		t.Errorf("role %v", role)
	}
}

// TestNobodyAnswers: what nothing of the process answers fails and says so, also where one
// call is made for all clients.
func TestNobodyAnswers(t *testing.T) {
	n := 0
	for _, a := range (&ownAnswers{}).toClients(time.Minute) {
		n++
		if _, err := a.Call(t.Context(), a.New()); api.KindOf(err) != codes.Unimplemented {
			t.Errorf("%s: %v", a.Method, err)
		}
	}
	if n < 20 {
		t.Errorf("%d methods", n)
	}
}

// TestScrub: what looks like a secret is left out, and nothing else.
func TestScrub(t *testing.T) {
	made := madePrefix + strings.Repeat("aB3-_", 9)[:43]
	for text, want := range map[string]string{
		"token=abc":                                "token=" + redacted,
		"tls=false token=true key=\"\" x=1":        "tls=false token=true key=\"\" x=1",
		`Authorization: Bearer ` + made + ` x`:     "Authorization: Bearer " + redacted + " x",
		"send it as Authorization: Bearer TOKEN":   "send it as Authorization: Bearer TOKEN",
		"who " + made + ", again":                  "who " + madePrefix + redacted + ", again",
		"metric weft_southbound_messages_total":    "metric weft_southbound_messages_total",
		"dial nats://weft:s3cret@10.0.0.1:4222: x": "dial nats://weft:" + redacted + "@10.0.0.1:4222: x",
		"at http://127.0.0.1:8181/x":               "at http://127.0.0.1:8181/x",
		`k -----BEGIN EC PRIVATE KEY-----\nMHcCAQEE+/=\n-----END EC PRIVATE KEY-----`: `k -----BEGIN EC PRIVATE KEY-----` + redacted + `-----END EC PRIVATE KEY-----`,
	} {
		if got := scrub(text); got != want {
			t.Errorf("%s\n became %s\n want   %s", text, got, want)
		}
	}
}
