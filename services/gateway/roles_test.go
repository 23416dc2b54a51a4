package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/northbound"
)

// A method whose name says that it reads is no change, and one whose name says
// that it changes something is one; none of these is a GET, unless it begins a
// stream. A method without a role is the administrator's.
func TestRolesMatchNames(t *testing.T) {
	begins := func(name string, verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool { return strings.HasPrefix(name, verb) })
	}
	var all []string
	for _, m := range api.Methods() {
		all = append(all, m.MethodName())
	}
	for _, m := range machineMethods() {
		all = append(all, api.MethodName(m))
	}
	streams := []string{"lab.AttachLabConsole", "lab.CaptureLab"}
	for _, method := range all {
		_, name, _ := strings.Cut(method, ".")
		rules := api.RulesOf(method)
		if rules.GetChanges() && begins(name, "List", "Get", "Find", "Read") {
			t.Errorf("%s reads, by its name, and is in the audit log as a change", method)
		}
		if changes := begins(name, "Add", "Delete", "Set", "Apply", "Create", "Revoke", "Rollback", "Drain", "Forget", "Bind", "Unbind", "Allow", "Repair", "Up", "Down", "Open", "Close", "Cancel", "Run"); rules.GetRole() != 0 && changes && !rules.GetChanges() {
			t.Errorf("%s changes something, by its name, and is not in the audit log", method)
		}
		if rules.GetChanges() && rules.GetRole() < api.Role_ROLE_OPERATE {
			t.Errorf("%s changes something, and asks for the role %v", method, rules.GetRole())
		}
		for _, route := range rules.Routes() {
			if rules.GetChanges() && route.Verb == http.MethodGet && !slices.Contains(streams, method) {
				t.Errorf("%s changes something by %s, which pages of others can have a browser send", method, route)
			}
		}
	}
	if needs("new.Method") != roleAdmin {
		t.Errorf("an unknown method asks for %v", needs("new.Method"))
	}
}

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// made makes a token by the ledger and returns what to send.
func (s *testServer) made(t *testing.T, name, role string) string {
	t.Helper()
	token := "weft_token-of-" + name
	if _, err := s.guard.ledger.create(t.Context(), &api.CreateTokenRequest{Name: name, Role: role, Sha256: digest(token)}); err != nil {
		t.Fatal(err)
	}
	return token
}

func bearing(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// Roles hold over HTTP and gRPC, for figures and events, with and without
// loopback being open.
func TestRoles(t *testing.T) {
	for _, open := range []bool{true, false} {
		s := serve(t, func(c *Config) { c.OpenLoopback = open })
		anonymous, _ := s.request(t, "GET", "/v1/hosts", "")
		if want := map[bool]int{true: 200, false: 401}[open]; anonymous.StatusCode != want {
			t.Errorf("open %v, without a token: %s, want %d", open, anonymous.Status, want)
		}
		tokens := map[string]string{}
		for _, r := range []string{"node", "read", "operate", "admin"} {
			tokens[r] = s.made(t, r, r)
		}
		hosts, flows := api.NewHostsClient(dial(t, s.address)), api.NewFlowrulesClient(dial(t, s.address))
		for _, c := range []struct {
			role                             string
			read, operate, admin, get, event bool
		}{
			{"node", false, false, false, false, false},
			{"read", true, false, false, true, true},
			{"operate", true, true, false, true, true},
			{"admin", true, true, true, true, true},
		} {
			token := tokens[c.role]
			want := func(what string, allowed bool, resp *http.Response, text string) {
				t.Helper()
				if status := map[bool]int{true: 200, false: 403}[allowed]; resp.StatusCode != status {
					t.Errorf("%s: %s: %s %s; want %d", c.role, what, resp.Status, text, status)
				}
				if !allowed && !strings.Contains(text, `"code":7`) {
					t.Errorf("%s: %s: %s", c.role, what, text)
				}
			}
			bearer := []string{"Authorization", "Bearer " + token}
			resp, text := s.request(t, "GET", "/v1/hosts", "", bearer...)
			want("hosts", c.read, resp, text)
			resp, text = s.request(t, "POST", "/v1/flows", "{}", bearer...)
			want("flows", c.operate, resp, text)
			resp, text = s.request(t, "GET", "/v1/tokens", "", bearer...)
			want("tokens", c.admin, resp, text)
			resp, text = s.request(t, "GET", "/metrics", "", bearer...)
			want("metrics", c.read, resp, text)
			if _, err := hosts.ListHosts(bearing(t.Context(), token), &api.ListHostsRequest{}); (err == nil) != c.read {
				t.Errorf("%s: gRPC hosts: %v", c.role, err)
			}
			if _, err := flows.AddFlows(bearing(t.Context(), token), &api.AddFlowsRequest{}); (err == nil) != c.operate || err != nil && status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s: gRPC flows: %v", c.role, err)
			}
			conn, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
			if (err == nil) != c.event {
				t.Errorf("%s: events: %v", c.role, err)
			}
			if err == nil {
				conn.CloseNow()
			}
		}
		if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer weft_wrong"); resp.StatusCode != 401 {
			t.Errorf("open %v, a wrong token: %s", open, resp.Status)
		}
	}
}

