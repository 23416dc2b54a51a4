package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/wefttest"
)

// called takes down which methods of services were called.
type called struct {
	mu    sync.Mutex // guards names
	names []string
}

func (c *called) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
}

// take returns the name called last and forgets all.
func (c *called) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 {
		return ""
	}
	name := c.names[len(c.names)-1]
	c.names = nil
	return name
}

// fakeAll answers all calls with empty messages.
func fakeAll(h *wefttest.Harness) *called {
	c := &called{}
	for _, m := range forwarded() {
		wefttest.FakeAny(h, m, func(context.Context, any) (any, error) {
			c.add(m.MethodName())
			_, resp := m.NewMessages()
			return resp, nil
		})
	}
	return c
}

// fakeNode answers all that a node answers.
type fakeNode struct{ noNode }

func (fakeNode) Pipeline() []string { return []string{"hosts"} }

func (fakeNode) WatchPackets(_ context.Context, _ *api.WatchPacketsRequest, _ time.Duration, tell func(*api.WatchPacketsResponse) error) error {
	return tell(&api.WatchPacketsResponse{Packet: &api.WatchedPacket{Dpid: "0000000000000001"}})
}

func (fakeNode) Answers() []api.Answer {
	return []api.Answer{
		answerWith(api.GetWork, &api.GetWorkResponse{}),
		answerWith(api.ListCrossings, &api.ListCrossingsResponse{Crossings: []*api.Crossing{{From: "forwarding", To: "paths", Kind: "call", Name: "paths.GetPath", PerS: 12.5, Total: 7}}}),
		answerWith(api.ReadWorkerLog, &api.ReadWorkerLogResponse{}), answerWith(api.GetScaling, &api.GetScalingResponse{}),
		answerWith(api.TakeProfile, &api.TakeProfileResponse{}), answerWith(api.ListWorkers, &api.ListWorkersResponse{Generation: 3}),
		answerWith(api.GetPlan, &api.Plan{Generation: 3}), answerWith(api.ApplyPlan, &api.ApplyPlanResponse{Generation: 4}),
		answerWith(api.ListPlans, &api.ListPlansResponse{}), answerWith(api.RollbackPlan, &api.ApplyPlanResponse{}),
		answerWith(api.ShowPlan, &api.ShowPlanResponse{}), answerWith(api.CheckPlan, &api.CheckPlanResponse{}),
		answerWith(api.GetConfig, &api.Configuration{}), answerWith(api.ApplyConfig, &api.ApplyConfigResponse{}),
		answerWith(api.ListConfigs, &api.ListConfigsResponse{}), answerWith(api.RollbackConfig, &api.ApplyConfigResponse{}),
		answerWith(api.GetStore, &api.StoreStatus{}), answerWith(api.ReadStore, &api.ReadStoreResponse{}), answerWith(api.RepairStore, &api.RepairStoreResponse{}),
		answerWith(api.ExplainPlan, &api.ExplainPlanResponse{}), answerWith(api.DiffPlans, &api.DiffPlansResponse{}), answerWith(api.ImportLab, &api.ImportLabResponse{}),
	}
}

// answerWith returns the answer of a method that is always the same.
func answerWith[Req, Resp any](m api.Method[Req, Resp], resp *Resp) api.Answer {
	return api.AnswerBy(m, func(context.Context, *Req) (*Resp, error) { return resp, nil })
}

// run runs the gateway in all modes on a free port of the loopback.
func runGateway(t *testing.T, body func(t *testing.T, h *wefttest.Harness, address string)) {
	wefttest.Run(t, Spec(Process{Version: "1.2.3", Started: time.Unix(0, 0), Node: func() Node { return fakeNode{} }}),
		func(t *testing.T, h *wefttest.Harness) {
			address, err := freeport.Loopback()
			if err != nil {
				t.Fatal(err)
			}
			h.Configure("listen: " + address)
			body(t, h, address)
		})
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// methodsOf calls f for every method of the .proto files.
func methodsOf(f func(protoreflect.MethodDescriptor)) (n int) {
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			if s := file.Services().Get(i); s.Name() == "Apps" || api.OnMachine(s) {
				continue // apps attach to workers, and the others are processes of a machine
			}
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				f(methods.Get(j))
				n++
			}
		}
		return true
	})
	return n
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// Every method of the .proto files is served over gRPC by the method of the
// same name, except those that are for services only.
func TestEveryMethodIsServed(t *testing.T) {
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		calls := fakeAll(h)
		h.Start()
		conn := dial(t, address)
		n := methodsOf(func(m protoreflect.MethodDescriptor) {
			full := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
			err := conn.Invoke(t.Context(), full, newMessage(t, m.Input()), newMessage(t, m.Output()))
			switch method := api.MethodName(m); {
			case strings.HasPrefix(method, "gateway."): // an empty request need not be right
				if status.Code(err) == codes.Unimplemented {
					t.Errorf("%s: %v", full, err)
				}
			case api.RulesOf(method).GetRole() == api.Role_ROLE_UNSPECIFIED:
				if status.Code(err) != codes.Unimplemented {
					t.Errorf("%s: got %v, want Unimplemented: it is for services only", full, err)
				}
			default:
				if got := calls.take(); err != nil || got != api.MethodName(m) {
					t.Errorf("%s: calls %q, error %v; want %q", full, got, err, api.MethodName(m))
				}
			}
		})
		if n < 23 {
			t.Errorf("%d methods found in the .proto files; want 23 or more", n)
		}
	})
}

