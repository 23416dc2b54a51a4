package jsonhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
)

func methodOf(service, name string) protoreflect.MethodDescriptor {
	for _, s := range append(api.Services(), api.MachineServices()...) {
		if string(s.Name()) == service {
			return s.Methods().ByName(protoreflect.Name(name))
		}
	}
	return nil
}

// TestRead: what a request over HTTP asks for, from its path, query and body.
func TestRead(t *testing.T) {
	mux := runtime.NewServeMux(runtime.WithDisablePathLengthFallback(), runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{}))
	var asked proto.Message
	echo := func(_ context.Context, req proto.Message) (proto.Message, error) {
		asked = req
		return req, nil
	}
	for _, s := range api.Services() {
		for i := range s.Methods().Len() {
			if err := Register(mux, s.Methods().Get(i), echo); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []struct {
		what, verb, path, body string
		want                   string // of the request; with status, a part of the error
		status                 int
	}{
		{"no field", "GET", "/v1/balancer/vips", "", `{}`, 200},
		{"fields of the path", "DELETE", "/v1/balancer/vips/a/members/10.0.0.1%3A80", "", `{"vip":"a","address":"10.0.0.1:80"}`, 200},
		{"a field as the body", "POST", "/v1/balancer/vips", `{"name":"a"}`, `{"vip":{"name":"a"}}`, 200},
		{"a field as the body, of a path with a field", "POST", "/v1/balancer/vips/a/members", `{"address":"10.0.0.1"}`, `{"vip":"a","member":{"address":"10.0.0.1"}}`, 200},
		{"no body", "POST", "/v1/balancer/vips", "", `{}`, 200},
		{"the path before the body", "POST", "/v1/balancer/vips/a/members/1:drain", `{"vip":"b"}`, `{"vip":"a","address":"1"}`, 200},
		{"a query beside a whole body is nothing", "POST", "/v1/links/set?a_dpid=1", `{}`, `{}`, 200},
		{"a query does not change the path's field", "DELETE", "/v1/balancer/vips/a?name=b", "", `{"name":"a"}`, 200},
		{"no JSON", "POST", "/v1/balancer/vips", `{`, "unexpected", 400},
		{"an unknown field", "POST", "/v1/balancer/vips", `{"nmae":"a"}`, "nmae", 400},
		{"a list as a message", "POST", "/v1/balancer/vips", `[]`, "unexpected", 400},
		{"another verb", "PUT", "/v1/balancer/vips", `{}`, "", 501},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(c.verb, c.path, strings.NewReader(c.body)))
		if got := w.Body.String(); w.Code != c.status || c.status != http.StatusOK && !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s; want %d %s", c.what, w.Code, got, c.status, c.want)
			continue
		}
		if c.status != http.StatusOK {
			continue
		}
		want := asked.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal([]byte(c.want), want); err != nil || !proto.Equal(asked, want) {
			t.Errorf("%s: %v; want %v, %v", c.what, asked, want, err)
		}
	}
}

// TestNoSuchBody: a body must be a message in the request.
func TestNoSuchBody(t *testing.T) {
	for body, m := range map[string]protoreflect.MethodDescriptor{"nosuch": methodOf("Balancer", "SetVip"), "name": methodOf("Balancer", "DeleteVip")} {
		if _, err := newRoute(m, api.HTTPRoute{Verb: "POST", Path: "/v1/x", Body: body}); err == nil || !strings.Contains(err.Error(), "no message "+body) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// BenchmarkRequest is what a request costs beside its call: the route, the path, the body
// and the answer.
func BenchmarkRequest(b *testing.B) {
	mux := runtime.NewServeMux()
	answer := &api.Vip{Name: "web"}
	call := func(context.Context, proto.Message) (proto.Message, error) { return answer, nil }
	for _, name := range []string{"ListVips", "SetMember"} {
		if err := Register(mux, methodOf("Balancer", name), call); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct{ verb, path, body string }{{"GET", "/v1/balancer/vips", ""}, {"POST", "/v1/balancer/vips/web/members", `{"address":"10.0.0.1","port":80}`}} {
		b.Run(c.verb, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if mux.ServeHTTP(w, httptest.NewRequest(c.verb, c.path, strings.NewReader(c.body))); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

// labs answers one method of the lab's service.
type labs struct{ api.UnimplementedLabServer }

func (labs) GetLabService(context.Context, *api.GetLabServiceRequest) (*api.LabServiceInfo, error) {
	return &api.LabServiceInfo{MostConsoles: 7}, nil
}

// TestRegisterServer: a server in this process is asked; what it does not answer is
// said so.
func TestRegisterServer(t *testing.T) {
	mux := runtime.NewServeMux()
	if err := RegisterServer(mux, &api.Lab_ServiceDesc, labs{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/v1/lab": 200, "/v1/lab/labs": 501} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s; want %d", path, w.Code, w.Body, want)
		}
		var is api.LabServiceInfo
		if err := protojson.Unmarshal(w.Body.Bytes(), &is); want == 200 && (err != nil || is.GetMostConsoles() != 7) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}
