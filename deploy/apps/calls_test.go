package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// caller calls a method by name, JSON to JSON; what it returns is the response
// or the error's code and text.
type caller func(t *testing.T, w *world, method, request string) (response string, code codes.Code, text string)

func callers() map[string]caller {
	return map[string]caller{"rest": callREST, "ws": callWS}
}

func callREST(t *testing.T, w *world, method, request string) (string, codes.Code, string) {
	t.Helper()
	resp, err := http.Post("http://"+w.address+"/v1/call/"+method, "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		return strings.TrimSpace(string(body)), codes.OK, ""
	}
	var f failure
	if err := json.Unmarshal(body, &f); err != nil {
		t.Fatalf("%s: %q", resp.Status, body)
	}
	return "", codes.Code(f.Code), f.Message
}

func callWS(t *testing.T, w *world, method, request string) (string, codes.Code, string) {
	t.Helper()
	conn, err := openWS(t, w)
	if err != nil {
		t.Fatal(err)
	}
	if request == "" {
		request = "null"
	}
	if err := conn.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, `{"id":9,"call":%q,"request":%s}`, method, request)); err != nil {
		t.Fatal(err)
	}
	_, text, err := conn.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID       int
		Response json.RawMessage
		Error    *failure
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if e := answer.Error; e != nil {
		return "", codes.Code(e.Code), e.Message
	}
	if answer.ID != 9 {
		t.Errorf("answer %q is not that of call 9", text)
	}
	return string(answer.Response), codes.OK, ""
}

// TestCalls: any method by JSON, over REST and the WebSocket.
func TestCalls(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.CallTimeout = 100 * time.Millisecond })
	for name, call := range callers() {
		t.Run(name, func(t *testing.T) {
			for _, x := range []struct {
				method, request string
				response        string // of it
				code            codes.Code
				text            string // of it
			}{
				{"southbound.ListSwitches", "", `"dpid":"0000000000000001"`, codes.OK, ""},
				{"southbound.ListSwitches", "{}", `"packet_ins":"0"`, codes.OK, ""},
				{"hosts.FindHost", `{"address":"10.0.0.1"}`, `"ipv4":["10.0.0.1"]`, codes.OK, ""},
				{"hosts.FindHost", `{"address":"192.0.2.1"}`, "", codes.NotFound, `host "192.0.2.1" is not known`},
				{"hosts.FindHost", `{"adress":"10.0.0.1"}`, "", codes.InvalidArgument, "FindHostRequest has address"},
				{"hosts.FindHost", `{"address":1}`, "", codes.InvalidArgument, "JSON of FindHostRequest"},
				{"hosts.FindHost", `[]`, "", codes.InvalidArgument, "JSON of FindHostRequest"},
				{"hosts.LoseHost", `{}`, "", codes.Unimplemented, "there are: hosts.FindHost, paths.FindPath"},
				{"flowrules.SetStanding", `{}`, "", codes.Unimplemented, "is not offered"},
				{"southbound.Apply", `{}`, "", codes.Unimplemented, "is not offered"},
				{"paths.FindPath", `{}`, "", codes.DeadlineExceeded, "deadline"},
				{"stats.ListPortStats", `{}`, "", codes.Internal, "panic in stats.ListPortStats"},
			} {
				response, code, text := call(t, w, x.method, x.request)
				if code != x.code || !strings.Contains(response, x.response) || !strings.Contains(text, x.text) {
					t.Errorf("%s %s: %s, %v, %q; want …%s…, %v, …%s…", x.method, x.request, response, code, text, x.response, x.code, x.text)
				}
			}
		})
	}
	methods := &api.ListMethodsResponse{}
	if err := request(w, "GET", "/v1/call", nil, methods); err != nil || fmt.Sprint(methods.GetMethods()) != "[hosts.FindHost paths.FindPath southbound.ListSwitches stats.ListPortStats]" {
		t.Errorf("methods: %v, %v", methods.GetMethods(), err)
	}
}

