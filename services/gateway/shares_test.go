package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// TestOperatorGetsIn: however many connections others have, of one user or of
// many, that are silent, stall in a handshake, a header or a body, follow events
// or do not read their answers, an operator gets in, by JSON, gRPC and events.
func TestOperatorGetsIn(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("tls=", secure), func(t *testing.T) {
			cert, key, pool := certificate(t, t.TempDir())
			s := serve(t, func(c *Config) {
				c.MaxConnections, c.MaxConnectionsPerAddress, c.MaxEventClients = 64, 32, 16
				if c.OpenLoopback = false; secure {
					c.Certificate, c.Key = cert, key
				}
			})
			reader, operator := s.made(t, "reader", "read"), s.made(t, "operator", "operate")
			trust := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
			var open []net.Conn
			t.Cleanup(func() {
				for _, c := range open {
					c.Close()
				}
			})
			dial := func(uid int) net.Conn {
				c, err := dialAs(t, uid)(t.Context(), "tcp", s.address)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
				return c
			}
			say := func(uid int, text string) {
				c := dial(uid)
				if secure {
					c = tls.Client(c, trust)
				}
				io.WriteString(c, text) // it may be closed already
			}
			bearer := "Host: 127.0.0.1\r\nAuthorization: Bearer " + reader + "\r\n"
			for _, attack := range []func(uid int){
				func(uid int) { dial(uid) },
				func(uid int) { dial(uid).Write([]byte{22, 3, 1, 2, 0, 1}) },
				func(uid int) { say(uid, "GET /v1/hosts HTTP/1.1\r\nX: ") },
				func(uid int) { say(uid, "GET /v1/hosts HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") },
				func(uid int) { say(uid, "POST /v1/firewall/check HTTP/1.1\r\n"+bearer+"Content-Length: 100\r\n\r\n{") },
				func(uid int) { say(uid, "GET /v1/links HTTP/1.1\r\n"+bearer+"\r\n") }, // which does not end
				func(uid int) {
					say(uid, "GET /v1/events HTTP/1.1\r\n"+bearer+"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
				},
			} {
				for i := range 80 {
					attack(stranger - i%2*(i%5)) // one user, and some others
				}
				client := &http.Client{Timeout: testwait.Limit, Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}}
				url, options := "http://", grpc.WithTransportCredentials(insecure.NewCredentials())
				if secure {
					url, options = "https://", grpc.WithTransportCredentials(credentials.NewTLS(trust))
				}
				if code, text := ask(t, client, "POST", url+s.address+"/v1/flows", "{}", "Authorization", "Bearer "+operator); code != 200 {
					t.Errorf("JSON: %d %s", code, text)
				}
				conn, err := grpc.NewClient("passthrough:///"+s.address, options)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(bearing(t.Context(), operator), testwait.Limit)
				if _, err := api.NewHostsClient(conn).ListHosts(ctx, &api.ListHostsRequest{}); err != nil {
					t.Errorf("gRPC: %v", err)
				}
				conn.Close()
				ws, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+s.address+eventsPath, &websocket.DialOptions{
					HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + operator}},
				})
				if err != nil {
					t.Errorf("events: %v", err)
				} else {
					ws.CloseNow()
				}
				cancel()
			}
		})
	}
}

// An operator's event client takes the place of the oldest that may only read, an
// administrator's that of an operator; others of the same rights with as many stay.
func TestOperatorFollowsEvents(t *testing.T) {
	s := serve(t, func(c *Config) { c.MaxEventClients = 2 })
	follow := func(role string) (*websocket.Conn, error) {
		header := http.Header{"Authorization": {"Bearer " + s.made(t, fmt.Sprint(role, time.Now().UnixNano()), role)}}
		ws, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, &websocket.DialOptions{HTTPHeader: header})
		if err == nil {
			t.Cleanup(func() { ws.CloseNow() })
		}
		return ws, err
	}
	oldest, err := follow("read")
	if err != nil {
		t.Fatal(err)
	}
	newer, err := follow("read")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := follow("read"); err == nil {
		t.Error("a third reader is let in")
	}
	for _, goes := range []*websocket.Conn{oldest, newer} {
		if _, err := follow("operate"); err != nil {
			t.Errorf("an operator: %v", err)
		}
		if _, _, err := goes.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusTryAgainLater || !strings.Contains(err.Error(), "another client follows") {
			t.Errorf("the reader that had to go: %v", err)
		}
	}
	if _, err := follow("operate"); err == nil || !strings.Contains(err.Error(), "429") {
		t.Errorf("a third operator: %v", err)
	}
	before := s.refuse.Load()
	for range 2 {
		if _, err := follow("admin"); err != nil {
			t.Errorf("an administrator: %v", err)
		}
	}
	if n := s.refuse.Load() - before; n != 2 {
		t.Errorf("%d evictions are counted", n)
	}
}

// Requests that hold too much together are refused with what the limit is, in
// the way of each protocol; small ones of others are not.
func TestOctetsInFlight(t *testing.T) {
	s := serve(t, func(c *Config) { c.MaxOctets, c.MaxOctetsPerAddress = 4*maxBody, 2*maxBody })
	reader := s.made(t, "reader", "operate")
	var open []net.Conn
	for range 4 {
		c, err := dialAs(t, stranger)(t.Context(), "tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/flows HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", reader, maxBody, strings.Repeat(" ", maxBody-1))
		open = append(open, c)
	}
	open[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if text, err := io.ReadAll(open[0]); err == nil && len(text) > 0 && !strings.Contains(string(text), "429") {
		t.Errorf("the oldest that stalls: %s", text)
	}
	large := `{"flows":[` + strings.Repeat(`{"actions":["output:1"]},`, 50_000) + `{}]}`
	if resp, text := s.request(t, "POST", "/v1/flows", large); resp.StatusCode != 200 {
		t.Errorf("another: %s %s", resp.Status, text)
	}
	big := &api.AddFlowsRequest{}
	for range 90_000 {
		big.Flows = append(big.Flows, &api.FlowEntry{Actions: []string{"output:1"}})
	}
	if _, err := api.NewFlowrulesClient(dial(t, s.address)).AddFlows(t.Context(), big); err != nil {
		t.Errorf("gRPC: %v", err)
	}
	many := &api.AddFlowsRequest{Flows: make([]*api.FlowEntry, maxMessages+1)}
	for i := range many.Flows {
		many.Flows[i] = &api.FlowEntry{}
	}
	if _, err := api.NewFlowrulesClient(dial(t, s.address)).AddFlows(t.Context(), many); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "messages") {
		t.Errorf("gRPC, too many messages: %v", err)
	}
}
