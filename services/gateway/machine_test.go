package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/internal/machineservice"
)

// labOf is a lab service of the machine that answers who asked.
type labOf struct {
	api.UnimplementedLabServer
}

func (labOf) ListLabs(ctx context.Context, _ *api.ListLabsRequest) (*api.ListLabsResponse, error) {
	who := machineservice.CallerOf(ctx)
	return &api.ListLabsResponse{Labs: []*api.LabSummary{{Name: who.Name, State: who.Role}}}, nil
}

func (labOf) UpLab(_ context.Context, req *api.UpLabRequest) (*api.UpLabResponse, error) {
	if req.File == "" {
		return nil, status.Error(codes.InvalidArgument, "file: is empty")
	}
	return &api.UpLabResponse{Job: req.File}, nil
}

// serveLab runs a lab service at a socket.
func serveLab(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "lab.sock")
	ctx, stop := context.WithCancel(t.Context())
	service := machineservice.Service{
		Socket: socket,
		Methods: func(ctx context.Context, mux *runtime.ServeMux) error {
			return api.RegisterLabHandlerServer(ctx, mux, labOf{})
		},
		Streams: map[machineservice.Route]runtime.HandlerFunc{
			{Verb: "GET", Path: "/v1/lab/consoles/{console}"}: func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
				conn, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				defer conn.CloseNow()
				for {
					kind, text, err := conn.Read(r.Context())
					if err != nil || conn.Write(r.Context(), kind, text) != nil {
						return
					}
				}
			},
			{Verb: "GET", Path: "/v1/lab/labs/{lab}/capture"}: func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
				if r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
					io.WriteString(w, "a secret was passed on")
				}
				for range 3 {
					io.WriteString(w, "part ")
					_ = http.NewResponseController(w).Flush()
				}
			},
		},
		Log: slog.New(slog.DiscardHandler),
	}
	done := make(chan error, 1)
	go func() { done <- service.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for i := 0; ; i++ {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		if i > 1000 {
			t.Fatal("there is no socket")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestMachine(t *testing.T) {
	socket := serveLab(t)
	s := serve(t, func(c *Config) { c.OpenLoopback, c.Lab = false, socket })
	dir := t.TempDir()
	s.calls.audit = &audit{auditlog.Log{Dir: dir, Name: "x", Size: 1 << 20, Files: 2, Failed: func(err error) { t.Error(err) }}}
	if err := s.calls.audit.Open(); err != nil {
		t.Fatal(err)
	}
	defer s.calls.audit.Close()
	reads, rules := s.made(t, "reader", "read"), s.made(t, "boss", "admin")
	for _, test := range []struct {
		verb, path, body, token string
		code                    int
		text                    string
	}{
		{"GET", "/v1/lab/labs", "", reads, 200, `"name":"reader"`},
		{"GET", "/v1/lab/labs", "", "", 401, "a token is needed"},
		{"POST", "/v1/lab/labs:up", `{"file":"a"}`, reads, 403, "needs the role admin"},
		{"POST", "/v1/lab/labs:up", `{"file":"a"}`, rules, 200, `"job":"a"`},
		{"POST", "/v1/lab/labs:up", `{}`, rules, 400, "file: is empty"},
		{"POST", "/v1/lab/labs:up", strings.Repeat("x", maxBody+1), rules, 429, "send it in parts"},
		{"GET", "/v1/lab/labs/a/capture", "", rules, 200, "part part part"},
		{"GET", "/v1/lab/labs/a/capture", "", reads, 403, "needs the role admin"},
		{"GET", "/v1/lab/none", "", rules, 404, "there is no GET"},
		{"GET", "/v1/experiments", "", reads, 400, "gateway.experiments"},
	} {
		if test.path == "/v1/experiments" && len(api.MachineServices()) == 1 {
			continue
		}
		header := []string{"Authorization", "Bearer " + test.token}
		if test.token == "" {
			header = nil
		}
		resp, body := s.request(t, test.verb, test.path, test.body, header...)
		if resp.StatusCode != test.code || !strings.Contains(strings.ReplaceAll(body, `": "`, `":"`), test.text) || strings.Contains(body, "secret") {
			t.Errorf("%s %s: %s %.200s; want %d %s", test.verb, test.path, resp.Status, body, test.code, test.text)
		}
	}

	conn, _, err := websocket.Dial(t.Context(), "ws://"+s.address+"/v1/lab/consoles/1", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + rules}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageBinary, []byte("echo")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := conn.Read(t.Context()); err != nil || string(text) != "echo" {
		t.Errorf("through the WebSocket: %q %v", text, err)
	}
	conn.Close(websocket.StatusNormalClosure, "")

	got, err := s.calls.audit.list(t.Context(), &api.ListAuditRequest{Method: "lab.UpLab"})
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, r := range got.Records {
		outcomes = append(outcomes, r.Who+" "+r.Result)
	}
	if want := "reader PermissionDenied, boss OK, boss InvalidArgument, boss ResourceExhausted"; strings.Join(outcomes, ", ") != want {
		t.Errorf("audit: %v; want %s", outcomes, want)
	}
}

func TestMachineAway(t *testing.T) {
	s := serve(t, func(c *Config) { c.Lab = filepath.Join(t.TempDir(), "none.sock") })
	if resp, body := s.request(t, "GET", "/v1/lab/labs", ""); resp.StatusCode != 503 || !strings.Contains(body, "weft lab serve") {
		t.Errorf("%s %s", resp.Status, body)
	}
	s = serve(t, nil)
	if resp, body := s.request(t, "GET", "/v1/lab/labs", ""); resp.StatusCode != 400 || !strings.Contains(body, "gateway.lab names no socket") {
		t.Errorf("%s %s", resp.Status, body)
	}
}
