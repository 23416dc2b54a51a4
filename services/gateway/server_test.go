package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/loom"
)

// testServer is a gateway without services behind it: calls answers them.
type testServer struct {
	*server
	address string
	packets *fakePackets
	slow    atomic.Int32
	refuse  atomic.Int32
	hanging atomic.Int32 // calls of ListLinks, which end with their time
	got     chan any     // requests, if it has room
	shelf   *memory
	stop    func()
}

func method[Req, Resp any](s *testServer, m api.Method[Req, Resp], answer *Resp) api.Answer {
	return api.Answer{Method: m.Name, New: func() any { return new(Req) }, Call: func(ctx context.Context, req any) (any, error) {
		select {
		case s.got <- req:
		default:
		}
		return answer, ctx.Err()
	}}
}

// serve starts a gateway with a configuration on a free port.
func serve(t *testing.T, change func(*Config)) *testServer {
	t.Helper()
	c := defaults()
	c.Listen = "127.0.0.1:0"
	if change != nil {
		change(c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	tokens, err := newTokens(c)
	if err != nil {
		t.Fatal(err)
	}
	users, err := c.userRoles()
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{got: make(chan any, 10), shelf: &memory{}}
	g := &guard{
		tokens: tokens, ledger: newLedger(s.shelf, time.Now, func(string, error) {}), throttle: newThrottle(c.WrongTokensPerMinute, time.Now),
		open: c.OpenLoopback, users: users, listen: hostname(c.Listen), count: func(refusal) { s.refuse.Add(1) },
	}
	s.server = &server{
		config: *c, guard: g, log: slog.New(slog.DiscardHandler),
		metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "weft_figure 1\n") }),
		refused: func(refusal) { s.refuse.Add(1) }, stopWithin: stopTimeout,
		stream: &stream{
			log: newEventLog(time.Now, t.Context().Done()), behind: c.EventQueue, places: newPlaces("event streams", c.MaxEventClients, func() { s.refuse.Add(1) }), full: func() {}, holds: g.holds,
			stopped: make(chan struct{}), sent: func() {}, slow: func() { s.slow.Add(1) },
		},
	}
	s.stream.log.subjects = []string{"discovery.LinkChanged", "hosts.HostChanged"}
	s.packets = &fakePackets{}
	s.watch = &watching{packets: s.packets, guard: g, places: newPlaces("watches of packets", watchersMost, func() { s.refuse.Add(1) }), ended: func(codes.Code) {}}
	s.calls = newCalls([]api.Answer{
		api.AnswerBy(api.WatchPackets, s.watch.next),
		method(s, api.ListHosts, &api.ListHostsResponse{Hosts: []*api.Host{{Mac: "02:00:00:00:00:01"}}}),
		method(s, api.ListPorts, &api.ListPortsResponse{}),
		method(s, api.AddFlows, &api.AddFlowsResponse{}),
		method(s, api.FindHost, &api.Host{}),
		{Method: api.GetTree.Name, New: func() any { return new(api.GetTreeRequest) }, Call: func(context.Context, any) (any, error) { panic("tree") }},
		{Method: api.ListLinks.Name, New: func() any { return new(api.ListLinksRequest) }, Call: func(ctx context.Context, _ any) (any, error) {
			s.hanging.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		api.AnswerBy(api.CreateToken, g.ledger.create), api.AnswerBy(api.ListTokens, g.ledger.list), api.AnswerBy(api.RevokeToken, g.ledger.revoke),
	}, c.CallTimeout, func(codes.Code) {})
	s.watch.calls = s.calls
	s.calls.refused, s.calls.holds = func(refusal) { s.refuse.Add(1) }, g.holds
	l, err := s.listen()
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.server.serve(ctx, l) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("gateway: %v", err)
			}
		case <-time.After(testwait.Limit):
			t.Error("the gateway does not stop")
		}
	}
	t.Cleanup(s.stop)
	return s
}

// request makes one request; header holds names and values.
func (s *testServer) request(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp, string(text)
}

func wait(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %v", testwait.Limit)
		}
	}
}