// CVE-2017-1000406, an old password stays valid: a token that is revoked, or
// has expired, ends at once, for requests, and for the events that are being
// followed.
func TestCVE_2017_1000406_RevokedTokenEnds(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback = false })
	now := time.Now()
	s.guard.ledger.now = func() time.Time { return now }
	token := s.made(t, "ci", "read")
	brief := "weft_for-an-hour"
	if _, err := s.guard.ledger.create(t.Context(), &api.CreateTokenRequest{Name: "brief", Role: "read", Sha256: digest(brief), Expires: now.Add(time.Hour).Format(time.RFC3339)}); err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	wait(t, func() bool { return s.stream.places.Len() == 1 })
	try := func(token string, want int) {
		t.Helper()
		if resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+token); resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", token, resp.Status, want)
		}
	}
	try(token, 200)
	try(brief, 200)
	if r, err := s.guard.ledger.revoke(t.Context(), &api.RevokeTokenRequest{Name: "ci"}); err != nil || !r.Revoked {
		t.Fatal(r, err)
	}
	try(token, 401)
	s.publish(1)
	if _, text, err := conn.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "the token has ended") {
		t.Errorf("after it was revoked, an event comes: %s %v", text, err)
	}
	now = now.Add(2 * time.Hour)
	try(brief, 401)
	// What another instance of the gateway has done to it.
	text := s.shelf.values["brief"]
	s.guard.ledger.changed("brief", bytes.ReplaceAll(text, []byte(`"expires"`), []byte(`"was"`)), 99)
	try(brief, 200)
	s.guard.ledger.changed("brief", nil, 100)
	try(brief, 401)
}

