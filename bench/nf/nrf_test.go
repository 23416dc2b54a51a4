package nf

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// serve answers by h at an address of loopback until the test ends.
func serve(t *testing.T, files TLS, h func(*Endpoint) http.Handler) *Endpoint {
	t.Helper()
	e, err := Listen("127.0.0.1:0", files, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, h(e)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e
}

// startNRF runs an NRF until the test ends.
func startNRF(t *testing.T, cfg RepositoryConfig) *Endpoint {
	t.Helper()
	return serve(t, TLS{}, func(e *Endpoint) http.Handler {
		n := NewNRF(e.Root(), cfg, time.Now, discard())
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		go n.Run(ctx, e.Client)
		return n.Handler()
	})
}

// ask sends a request and returns the answer with its text.
func ask(t *testing.T, e *Endpoint, method, path, kind, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	uri := path
	if strings.HasPrefix(path, "/") {
		uri = e.Root() + path
	}
	req, err := http.NewRequest(method, uri, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := e.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

const (
	plain = "application/json"
	patch = "application/json-patch+json"
)

func TestNRF(t *testing.T) {
	e := startNRF(t, DefaultRepository())
	notified := make(chan sbi.NotificationData, 10)
	subscriber := serve(t, TLS{}, func(*Endpoint) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var d sbi.NotificationData
			if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
				t.Error(err)
			}
			notified <- d
			w.WriteHeader(http.StatusNoContent)
		})
	})
	at := managementPath + "/nf-instances/" + idOf(1)

	resp, text := ask(t, e, "POST", managementPath+"/subscriptions", plain, `{"nfStatusNotificationUri": "`+subscriber.Root()+`/n", "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}}`)
	subscription := resp.Header.Get("Location")
	if resp.StatusCode != 201 || !strings.HasPrefix(subscription, e.Root()) || !strings.Contains(text, `"subscriptionId":"1"`) || resp.ProtoMajor != 2 {
		t.Errorf("subscribed: %v %s %s", resp.Status, text, resp.Proto)
	}
	resp, text = ask(t, e, "PUT", at, plain, string(profile(1, `, "nfServiceList": {}`)))
	if resp.StatusCode != 201 || resp.Header.Get("Location") != e.Root()+at || resp.Header.Get("ETag") == "" || !strings.Contains(text, `"heartBeatTimer":10`) {
		t.Errorf("registered: %v %v %s", resp.Status, resp.Header, text)
	}
	if d := <-notified; d.Event != sbi.NFRegistered || d.NFInstanceURI != e.Root()+at || d.NFProfile.NFInstanceID != idOf(1) {
		t.Errorf("notified of %+v", d)
	}
	resp, _ = ask(t, e, "PATCH", at, patch, beat)
	tag := resp.Header.Get("ETag")
	if resp.StatusCode != 204 || resp.Header.Get("Server") != "weft-simulated-NRF" || !sbi.ValidInstanceID(resp.Header.Get(InstanceHeader)) {
		t.Errorf("heartbeat: %v", resp.Status)
	}
	if resp, _ = ask(t, e, "GET", at, "", "", "If-None-Match", tag); resp.StatusCode != 304 {
		t.Errorf("retrieved, unchanged: %v", resp.Status)
	}
	query := discoveryPath + "/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1"
	resp, text = ask(t, e, "GET", query, "", "")
	var found sbi.SearchResult
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.NFInstances) != 1 || found.ValidityPeriod != 10 || resp.Header.Get("Cache-Control") != "max-age=10" {
		t.Errorf("discovered: %v %s, %v", resp.Header, text, err)
	}
	if resp, text = ask(t, e, "GET", query, "", "", "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != 304 || text != "" {
		t.Errorf("discovered, unchanged: %v %s", resp.Status, text)
	}
	if resp, text = ask(t, e, "GET", discoveryPath+"/nf-instances?target-nf-type=PCF&requester-nf-type=AMF", "", ""); resp.StatusCode != 200 || !strings.Contains(text, `"nfInstances":[]`) {
		t.Errorf("nothing: %v %s", resp.Status, text)
	}
	if resp, text = ask(t, e, "GET", managementPath+"/nf-instances?nf-type=UDM&limit=3", "", ""); resp.StatusCode != 200 || !strings.Contains(text, `"item":[{"href":"`+e.Root()+at+`"}]`) || !strings.Contains(text, `"totalItemCount":1`) {
		t.Errorf("listed: %v %s", resp.Status, text)
	}
	if resp, text = ask(t, e, "PATCH", at, patch, `[{"op":"replace","path":"/load","value":1},{"op":"add","path":"/priority","value":7}]`); resp.StatusCode != 200 || !strings.Contains(text, `"priority":7`) {
		t.Errorf("updated: %v %s", resp.Status, text)
	}
	if d := <-notified; d.Event != sbi.NFProfileChanged || len(d.ProfileChanges) != 2 {
		t.Errorf("notified of %+v", d)
	}
	if resp, _ = ask(t, e, "DELETE", at, "", ""); resp.StatusCode != 204 {
		t.Errorf("deregistered: %v", resp.Status)
	}
	if d := <-notified; d.Event != sbi.NFDeregistered || d.NFProfile != nil {
		t.Errorf("notified of %+v", d)
	}
	if resp, text = ask(t, e, "PATCH", subscription, patch, `[{"op":"replace","path":"/validityTime","value":"2100-01-01T00:00:00Z"}]`); resp.StatusCode != 200 || strings.Contains(text, "2100") {
		t.Errorf("subscription changed: %v %s", resp.Status, text)
	}
	if resp, _ = ask(t, e, "DELETE", subscription, "", ""); resp.StatusCode != 204 {
		t.Errorf("unsubscribed: %v", resp.Status)
	}
}

