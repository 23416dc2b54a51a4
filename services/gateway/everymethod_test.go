package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/testwait"
)

// machineMethods are the methods that services of the machine answer.
func machineMethods() (list []protoreflect.MethodDescriptor) {
	for _, d := range api.MachineServices() {
		for i := range d.Methods().Len() {
			list = append(list, d.Methods().Get(i))
		}
	}
	return list
}

// serveMachine runs a service of the machine that answers everything with {}.
func serveMachine(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "machine.sock")
	streams := map[machineservice.Route]machineservice.StreamHandler{}
	for _, m := range machineMethods() {
		for _, route := range api.RulesOf(api.MethodName(m)).Routes() {
			streams[machineservice.Route{Verb: route.Verb, Path: route.Path}] = func(w http.ResponseWriter, _ *http.Request, _ map[string]string) { io.WriteString(w, "{}") }
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	service := machineservice.Service{Socket: socket, Streams: streams, Log: slog.New(slog.DiscardHandler)}
	go func() { done <- service.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// TestEveryMethod calls each method of the .proto files, over JSON and gRPC, with
// each role: it is let in from the role on that its file names, and leaves a line in
// the audit log, whether let in or not, if it changes something, and none if not.
func TestEveryMethod(t *testing.T) {
	socket := serveMachine(t)
	s := serve(t, func(c *Config) { c.OpenLoopback, c.Lab, c.Experiments = false, socket, socket })
	s.calls.audit = &audit{auditlog.Log{Dir: t.TempDir(), Name: "x", Size: 64 << 20, Files: 2, Failed: func(err error) { t.Error(err) }}}
	if err := s.calls.audit.Open(); err != nil {
		t.Fatal(err)
	}
	defer s.calls.audit.Close()
	type method struct {
		name    string
		machine bool
		reply   func() (req, resp any)
	}
	var all []method
	for _, m := range api.Methods() {
		all = append(all, method{name: m.MethodName(), reply: m.NewMessages})
		if api.RulesOf(m.MethodName()).GetRole() == api.Role_ROLE_UNSPECIFIED {
			continue
		}
		s.calls.rpcs[fullName(m.MethodName())] = api.Answer{
			Method: m.MethodName(), New: func() any { req, _ := m.NewMessages(); return req },
			Call: func(context.Context, any) (any, error) { _, resp := m.NewMessages(); return resp, nil },
		}
	}
	for _, m := range machineMethods() {
		all = append(all, method{name: api.MethodName(m), machine: true})
	}
	field := regexp.MustCompile(`\{[^}]*\}`)
	conn := dial(t, s.address)
	tokens := map[role]string{}
	for r := roleNode; r <= roleAdmin; r++ {
		tokens[r] = s.made(t, r.String(), r.String())
	}
	lines := func(name string) int {
		t.Helper()
		m, err := s.calls.audit.list(t.Context(), &api.ListAuditRequest{Method: name, Limit: auditMost})
		if err != nil {
			t.Fatal(err)
		}
		return len(m.Records)
	}
	for _, m := range all {
		rules := api.RulesOf(m.name)
		calls := 0
		for r := roleNode; r <= roleAdmin; r++ {
			allowed := rules.GetRole() != api.Role_ROLE_UNSPECIFIED && r >= needs(m.name) && (needs(m.name) != roleNode || r != roleRead)
			for _, route := range rules.Routes() {
				path := field.ReplaceAllString(route.Path, "1")
				if m.name == api.WatchPackets.Name && allowed {
					resp, _ := s.watching(t, "{}", tokens[r])
					if resp.Body.Close(); resp.StatusCode != http.StatusOK {
						t.Errorf("%s as %v: %s", route, r, resp.Status)
					}
					continue
				}
				body := "{}"
				if route.Verb == http.MethodGet {
					body = ""
				}
				calls++
				resp, text := s.request(t, route.Verb, path, body, "Authorization", "Bearer "+tokens[r])
				if want := map[bool]int{true: 200, false: 403}[allowed]; resp.StatusCode != want {
					t.Errorf("%s, %s as %v: %s %.200s; want %d", m.name, route, r, resp.Status, text, want)
				}
			}
			if m.machine || m.reply == nil || m.name == api.WatchPackets.Name {
				continue
			}
			req, resp := m.reply()
			if _, is := req.(protoreflect.ProtoMessage); !is {
				continue // between services only
			}
			calls++
			ctx, cancel := context.WithTimeout(bearing(t.Context(), tokens[r]), testwait.Limit)
			err := conn.Invoke(ctx, fullName(m.name), req, resp)
			cancel()
			want := codes.OK
			switch {
			case rules.GetRole() == api.Role_ROLE_UNSPECIFIED:
				want = codes.Unimplemented
			case !allowed:
				want = codes.PermissionDenied
			}
			if status.Code(err) != want {
				t.Errorf("%s over gRPC as %v: %v; want %v", m.name, r, err, want)
			}
		}
		want := 0
		if rules.GetChanges() {
			want = calls
		}
		got := lines(m.name)
		for end := time.Now().Add(testwait.Limit); m.machine && got < want && time.Now().Before(end); got = lines(m.name) {
			time.Sleep(time.Millisecond) // the line comes behind the answer
		}
		if got != want {
			t.Errorf("%s: %d calls, changes %v: %d lines in the audit log", m.name, calls, rules.GetChanges(), got)
		}
	}
}