// Tokens are kept as hashes only, making and revoking one again changes
// nothing, and what is wrong is refused.
func TestTokens(t *testing.T) {
	shelf := &memory{}
	l := newLedger(shelf, time.Now, func(name string, err error) { t.Error(name, err) })
	good := func() *api.CreateTokenRequest {
		return &api.CreateTokenRequest{Name: "ci", Role: "operate", Sha256: digest("secret-secret-secret")}
	}
	ctx := context.WithValue(t.Context(), callerKey{}, caller{name: "root", role: roleAdmin})
	first, err := l.create(ctx, good())
	if err != nil || first.CreatedBy != "root" || first.Expires != "" {
		t.Fatal(first, err)
	}
	if again, err := l.create(ctx, good()); err != nil || again.Created != first.Created || shelf.revision != 1 {
		t.Errorf("again: %v %v, %d writes", again, err, shelf.revision)
	}
	if strings.Contains(string(shelf.values["ci"]), "secret") {
		t.Errorf("kept: %s", shelf.values["ci"])
	}
	for _, c := range []struct {
		change func(*api.CreateTokenRequest)
		kind   codes.Code
		want   string
	}{
		{func(r *api.CreateTokenRequest) { r.Name = "" }, codes.InvalidArgument, "name"},
		{func(r *api.CreateTokenRequest) { r.Name = "a b" }, codes.InvalidArgument, "name"},
		{func(r *api.CreateTokenRequest) { r.Name = "loopback" }, codes.InvalidArgument, "audit log"},
		{func(r *api.CreateTokenRequest) { r.Role = "root" }, codes.InvalidArgument, "node, read, operate, admin"},
		{func(r *api.CreateTokenRequest) { r.Role = "none" }, codes.InvalidArgument, "node, read, operate, admin"},
		{func(r *api.CreateTokenRequest) { r.Sha256 = "12" }, codes.InvalidArgument, "64 hexadecimal"},
		{func(r *api.CreateTokenRequest) { r.Expires = "tomorrow" }, codes.InvalidArgument, "RFC 3339"},
		{func(r *api.CreateTokenRequest) { r.Expires = "2001-01-01T00:00:00Z" }, codes.InvalidArgument, "is over"},
		{func(r *api.CreateTokenRequest) { r.Role = "admin" }, codes.AlreadyExists, "revoke it first"},
		{func(r *api.CreateTokenRequest) { r.Name = "other" }, codes.AlreadyExists, "that of ci already"},
	} {
		req := good()
		c.change(req)
		if _, err := l.create(ctx, req); api.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %v %s", req, err, c.kind, c.want)
		}
	}
	for i, want := range []bool{true, false} {
		if r, err := l.revoke(ctx, &api.RevokeTokenRequest{Name: "ci"}); err != nil || r.Revoked != want {
			t.Errorf("revoke %d: %v %v", i, r, err)
		}
	}
	// An old state of the shelf, heard late, does not bring it back.
	l.changed("ci", []byte(`{"name":"ci","role":"admin","sha256":"`+digest("secret-secret-secret")+`"}`), 1)
	if l.find("secret-secret-secret") != nil {
		t.Error("a token is good again after it was revoked")
	}
	for i := range tokensMax {
		if _, err := l.create(ctx, &api.CreateTokenRequest{Name: fmt.Sprint("t", i), Role: "read", Sha256: digest(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.create(ctx, good()); api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("one too many: %v", err)
	}
	if m, err := l.list(ctx, nil); err != nil || len(m.Tokens) != tokensMax {
		t.Errorf("%d tokens, %v", len(m.Tokens), err)
	}
}

// Who guesses is slowed down, and told so; tokens that were right from there go
// on.
func TestWrongTokensAreBounded(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback, c.WrongTokensPerMinute = false, 5 })
	known, other := s.made(t, "known", "read"), s.made(t, "other", "read")
	try := func(token string) *http.Response {
		resp, _ := s.request(t, "GET", "/v1/hosts", "", "Authorization", "Bearer "+token)
		return resp
	}
	if resp := try(known); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	for i := range 5 {
		if resp := try(fmt.Sprint("guess", i)); resp.StatusCode != 401 {
			t.Errorf("guess %d: %s", i, resp.Status)
		}
	}
	if resp := try("guess-too-many"); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	for range 20 { // a page that has not noticed yet that its token has ended
		if resp := try("guess4"); resp.StatusCode != 401 {
			t.Errorf("the same guess again: %s", resp.Status)
		}
	}
	if resp := try(other); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a right guess is told apart: %s", resp.Status)
	}
	if resp := try(known); resp.StatusCode != 200 {
		t.Errorf("the one that is known: %s", resp.Status)
	}
	if _, err := api.NewHostsClient(dial(t, s.address)).ListHosts(bearing(t.Context(), "guess"), &api.ListHostsRequest{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC: %v", err)
	}
}

func TestThrottle(t *testing.T) {
	now := time.Now()
	th := newThrottle(6, func() time.Time { return now })
	for i := range 6 {
		if d := th.wait(northbound.ClientAt("[2001:db8::1]:99"), "x"); d != 0 {
			t.Fatalf("%d: wait %v", i, d)
		}
		th.tried(northbound.ClientAt(fmt.Sprintf("[2001:db8::%x]:1", i)), fmt.Sprint(i), false) // one network, one peer
		th.tried(northbound.ClientAt("[2001:db8::1]:1"), "0", false)                            // no further guess
	}
	if d := th.wait(northbound.ClientAt("[2001:db8::77]:99"), "x"); d <= 9*time.Second || d > 10*time.Second {
		t.Errorf("wait %v, want 10 s", d)
	}
	if d := th.wait(northbound.ClientAt("192.0.2.1:99"), "x"); d != 0 {
		t.Errorf("another address waits %v", d)
	}
	now = now.Add(11 * time.Second)
	if d := th.wait(northbound.ClientAt("[2001:db8::1]:99"), "x"); d != 0 {
		t.Errorf("after 11 s: wait %v", d)
	}
	for i := range 2 * peersMax {
		th.tried(northbound.ClientAt(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)), "x", false)
	}
	if len(th.peers) > peersMax {
		t.Errorf("%d addresses are remembered", len(th.peers))
	}
}
