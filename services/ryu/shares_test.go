package ryu

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// TestOwnerGetsIn: who may change something gets in, whatever others hold.
func TestOwnerGetsIn(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "max_connections: 32\nmax_event_clients: 4\n")
		h.Start()
		other := as(t, 65533).Transport.(*http.Transport)
		for _, text := range []string{
			"", "GET /stats/switches HTTP/1.1\r\nX: ", "GET /stats/switches HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"POST /stats/flow/5 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
			"GET " + eventsPath + " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		} {
			for i := range 40 {
				dial := other.DialContext
				if i%2 == 0 {
					dial = new(net.Dialer).DialContext // of our own, idle
				}
				conn, err := dial(t.Context(), "tcp", c.address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				io.WriteString(conn, text) // it may be closed already
			}
			client := &http.Client{Timeout: testwait.Limit, Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get("http://" + c.address + "/stats/switches")
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%.40q: %v %v", text, resp, err)
			}
			resp.Body.Close()
		}
	})
}

// TestOwnerFollowsEvents: for who may change something, the oldest client of the
// events that may not has to go.
func TestOwnerFollowsEvents(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "max_event_clients: 1\n")
		h.Start()
		follow := func(client *http.Client) (*websocket.Conn, error) {
			ws, _, err := websocket.Dial(t.Context(), "ws://"+c.address+eventsPath, &websocket.DialOptions{HTTPClient: client})
			if err == nil {
				t.Cleanup(func() { ws.CloseNow() })
			}
			return ws, err
		}
		reader, err := follow(as(t, 65533))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := follow(as(t, 65533)); err == nil {
			t.Error("a second reader is let in")
		}
		if _, err := follow(nil); err != nil {
			t.Errorf("an owner: %v", err)
		}
		if _, _, err := reader.Read(t.Context()); err == nil {
			t.Error("the reader stays")
		}
		if _, err := follow(nil); err == nil {
			t.Error("a second owner is let in")
		}
	})
}

// TestRequestsAreBounded: a body is bounded in octets and in values, and what is
// quoted of a request in characters.
func TestRequestsAreBounded(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "")
		h.Start()
		long := strings.Repeat("x y ", 20_000)
		for _, x := range []struct {
			path, body string
			status     int
			want       string
		}{
			{"/stats/flowentry/add", "[" + strings.Repeat("[],", 300_000) + "]", 400, "values"},
			{"/stats/flowentry/add", "{" + strings.Repeat("{},", 300_000) + "}", 400, "character"},
			{"/stats/flowentry/add", strings.Repeat(" ", maxBody+1), 413, "octets"},
			{"/stats/flowentry/add", strings.ReplaceAll(long, " ", ""), 400, "not the name"},
			{"/stats/flowentry/add", fmt.Sprintf("{'dpid': %q}", long), 400, "dpid"},
			{"/stats/flowentry/" + strings.Repeat("x%20y", 1000), "{'dpid': 5}", 404, "no switch"},
			{"/stats/" + strings.Repeat("x%20y", 1000) + "/x/y/z", "", 404, "there is no"},
		} {
			status, text := c.do("POST", x.path, x.body)
			if status != x.status || !strings.Contains(text, x.want) || len(text) > 400 {
				t.Errorf("%.40s %.20s…: %d %d octets: %.400s", x.path, x.body, status, len(text), text)
			}
		}
	})
}
