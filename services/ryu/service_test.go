package ryu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// browser makes requests to the service.
type browser struct {
	t       *testing.T
	address string
}

// newBrowser configures the service to listen.
func newBrowser(t *testing.T, h *wefttest.Harness, more string) *browser {
	t.Helper()
	address, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	h.Configure("listen: " + address + "\n" + more)
	return &browser{t, address}
}

// do makes a request and returns status and body.
func (c *browser) do(method, path, body string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequest(method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

// want makes a request whose answer is known.
func (c *browser) want(method, path, body string, status int, text string) {
	c.t.Helper()
	if got, answer := c.do(method, path, body); got != status || text != "*" && answer != text {
		c.t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, got, answer, status, text)
	}
}

func switchUp(sw flow.DPID, version string) *api.SwitchChanged {
	return &api.SwitchChanged{
		Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: version},
		Ports: []*api.Port{
			{Dpid: sw.String(), Port: 1, Name: "eth1", Mac: "00:00:00:00:00:01"},
			{Dpid: sw.String(), Port: uint32(flow.PortLocal), Name: "s", Mac: "00:00:00:00:00:09"},
		},
	}
}

// TestService runs the service with a southbound that is the test's.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "")
		answer := func() (*api.ReadMultipartResponse, error) { return &api.ReadMultipartResponse{}, nil }
		wefttest.Fake(h, api.ReadMultipart, func(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) { return answer() })
		var applied func(*flow.Decision) *api.ApplyResult
		wefttest.Fake(h, api.Apply, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) { return applied(d), nil })
		h.Start()
		c.want("GET", "/stats/switches", "", 200, `[]`)
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(6, "1.0"))
		h.Settle()
		c.want("GET", "/stats/switches", "", 200, `[5,6]`)
		c.want("GET", "/v1.0/topology/switches/0000000000000005", "", 200, `[{"dpid":"0000000000000005","ports":[{"dpid":"0000000000000005","port_no":"00000001","hw_addr":"00:00:00:00:00:01","name":"eth1"}]}]`)
		c.want("GET", "/stats/desc/6", "", 501, "*")
		c.want("GET", "/stats/desc/7", "", 404, "*")

		// What a switch does not answer.
		for _, x := range []struct {
			err    error
			status int
		}{
			{nil, 200}, {api.Errorf(codes.FailedPrecondition, "no"), 200}, {api.Errorf(codes.DeadlineExceeded, "late"), 504},
			{api.Errorf(codes.Unavailable, "away"), 404}, {api.Errorf(codes.Unimplemented, "never"), 501}, {errors.New("why"), 500},
		} {
			answer = func() (*api.ReadMultipartResponse, error) {
				if x.err != nil {
					return nil, x.err
				}
				return &api.ReadMultipartResponse{}, nil
			}
			text := "*"
			if x.status == 200 {
				text = `{"5":[]}`
			}
			c.want("GET", "/stats/flow/5", "", x.status, text)
			c.want("GET", "/stats/groupfeatures/5", "", x.status, text)
		}
		answer = func() (*api.ReadMultipartResponse, error) { return &api.ReadMultipartResponse{}, nil }

		// What a switch refuses to do.
		applied = func(*flow.Decision) *api.ApplyResult {
			return &api.ApplyResult{Failures: []*api.ApplyFailure{{Text: "table full"}}}
		}
		c.want("POST", "/stats/flowentry/add", `{"dpid": 5}`, 200, "")
		applied = func(*flow.Decision) *api.ApplyResult {
			return &api.ApplyResult{Failures: []*api.ApplyFailure{{Text: "gone", Transient: true}}}
		}
		c.want("POST", "/stats/flowentry/add", `{"dpid": 5}`, 504, "*")
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(5).String()}})
		h.Settle()
		c.want("GET", "/stats/switches", "", 200, `[6]`)
	})
}

