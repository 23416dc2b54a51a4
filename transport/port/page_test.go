package port_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/transport/port"
)

// TestPagesOfTheWeb: what a page has the browser of somebody on this machine
// send, across sites or by DNS rebinding, reaches no handler: neither by a POST,
// which browsers send unasked, nor by a WebSocket.
func TestPagesOfTheWeb(t *testing.T) {
	var calls atomic.Int32
	p := listen(t, port.Config{Handler: function(func(context.Context, string, []byte) ([]byte, error) { calls.Add(1); return nil, nil })})
	_, number, err := net.SplitHostPort(p.Address())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, origin string
		allowed      bool
	}{
		{p.Address(), "", true},
		{"localhost:" + number, "", true},
		{"[::1]:" + number, "", true},
		{p.Address(), "http://evil.example", false},
		{p.Address(), "null", false},
		{p.Address(), "http://" + p.Address(), false}, // no page is served here
		{"evil.example:" + number, "http://evil.example:" + number, false},
		{"evil.example:" + number, "", false},
		{"127.0.0.1.evil.example", "", false},
		{"", "", false},
	} {
		for _, path := range []string{"/weft/call/gateway.ApplyPlan", "/weft/call/flowrules.DeleteFlows"} {
			before := calls.Load()
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+p.Address()+path, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			if c.host == "" {
				r.Host = "0"
			}
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close() // it was not looked at
			if (resp.StatusCode < 300) != c.allowed || !c.allowed && resp.StatusCode != http.StatusForbidden || (calls.Load() > before) != c.allowed {
				t.Errorf("%s, host %q, origin %q: %s, %d calls; want allowed %v", path, c.host, c.origin, resp.Status, calls.Load()-before, c.allowed)
			}
		}
		h := http.Header{}
		if c.origin != "" {
			h.Set("Origin", c.origin)
		}
		if c.host == "" {
			continue
		}
		conn, _, err := websocket.Dial(t.Context(), "ws://"+p.Address()+"/weft/link", &websocket.DialOptions{Host: c.host, HTTPHeader: h, Subprotocols: []string{"weft.v1"}})
		if (err == nil) != c.allowed {
			t.Errorf("WebSocket, host %q, origin %q: %v; want allowed %v", c.host, c.origin, err, c.allowed)
		}
		if err == nil {
			_ = conn.CloseNow() // it has served
		}
	}
}