// TestNRFRefuses sends what no network function should.
func TestNRFRefuses(t *testing.T) {
	e := startNRF(t, DefaultRepository())
	at := managementPath + "/nf-instances/" + idOf(1)
	bomb := `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	for _, c := range []struct{ method, path, kind, body, want string }{
		{"PUT", at, "text/plain", "{}", `"status":415`},
		{"PUT", at, plain, "{", "INVALID_MSG_FORMAT"},
		{"PUT", at, plain, bomb, "deeper than"},
		{"PUT", at, plain, `{"a":"` + strings.Repeat("x", 300_000) + `"}`, `"status":413`},
		{"PUT", at, plain, `{"nfInstanceId": "` + idOf(1) + `"}`, `"invalidParams":[{"param":"/nfType"`},
		{"PUT", managementPath + "/nf-instances/x", plain, "{}", `{nfInstanceID}`},
		{"PATCH", at, plain, beat, `"status":415`},
		{"PATCH", at, patch, beat, `"status":404`},
		{"POST", at, plain, "{}", `"status":405`},
		{"GET", "/nope", "", "", "RESOURCE_URI_STRUCTURE_NOT_FOUND"},
		{"GET", discoveryPath + "/nf-instances?target-nf-type=UDM", "", "", "MANDATORY_QUERY_PARAM_MISSING"},
		{"GET", discoveryPath + "/nf-instances?target-nf-type=UDM;x=%zz", "", "", "INVALID_QUERY_PARAM"},
		{"GET", managementPath + "/nf-instances?limit=-1", "", "", "query limit"},
		{"POST", managementPath + "/subscriptions", plain, `{"nfStatusNotificationUri": "ftp://x"}`, "/nfStatusNotificationUri"},
		{"DELETE", managementPath + "/subscriptions/1", "", "", "SUBSCRIPTION_NOT_FOUND"},
	} {
		resp, text := ask(t, e, c.method, c.path, c.kind, c.body)
		if resp.StatusCode < 400 || resp.StatusCode > 499 || resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %.40s: %v %s, want %s", c.method, c.path, c.body, resp.Status, text, c.want)
		}
	}
	if resp, text := ask(t, e, "PUT", at, plain, string(profile(1, ""))); resp.StatusCode != 201 {
		t.Errorf("afterwards: %v %s", resp.Status, text)
	}
}

// TestHTTP1 speaks HTTP/1.1 to a server of both.
func TestHTTP1(t *testing.T) {
	e := startNRF(t, DefaultRepository())
	c := &http.Client{Transport: NewTransport(nil, true)}
	defer c.CloseIdleConnections()
	resp, err := c.Get(e.Root() + managementPath + "/nf-instances")
	if err != nil || resp.ProtoMajor != 1 || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
}

// discard is a log that nobody reads.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
