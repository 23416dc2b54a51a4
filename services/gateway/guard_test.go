package gateway

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
)

const token = "0123456789abcdef-right"

// CVE-2017-1000080 and -1000081, WebSocket and upload without authentication:
// with a token set, nothing that tells or does anything is open without it.
func TestCVE_2017_1000080_1000081_NothingWithoutToken(t *testing.T) {
	s := serve(t, func(c *Config) { c.Token = token })
	for _, path := range []string{"/v1/hosts", "/v1/events", "/metrics", "/openapi.json", "/nothing", "/v1/hosts?access_token=" + token} {
		for _, header := range [][]string{nil, {"Authorization", "Bearer wrong-wrong-wrong"}, {"Authorization", "Basic " + token}, {"Authorization", token}} {
			resp, _ := s.request(t, "GET", path, "", header...)
			if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %v: %s; want 401", path, header, resp.Status)
			}
		}
	}
	if resp, _ := s.request(t, "POST", "/v1/flows", "{}"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST: %s", resp.Status)
	}
	for _, path := range []string{"/", "/healthz"} {
		if resp, _ := s.request(t, "GET", path, ""); resp.StatusCode != 200 {
			t.Errorf("%s: %s; want 200", path, resp.Status)
		}
	}
	hosts := api.NewHostsClient(dial(t, s.address))
	if _, err := hosts.ListHosts(t.Context(), &api.ListHostsRequest{}); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "WEFT_TOKEN") {
		t.Errorf("gRPC without: %v", err)
	}
	with := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	if _, err := hosts.ListHosts(with, &api.ListHostsRequest{}); err != nil {
		t.Errorf("gRPC with: %v", err)
	}
	// With the token, the name under which the server is reached does not matter.
	if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+token, "Host", "controller.example:8181"); resp.StatusCode != 200 {
		t.Errorf("HTTP with: %s", resp.Status)
	}
	if _, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, nil); err == nil {
		t.Error("the event stream opens without a token")
	}
	if _, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath+"?access_token="+token, nil); err == nil {
		t.Error("the event stream opens with the token in the query")
	}
}

// CVE-2017-1000406, an old password stays valid: when the file of the token
// changes, the old token ends.
func TestCVE_2017_1000406_OldTokenEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string, mode os.FileMode) {
		if err := os.WriteFile(file, []byte(text+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(token, 0o600)
	s := serve(t, func(c *Config) { c.TokenFile = file })
	try := func(token string, want int) {
		t.Helper()
		if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+token); resp.StatusCode != want {
			t.Errorf("token %s: %s; want %d", token, resp.Status, want)
		}
	}
	try(token, 200)
	write("a-new-token-0123456789", 0o600)
	try(token, 401)
	try("a-new-token-0123456789", 200)
	write("a-new-token-0123456789", 0o644) // now others can read it
	try("a-new-token-0123456789", 401)
	os.Remove(file)
	try("a-new-token-0123456789", 401)
	if _, err := newTokens(&Config{TokenFile: file}); err == nil {
		t.Error("no error without the file")
	}
	write(token, 0o640)
	if _, err := newTokens(&Config{TokenFile: file}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by the group: %v", err)
	}
	write("short", 0o600)
	if _, err := newTokens(&Config{TokenFile: file}); err == nil {
		t.Error("no error for a short token")
	}
}

// ONOS's default credentials: there are none; without a token only loopback is
// possible.
func TestNoDefaultPassword(t *testing.T) {
	for listen, allowed := range map[string]bool{
		"127.0.0.1:1": true, "127.1.2.3:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "192.0.2.1:1": false, "example.org:1": false, "127.0.0.1.example.org:1": false,
	} {
		c := defaults()
		c.Listen = listen
		if err := c.Validate(); (err == nil) != allowed {
			t.Errorf("%s without a token: %v; want allowed %v", listen, err, allowed)
		}
		c.Token = token
		if err := c.Validate(); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
}

// A page of the web that has its name point to 127.0.0.1 (DNS rebinding) is
// told by the Host, a page that sends requests across sites by the Origin.
func TestRebindingAndCrossSite(t *testing.T) {
	s := serve(t, nil)
	_, port, _ := net.SplitHostPort(s.address)
	for _, c := range []struct {
		host, origin string
		allowed      bool
	}{
		{s.address, "", true},
		{"localhost:" + port, "", true},
		{"LOCALHOST", "", true},
		{"[::1]:" + port, "", true},
		{"127.0.0.1:9999", "", true}, // forwarded
		{s.address, "http://" + s.address, true},
		{"evil.example:" + port, "", false},
		{"127.0.0.1.evil.example", "", false},
		{"192.0.2.1", "", false},
		{s.address, "http://evil.example", false},
		{s.address, "http://localhost:" + port, false},
		{s.address, "https://" + s.address, false},
		{s.address, "null", false},
		{"evil.example", "http://evil.example", false},
	} {
		header := []string{"Host", c.host}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		for _, path := range []string{"/v1/hosts", "/metrics", "/"} {
			resp, body := s.request(t, "GET", path, "", header...)
			if (resp.StatusCode == 200) != c.allowed || !c.allowed && resp.StatusCode != http.StatusForbidden {
				t.Errorf("GET %s, host %s, origin %s: %s %s; want allowed %v", path, c.host, c.origin, resp.Status, body, c.allowed)
			}
		}
		h := http.Header{}
		if c.origin != "" {
			h.Set("Origin", c.origin)
		}
		conn, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, &websocket.DialOptions{Host: c.host, HTTPHeader: h})
		if (err == nil) != c.allowed {
			t.Errorf("WebSocket, host %s, origin %s: %v; want allowed %v", c.host, c.origin, err, c.allowed)
		}
		if err == nil {
			conn.CloseNow()
		}
	}
	for path, allowed := range map[string]bool{"/": true, "/healthz": true, "/v1/hosts": false, "/v1/lab/labs/a/capture": false, "/metrics": false, sessionPath: false} {
		for _, site := range []string{"cross-site", "same-site"} { // a link, or an image: without an Origin
			resp, body := s.request(t, "GET", path, "", "Sec-Fetch-Site", site)
			if (resp.StatusCode == 200) != allowed || !allowed && (resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "other sites")) {
				t.Errorf("GET %s, %s: %s %s; want allowed %v", path, site, resp.Status, body, allowed)
			}
		}
	}
	if s.refuse.Load() == 0 {
		t.Error("refusals are not counted")
	}
}