// Every path of the published OpenAPI leads to the method that it names, and
// every method that clients may call has one.
func TestEveryPathIsServed(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		}
	}
	document, err := api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		calls := fakeAll(h)
		h.Start()
		seen := map[string]bool{}
		for path, verbs := range doc.Paths {
			for verb, op := range verbs {
				service, method, _ := strings.Cut(op.OperationID, "_")
				if slices.ContainsFunc(api.MachineServices(), func(s protoreflect.ServiceDescriptor) bool { return string(s.Name()) == service }) {
					continue // passed on, if there is such a process
				}
				want := strings.ToLower(service) + "." + strings.TrimRight(method, "0123456789")
				seen[want] = true
				sample := strings.NewReplacer("{dpid}", "1", "{address}", "fd00::1", "{src}", "1", "{dst}", "2", "{port}", "1").Replace(path)
				req, _ := http.NewRequest(strings.ToUpper(verb), "http://"+address+sample, nil)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				got := calls.take()
				if strings.HasPrefix(want, "gateway.") && resp.StatusCode == http.StatusBadRequest {
					continue // an empty request need not be right
				}
				if resp.StatusCode != http.StatusOK || got != want && !strings.HasPrefix(want, "gateway.") {
					t.Errorf("%s %s: %s, calls %q; want 200 and %q", verb, path, resp.Status, got, want)
				}
			}
		}
		methodsOf(func(m protoreflect.MethodDescriptor) {
			if !seen[api.MethodName(m)] && api.RulesOf(api.MethodName(m)).GetRole() != api.Role_ROLE_UNSPECIFIED {
				t.Errorf("%s has no path in api/http.yaml", api.MethodName(m))
			}
		})
	})
}

func TestInfo(t *testing.T) {
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		h.Start()
		info, err := api.NewGatewayClient(dial(t, address)).GetInfo(t.Context(), &api.GetInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if info.Version != "1.2.3" || info.Started != "1970-01-01T00:00:00Z" || len(info.Pipeline) != 1 {
			t.Errorf("info: %v", info)
		}
		found := false
		for _, s := range info.Services {
			if s.Name == "gateway" {
				found = s.State == "ready" && len(s.Serves) >= 4 && len(s.Calls) >= 21 && len(s.Subscribes) >= 11
			}
		}
		if !found {
			t.Errorf("services: %v", info.Services)
		}
	})
}

// The kind of an error and its words cross both protocols.
func TestErrorsKeepTheirKind(t *testing.T) {
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		wefttest.Fake(h, api.FindHost, func(_ context.Context, r *api.FindHostRequest) (*api.Host, error) {
			return nil, api.Errorf(codes.NotFound, "host %s: not known", r.Address)
		})
		h.Start()
		_, err := api.NewHostsClient(dial(t, address)).FindHost(t.Context(), &api.FindHostRequest{Address: "10.0.0.9"})
		if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != "host 10.0.0.9: not known" {
			t.Errorf("gRPC: %v", err)
		}
		got, body := get(t, "http://"+address+"/v1/hosts/10.0.0.9")
		if want := `{"code":5,"message":"host 10.0.0.9: not known"}`; got.StatusCode != http.StatusNotFound || strings.TrimSpace(body) != want {
			t.Errorf("HTTP: %s %s", got.Status, body)
		}
		if n := h.Metric("failed_calls_total", "kind", "NotFound"); n != 2 {
			t.Errorf("failed_calls_total %v; want 2", n)
		}
	})
}

// Events of every subject reach a client that asks for them, and only those.
func TestEvents(t *testing.T) {
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		h.Start()
		all := subscribe(t, address, "")
		links := subscribe(t, address, "discovery")
		wait(t, func() bool { return h.Metric("event_clients") == 2 })
		wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: "02:00:00:00:00:01"}})
		wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Cause: "probe"})
		for _, want := range []string{`"subject":"hosts.HostChanged","event":{"host":{"mac":"02:00:00:00:00:01"`, `"subject":"discovery.LinkChanged"`} {
			if got := read(t, all); !strings.Contains(got, want) {
				t.Errorf("got %s; want it to hold %s", got, want)
			}
		}
		got := read(t, links)
		var e struct {
			Time    time.Time
			Subject string
			Event   struct{ Cause string }
		}
		if err := json.Unmarshal([]byte(got), &e); err != nil || e.Subject != "discovery.LinkChanged" || e.Event.Cause != "probe" || time.Since(e.Time).Abs() > time.Minute {
			t.Errorf("got %s (%v)", got, err)
		}
	})
}

// What is wrong in the configuration keeps the gateway from starting.
func TestStartErrors(t *testing.T) {
	for config, want := range map[string]string{
		"listen: 0.0.0.0:0": "is not a loopback address",
		"listen: nonsense":  "want HOST:PORT",
		"token: short":      "want at least 16",
		"{token: 0123456789abcdef, token_file: /x}": "set one of them",
		"token_file: /nowhere/token":                "token_file",
		"event_queue: 0":                            "want 1 to",
	} {
		wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
			h.Configure(config)
			if err := h.StartError(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v; want it to say %q", config, err, want)
			}
		})
	}
}