// Whatever a client sends wrongly is answered as {"code","message"} with the
// status that fits, and says what would be right.
func TestWrongRequests(t *testing.T) {
	s := serve(t, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/flows", `{"flows":[{"dpid":"1","prioritty":5}]}`, 400, `unknown field \"prioritty\"`},
		{"POST", "/v1/flows", `{"flowz":[]}`, 400, `AddFlowsRequest has flows, no_wait`},
		{"POST", "/v1/flows", `{"flows":5}`, 400, "JSON of the request"},
		{"POST", "/v1/flows", `{"flows":[]} {}`, 400, "JSON of the request"},
		{"POST", "/v1/flows", `{`, 400, "JSON of the request"},
		{"POST", "/v1/flows", `{"flows":[{"priority":4294967296}]}`, 400, "JSON of the request"},
		{"POST", "/v1/flows", `{"flows":[{"priority":-1}]}`, 400, "JSON of the request"},
		{"POST", "/v1/flows?flow=1", `{}`, 400, `unknown parameter \"flow\"`},
		{"GET", "/v1/hosts?vlan=1", "", 400, "ListHostsRequest has no fields"},
		{"GET", "/v1/ports?dpdi=1", "", 400, "ListPortsRequest has dpid"},
		{"GET", "/v1/hosts/x?vlan=many", "", 400, "many"},
		{"POST", "/v1/pipeline:watch?access_token=0123456789abcdef", "", 400, "the body says what is watched"},
		{"GET", "/v1/nothing", "", 404, "there is no GET /v1/nothing"},
		{"GET", "/nothing", "", 404, "there is no GET /nothing"},
		{"DELETE", "/v1/hosts", "", 405, "does not take DELETE"},
		{"GET", "/v1/tree", "", 500, "panic in paths.GetTree"},
		{"GET", "/v1/switches", "", 501, "not offered"},
		{"GET", "/v1/events?subjects=nothing", "", 400, "allowed: discovery.LinkChanged, hosts.HostChanged"},
		{"GET", "/v1/events?subject=hosts", "", 400, "allowed: subjects"},
		{"GET", "/v1/events?epoch=1", "", 400, "epoch and number belong together"},
		{"GET", "/v1/events?epoch=1&number=-1", "", 400, "number"},
		{"GET", "/v1/events?epoch=1&number=18446744073709551616", "", 400, "number"},
	} {
		resp, body := s.request(t, c.method, c.path, c.body)
		var e failure
		if err := json.Unmarshal([]byte(body), &e); err != nil || e.Code == 0 || resp.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s: %s %s; want %d and %q", c.method, c.path, c.body, resp.Status, body, c.status, c.want)
		}
	}
}

// JSON has all fields, named as in the .proto files.
func TestJSONForm(t *testing.T) {
	s := serve(t, nil)
	_, body := s.request(t, "GET", "/v1/hosts", "")
	for _, want := range []string{`"first_seen":""`, `"vlan":0`, `"ipv4":[]`, `"refused":{}`} {
		if !strings.Contains(strings.ReplaceAll(body, ": ", ":"), want) {
			t.Errorf("%s does not hold %s", body, want)
		}
	}
	s.request(t, "GET", "/v1/hosts/02:00:00:00:00:01?vlan=7", "")
	<-s.got
	if r := (<-s.got).(*api.FindHostRequest); r.Address != "02:00:00:00:00:01" || r.Vlan != 7 {
		t.Errorf("request: %v", r)
	}
	s.request(t, "POST", "/v1/flows", `{"flows":[{"dpid":"1","match":{"in_port":"1"}}],"noWait":true}`)
	if r := (<-s.got).(*api.AddFlowsRequest); len(r.Flows) != 1 || !r.NoWait || r.Flows[0].Match["in_port"] != "1" {
		t.Errorf("request: %v", r)
	}
}

func TestOtherPaths(t *testing.T) {
	s := serve(t, nil)
	for path, want := range map[string]string{
		"/": "<!doctype html>", "/healthz": "ok", "/metrics": "weft_figure 1", "/openapi.json": `"swagger": "2.0"`,
	} {
		if resp, body := s.request(t, "GET", path, ""); resp.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %s %.80s", path, resp.Status, body)
		}
	}
}

// CVE-2017-1000079, denial of service by requests: bodies are bounded, read and
// announced, and calls that take too long end.
func TestCVE_2017_1000079_LargeAndEndlessRequests(t *testing.T) {
	s := serve(t, func(c *Config) { c.CallTimeout = 100 * time.Millisecond })
	large := `{"flows":[` + strings.Repeat(" ", maxBody) + `]}`
	resp, body := s.request(t, "POST", "/v1/flows", large)
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body, "4194304") {
		t.Errorf("announced: %s %s", resp.Status, body)
	}
	req, _ := http.NewRequest("POST", "http://"+s.address+"/v1/flows", io.MultiReader(strings.NewReader(large))) // chunked
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("chunked: %s", resp.Status)
		}
	}
	if s.refuse.Load() == 0 {
		t.Error("refusals by size are not counted")
	}
	_, err := api.NewFlowrulesClient(dial(t, s.address)).AddFlows(t.Context(), &api.AddFlowsRequest{
		Flows: []*api.FlowEntry{{Actions: []string{strings.Repeat("x", maxBody)}}}})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC: %v", err)
	}
	if resp, body := s.request(t, "GET", "/v1/links", ""); resp.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("endless call: %s %s", resp.Status, body)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", ""); resp.StatusCode != 200 {
		t.Errorf("afterwards: %s", resp.Status)
	}
}