// TestCallsGRPC: any method as a unary call by its .proto.
func TestCallsGRPC(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.CallTimeout = 100 * time.Millisecond })
	conn := dial(t, w, nil)
	ctx := context.Background()
	host, err := api.NewHostsClient(conn).FindHost(ctx, &api.FindHostRequest{Address: "10.0.0.1"})
	if err != nil || host.GetMac() != "02:00:00:00:00:01" {
		t.Errorf("FindHost: %v, %v", host, err)
	}
	if _, err = api.NewHostsClient(conn).FindHost(ctx, &api.FindHostRequest{Address: "::1"}); status.Code(err) != codes.NotFound || status.Convert(err).Message() != `host "::1" is not known` {
		t.Errorf("FindHost of an unknown one: %v", err)
	}
	if _, err = api.NewHostsClient(conn).ListHosts(ctx, &api.ListHostsRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that no service serves now: %v", err)
	}
	if _, err = api.NewFlowrulesClient(conn).SetStanding(ctx, &api.SetStandingRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("SetStanding: %v", err)
	}
	if _, err = api.NewPathsClient(conn).FindPath(ctx, &api.FindPathRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a slow one: %v", err)
	}
	if _, err = api.NewStatsClient(conn).ListPortStats(ctx, &api.ListPortStatsRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("one that panics: %v", err)
	}
}

// TestOffered: whatever unary methods the .proto files have are offered.
func TestOffered(t *testing.T) {
	w := serve(t, nil)
	n := 0
	for _, d := range w.offered() {
		n += len(d.Methods)
	}
	if d := w.offered(); len(d) < 8 || n < 20 {
		t.Errorf("%d services with %d methods; want all of api", len(d), n)
	}
}

