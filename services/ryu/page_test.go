package ryu

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestPagesOfTheWeb: what a page has the browser of somebody on this machine
// send changes nothing, across sites or by DNS rebinding. Ryu's bodies need no
// Content-Type, so that a page could send them unasked.
func TestPagesOfTheWeb(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "")
		var applied atomic.Int32
		wefttest.Fake(h, api.Apply, func(context.Context, *flow.Decision) (*api.ApplyResult, error) {
			applied.Add(1)
			return &api.ApplyResult{}, nil
		})
		wefttest.Fake(h, api.ReadMultipart, func(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
			return &api.ReadMultipartResponse{}, nil
		})
		h.Start()
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		h.Settle()
		_, port, err := net.SplitHostPort(c.address)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			host, origin string
			allowed      bool
		}{
			{c.address, "", true}, {"localhost:" + port, "", true}, {c.address, "http://" + c.address, true},
			{c.address, "http://evil.example", false}, {c.address, "null", false}, {"evil.example:" + port, "http://evil.example:" + port, false}, {"evil.example", "", false},
		} {
			before := applied.Load()
			req, err := http.NewRequest("POST", "http://"+c.address+"/stats/flowentry/add", strings.NewReader(`{"dpid": 5}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = x.host
			req.Header.Set("Content-Type", "text/plain")
			header := http.Header{}
			if x.origin != "" {
				req.Header.Set("Origin", x.origin)
				header.Set("Origin", x.origin)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if (resp.StatusCode == 200) != x.allowed || (applied.Load() > before) != x.allowed || !x.allowed && resp.StatusCode != 403 {
				t.Errorf("host %q, origin %q: %s, %d applied; want allowed %v", x.host, x.origin, resp.Status, applied.Load()-before, x.allowed)
			}
			conn, _, err := websocket.Dial(t.Context(), "ws://"+c.address+eventsPath, &websocket.DialOptions{Host: x.host, HTTPHeader: header})
			if (err == nil) != x.allowed {
				t.Errorf("WebSocket, host %q, origin %q: %v; want allowed %v", x.host, x.origin, err, x.allowed)
			}
			if err == nil {
				conn.CloseNow()
			}
		}
	})
}