// CVE-2018-1000163, script in a page: answers are not pages, and the one page
// has nothing in it that somebody sent.
func TestCVE_2018_1000163_NoScript(t *testing.T) {
	s := serve(t, nil)
	script := "<script>alert(1)</script>"
	resp, body := s.request(t, "GET", "/v1/"+strings.ReplaceAll(script, "/", "%2F"), "")
	if resp.Header.Get("Content-Type") != "application/json" || strings.Contains(body, "<script>") {
		t.Errorf("%s %s", resp.Header.Get("Content-Type"), body)
	}
	resp, body = s.request(t, "GET", "/?x="+script, "")
	if strings.Contains(body, script) {
		t.Error("the front page holds what was sent")
	}
	policy := "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
	if _, built := loom.Files(); built {
		policy = pagePolicy // scripts of its own files alone
	}
	for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"} {
		if got, _, _ := strings.Cut(resp.Header.Get(name), " 'nonce-"); got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
}

// CVE-2019-1010249, -1010250 and -1010252, integers of flows overflow: numbers
// out of range do not reach a service.
func TestCVE_2019_1010249_IntegerRanges(t *testing.T) {
	s := serve(t, nil)
	for _, field := range []string{"priority", "table", "idle_timeout", "hard_timeout", "meter", "flags"} {
		for _, value := range []string{"4294967296", "-1", "1.5", "1e99", `"x"`, "99999999999999999999999"} {
			resp, _ := s.request(t, "POST", "/v1/flows", fmt.Sprintf(`{"flows":[{%q:%s}]}`, field, value))
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s %s: %s", field, value, resp.Status)
			}
		}
	}
	select {
	case r := <-s.got:
		t.Errorf("a service was given %v", r)
	default:
	}
}

// A client that sends its request slowly, or never, is given up and in nobody's
// way; malformed requests of either protocol close one connection.
func TestSlowAndMalformedClients(t *testing.T) {
	s := serve(t, nil)
	for _, text := range []string{
		"GET /v1/hosts HTTP/1.1\r\nHost: localhost\r\n", // not finished
		"\x00\x01\x02\x03\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"POST /v1/flows HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, text)
	}
	if resp, _ := s.request(t, "GET", "/v1/hosts", ""); resp.StatusCode != 200 {
		t.Errorf("others: %s", resp.Status)
	}
}

// The port in use is said so.
func TestPortInUse(t *testing.T) {
	s := serve(t, nil)
	second := &server{config: Config{Listen: s.address, MaxConnections: 1}}
	if _, err := second.listen(); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("error %v", err)
	}
}

// Calls under way when the gateway stops are answered.
func TestGracefulStop(t *testing.T) {
	s := serve(t, func(c *Config) { c.CallTimeout = 500 * time.Millisecond })
	conn := subscribe(t, s.address, "")
	idle := api.NewHostsClient(dial(t, s.address))
	if _, err := idle.ListHosts(t.Context(), &api.ListHostsRequest{}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan *http.Response, 1)
	go func() {
		resp, err := http.Get("http://" + s.address + "/v1/links") // ends by its timeout
		if err != nil {
			t.Error(err)
		} else {
			resp.Body.Close()
		}
		answered <- resp
	}()
	wait(t, func() bool { return s.hanging.Load() == 1 })
	s.stopWithin = time.Hour // for ever, if what is idle held it up
	s.stop()
	if resp := <-answered; resp != nil && resp.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("the call under way: %s", resp.Status)
	}
	_, _, err := conn.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the event stream ended by %v", err)
	}
}

// memory is a shelf that forgets.
type memory struct {
	mu       sync.Mutex
	values   map[string][]byte
	revision uint64
	fails    error
}

func (m *memory) Put(_ context.Context, key string, value []byte) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return 0, m.fails
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = value
	m.revision++
	return m.revision, nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	m.revision++
	return m.fails
}