// TestReportRefusals: with the key set, what a switch refuses is told by status.
func TestReportRefusals(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "report_refusals: true")
		wefttest.Fake(h, api.ReadMultipart, func(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
			return &api.ReadMultipartResponse{}, nil
		})
		wefttest.Fake(h, api.Apply, func(context.Context, *flow.Decision) (*api.ApplyResult, error) {
			return &api.ApplyResult{Failures: []*api.ApplyFailure{{Text: "table full"}}}, nil
		})
		h.Start()
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		h.Settle()
		c.want("POST", "/stats/flowentry/add", `{"dpid": 5}`, 400, "table full")
	})
}

// TestConf: the values of rest_conf_switch survive a restart, and are bounded.
func TestConf(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "")
		h.Start()
		const at = "/v1.0/conf/switches/00000000000000ab/"
		c.want("PUT", at+"a", `[1, {"b": null}]`, 201, "")
		c.want("PUT", at+"strange%2Fkey%20%C3%A9", "", 201, "")
		c.want("PUT", at+"c", `{'no': JSON}`, 400, "*")
		c.want("PUT", at+"big", `"`+strings.Repeat("x", maxValue)+`"`, 413, "*")
		c.want("PUT", at+strings.Repeat("k", maxKey+1), `1`, 413, "*")
		h.Restart()
		c.want("GET", at+"a", "", 200, `[1,{"b":null}]`)
		c.want("GET", at[:len(at)-1], "", 200, `["a","strange/key é"]`)
		for i := range maxKeys - 2 {
			c.want("PUT", fmt.Sprint(at, i), "1", 201, "")
		}
		c.want("PUT", at+"more", "1", 413, "*")
		c.want("DELETE", at[:len(at)-1], "", 202, "")
		h.Restart()
		c.want("GET", "/v1.0/conf/switches", "", 200, `[]`)
	})
}

// TestEvents: clients of the WebSocket are told of what changes, each once; one
// that does not read is dropped, and others are not disturbed.
func TestEvents(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "max_event_clients: 1\nevent_queue: 16")
		h.Start()
		ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
		defer cancel()
		conn, _, err := websocket.Dial(ctx, "ws://"+c.address+eventsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		if second, _, err := websocket.Dial(ctx, "ws://"+c.address+eventsPath, nil); err == nil {
			second.CloseNow()
			t.Error("more clients than may be")
		}
		loc := func(sw flow.DPID) *api.Location { return &api.Location{Dpid: sw.String(), Port: 1} }
		l := &api.Link{Src: loc(5), Dst: loc(6), State: "up"}
		host := &api.Host{Mac: "00:00:00:00:00:77", At: loc(5), Ipv4: []string{"10.0.0.7"}}
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3")) // again: nothing new
		h.Settle()
		wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: l})
		wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: l})
		h.Settle()
		wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: l, Removed: true})
		h.Settle()
		wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Host: host, Change: "new"})
		h.Settle()
		wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Host: host, Change: "gone"})
		h.Settle()
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(5).String()}})
		for i, method := range []string{"event_switch_enter", "event_link_add", "event_link_delete", "event_host_add", "event_switch_leave"} {
			_, text, err := conn.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var e call
			if err := json.Unmarshal(text, &e); err != nil || e.Method != method || e.ID != uint64(i+1) || e.Version != "2.0" || len(e.Params) != 1 {
				t.Fatalf("event %d is %s, want %s", i+1, text, method)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	if err := defaults().Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"listen":            func(c *Config) { c.Listen = "8080" },
		"exposed":           func(c *Config) { c.Listen = "0.0.0.0:8080" },
		"call_timeout":      func(c *Config) { c.CallTimeout = 0 },
		"max_connections":   func(c *Config) { c.MaxConnections = 0 },
		"max_event_clients": func(c *Config) { c.MaxEventClients = 0 },
		"event_queue":       func(c *Config) { c.EventQueue = -1 },
	} {
		c := defaults()
		if change(c); c.Validate() == nil || !strings.Contains(c.Validate().Error(), want) {
			t.Errorf("%s: %v", want, c.Validate())
		}
	}
	c := defaults()
	if c.Listen, c.Exposed = "[::]:8080", true; c.Validate() != nil {
		t.Error(c.Validate())
	}
}