// TestAdministratorsMethods: what the northbound asks an administrator's token
// for is not offered at ports that know no tokens, nor is what is put to a
// switch as it comes.
func TestAdministratorsMethods(t *testing.T) {
	open := map[string]bool{"GetInfo": true, "ImportLab": true, "ListWorkers": true, "ReadEvents": true, "GetStore": true, "GetWork": true, "ListCrossings": true, "ReadWorkerLog": true, "GetScaling": true, "TracePacket": true, "WatchPackets": true, "NameSwitch": true, "ListSwitchNames": true}
	methods := api.File_gateway_proto.Services().ByName("Gateway").Methods()
	for i := range methods.Len() {
		if name := string(methods.Get(i).Name()); Internal("gateway."+name) == open[name] {
			t.Errorf("gateway.%s: internal %v", name, !open[name])
		}
	}
	for method, want := range map[string]bool{"southbound.SendExperimenter": true, "southbound.ModifyPort": true, "flowrules.AddFlows": false, "gateway.Future": true} {
		if Internal(method) != want {
			t.Errorf("%s: internal %v", method, !want)
		}
	}
	w := serve(t, nil)
	for _, method := range []string{"gateway.ApplyPlan", "gateway.GetConfig", "southbound.SendExperimenter"} {
		if _, code, _ := callREST(t, w, method, ""); code != codes.Unimplemented {
			t.Errorf("%s over REST: %v", method, code)
		}
		if _, err := w.calls.request(method); api.KindOf(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestManyCalls: no more calls are under way than are allowed.
func TestManyCalls(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.Calls = 2; c.Limits.CallTimeout = 10 * time.Second })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	slow := api.NewPathsClient(dial(t, w, nil))
	done := make(chan error, 2)
	for range cap(done) {
		go func() { _, err := slow.FindPath(ctx, &api.FindPathRequest{}); done <- err }()
	}
	testwait.Until(t, "a third is refused", func() bool {
		_, code, _ := callREST(t, w, "southbound.ListSwitches", "")
		return code == codes.ResourceExhausted
	})
	cancel()
	for range cap(done) {
		<-done
	}
	testwait.Until(t, "it is not any more", func() bool {
		_, code, _ := callREST(t, w, "southbound.ListSwitches", "")
		return code == codes.OK
	})
}

// TestPipelined: calls by one WebSocket do not wait for each other, and packets
// do not wait for calls.
func TestPipelined(t *testing.T) {
	w := serve(t, func(c *Config) { c.Limits.CallTimeout = 3 * time.Second })
	conn, err := openWS(t, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	for _, frame := range []string{`{"id":1,"call":"paths.FindPath"}`, `{"id":2,"call":"southbound.ListSwitches"}`} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	if _, text, err := conn.Read(ctx); err != nil || !bytes.HasPrefix(text, []byte(`{"id":2,`)) {
		t.Errorf("first comes %q, %v; want the answer to the second", text, err)
	}
}

// TestLargeBody: a request that is too large is refused.
func TestLargeBody(t *testing.T) {
	w := serve(t, nil)
	body := `{"address":"` + strings.Repeat("1", maxMessage) + `"}`
	if _, code, _ := callREST(t, w, "hosts.FindHost", body); code != codes.ResourceExhausted {
		t.Errorf("refused as %v", code)
	}
	if err := request(w, "POST", "/v1/apps", []byte(body), proto.Message(&api.Welcome{})); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a hello: %v", err)
	}
}

// adding is a controller that also has a method that changes something.
type adding struct{ fakeCaller }

func (a adding) Method(name string) (func() proto.Message, bool) {
	if name == "flowrules.AddFlows" {
		return func() proto.Message { return &api.AddFlowsRequest{} }, true
	}
	return a.fakeCaller.Method(name)
}

func (a adding) Call(ctx context.Context, method string, req proto.Message) (proto.Message, error) {
	if method == "flowrules.AddFlows" {
		return &api.AddFlowsResponse{}, nil
	}
	return a.fakeCaller.Call(ctx, method, req)
}

// TestChangesAreTold: every call that may change something is told, with who made
// it from where and what became of it, over each transport; what only reads is not.
func TestChangesAreTold(t *testing.T) {
	told := make(chan Change, 8)
	w := serve(t, func(c *Config) { c.Caller, c.Changed = adding{}, func(x Change) { told <- x } })
	want := func(method string, kind codes.Code) {
		t.Helper()
		select {
		case x := <-told:
			if x.Method != method || api.KindOf(x.Err) != kind && x.Err != nil || (x.Err == nil) != (kind == codes.OK) ||
				x.Who != nobodys || !strings.HasPrefix(x.From, "127.0.0.1:") || x.Request == nil || x.Begun.IsZero() {
				t.Errorf("%+v; want %s, %v", x, method, kind)
			}
		case <-time.After(testwait.Limit):
			t.Fatalf("%s is not told", method)
		}
	}
	callREST(t, w, "southbound.ListSwitches", "")
	_, code, _ := callREST(t, w, "flowrules.AddFlows", "")
	want("flowrules.AddFlows", code)
	conn, err := openWS(t, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	if err := conn.Write(ctx, websocket.MessageText, []byte(`{"id":1,"call":"flowrules.AddFlows"}`)); err != nil {
		t.Fatal(err)
	}
	want("flowrules.AddFlows", code)
	_, err = api.NewFlowrulesClient(dial(t, w, nil)).AddFlows(ctx, &api.AddFlowsRequest{})
	want("flowrules.AddFlows", status.Code(err))
	if len(told) > 0 {
		t.Errorf("told besides: %+v", <-told)
	}
	for method, want := range map[string]bool{"hosts.FindHost": true, "firewall.CheckFirewall": true, "firewall.SetFirewallDefault": false, "balancer.DrainMember": false, "new.Method": false} {
		if reads(method) != want {
			t.Errorf("%s reads: %v", method, !want)
		}
	}
}
