package gateway

import (
	"crypto/tls"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/api"
)

// signInWith returns the cookie that the gateway makes of a token.
func (s *testServer) signInWith(t *testing.T, token string) *http.Cookie {
	t.Helper()
	resp, body := s.request(t, "POST", sessionPath, `{"token":"`+token+`"}`)
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		t.Fatalf("sign in: %s, %s, %d cookies", resp.Status, body, len(resp.Cookies()))
	}
	return resp.Cookies()[0]
}

func TestSignIn(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback = false })
	secret := s.made(t, "alice", "read")
	c := s.signInWith(t, secret)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || strings.Contains(c.Value, secret) {
		t.Errorf("cookie %+v", c)
	}
	header := c.Name + "=" + c.Value
	resp, body := s.request(t, "GET", sessionPath, "", "Cookie", header)
	if resp.StatusCode != 200 || strings.TrimSpace(body) != `{"name":"alice","role":"read","cookie":true}` {
		t.Errorf("who: %s %s", resp.Status, body)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Cookie", header); resp.StatusCode != 200 {
		t.Errorf("a call by cookie: %s", resp.Status)
	}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {header}}})
	if err != nil {
		t.Fatalf("the event stream by cookie: %v", err)
	}
	conn.CloseNow()

	// Pages of others, also on other ports of this machine, cannot use it.
	for _, path := range []string{"/v1/hosts", sessionPath} {
		if resp, _ := s.request(t, "GET", path, "", "Cookie", header, "Origin", "http://127.0.0.1:1"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s from a foreign page: %s", path, resp.Status)
		}
	}
	if resp, _ := s.request(t, "POST", sessionPath, `{"token":"`+secret+`"}`, "Origin", "http://elsewhere.example"); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
		t.Errorf("a foreign page signs in: %s", resp.Status)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Cookie", header, "Sec-Fetch-Site", "same-site"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("an image of a page on another port: %s", resp.Status)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Cookie", header, "Sec-Fetch-Site", "same-origin"); resp.StatusCode != 200 {
		t.Errorf("its own page: %s", resp.Status)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+secret, "Sec-Fetch-Site", "cross-site", "Origin", "http://elsewhere.example"); resp.StatusCode != 200 {
		t.Errorf("who shows the token itself: %s", resp.Status)
	}
	// It ends with its token.
	if _, err := s.guard.ledger.revoke(t.Context(), &api.RevokeTokenRequest{Name: "alice"}); err != nil {
		t.Fatal(err)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Cookie", header); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after its token: %s", resp.Status)
	}
	resp, _ = s.request(t, "DELETE", sessionPath, "", "Cookie", header)
	if len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("sign out: %s, %v", resp.Status, resp.Cookies())
	}
}

func TestSignInRefused(t *testing.T) {
	s := serve(t, func(c *Config) { c.Token = token })
	for _, test := range []struct {
		body string
		want int
	}{
		{`{"token":"wrong-wrong-wrong-wrong"}`, 401}, {`{"token":""}`, 400}, {`{`, 400}, {`{"user":"x"}`, 400},
		{`{"token":"` + strings.Repeat("x", maxSignIn) + `"}`, 400}, {`{"token":"` + token + `"}`, 200},
	} {
		if resp, body := s.request(t, "POST", sessionPath, test.body); resp.StatusCode != test.want {
			t.Errorf("%.40s: %s %s", test.body, resp.Status, body)
		}
	}
	if resp, _ := s.request(t, "GET", sessionPath, ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("who without a cookie: %s", resp.Status)
	}
}

// Where no token is needed, one that has ended does not lock its user out.
func TestEndedCookieOnLoopback(t *testing.T) {
	s := serve(t, nil)
	c := cookie(&http.Request{}, madePrefix+"ended-long-ago")
	resp, body := s.request(t, "GET", sessionPath, "", "Cookie", c.Name+"="+c.Value)
	if resp.StatusCode != 200 || !strings.Contains(body, `"loopback"`) {
		t.Errorf("%s %s", resp.Status, body)
	}
}

func TestPages(t *testing.T) {
	files := fstest.MapFS{"index.html": {Data: []byte("<!doctype html>loom {{nonce}}")}, "assets/a.js": {Data: []byte("1")}, ".gitignore": {Data: []byte("*")}}
	nonces := map[string]bool{}
	for _, test := range []struct {
		path  string
		built bool
		code  int
		text  string
	}{
		{"/", true, 200, "loom"}, {"/", true, 200, "loom"}, {"/assets/a.js", true, 200, "1"}, {"/assets/b.js", true, 404, "load the page again"},
		{"/assets/", true, 404, ""}, {"/.gitignore", true, 404, ""}, {"/", false, 200, "not built"},
	} {
		mux := http.NewServeMux()
		pages(mux, fs.FS(files), test.built)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", test.path, nil))
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%s, built %v: %d %s", test.path, test.built, w.Code, w.Body)
		}
		policy, nonce := w.Header().Get("Content-Security-Policy"), ""
		if test.path == "/" && test.built {
			policy, nonce, _ = strings.Cut(policy, " 'nonce-")
			if nonce, _ = strings.CutSuffix(nonce, "'"); nonces[nonce] || len(nonce) < 20 || !strings.Contains(w.Body.String(), nonce) {
				t.Errorf("nonce %q; page %s", nonce, w.Body)
			}
			nonces[nonce] = true
		}
		if test.built && test.code == 200 && (policy != pagePolicy || strings.Count(policy, "unsafe") > 1) {
			t.Errorf("%s: policy %q", test.path, policy)
		}
	}
}

// Over TLS, nothing else on the host can put a cookie before the gateway's.
func TestCookieOfThisHost(t *testing.T) {
	for _, secure := range []bool{false, true} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		want := "weft_token"
		if secure {
			r.TLS, want = &tls.ConnectionState{}, "__Host-weft_token"
		}
		c := cookie(r, "right")
		if c.Name != want || c.Secure != secure || c.Path != "/" || c.Domain != "" {
			t.Errorf("TLS %v: %+v", secure, c)
		}
		if secure {
			r.Header.Add("Cookie", "weft_token=d3Jvbmc") // of a server on another port, with a longer path
		}
		r.AddCookie(c)
		if got := cookieToken(r); got != "right" {
			t.Errorf("TLS %v: the token is %q", secure, got)
		}
	}
}
