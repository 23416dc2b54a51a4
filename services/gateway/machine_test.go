package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/testwait"
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

// serveLab runs a lab service at a socket. It sends on ended when a console, or the
// capture of the lab endless, is over.
func serveLab(t *testing.T, ended chan<- string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "lab.sock")
	ctx, stop := context.WithCancel(t.Context())
	service := machineservice.Service{
		Socket: socket,
		API:    &api.Lab_ServiceDesc, Server: labOf{},
		Streams: map[machineservice.Route]machineservice.StreamHandler{
			{Verb: "GET", Path: "/v1/lab/consoles/{console}"}: func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
				conn, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				defer conn.CloseNow()
				defer func() { ended <- "console" }()
				for {
					kind, text, err := conn.Read(r.Context())
					if err != nil || conn.Write(r.Context(), kind, text) != nil {
						return
					}
				}
			},
			{Verb: "GET", Path: "/v1/lab/labs/{lab}/capture"}: func(w http.ResponseWriter, r *http.Request, fields map[string]string) {
				for block := make([]byte, 32<<10); fields["lab"] == "endless"; {
					if _, err := w.Write(block); err != nil {
						ended <- "capture"
						return
					}
				}
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
	testwait.Until(t, "the service listens", func() bool {
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	return socket
}

func TestMachine(t *testing.T) {
	socket := serveLab(t, make(chan string, 10))
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
		{"POST", "/v1/lab/labs:up", strings.Repeat("x", maxBody+1), rules, 413, "send it in parts"},
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
	// The line is there while the console is attached, and it is one when it is over.
	one := func() {
		t.Helper()
		got, err := s.calls.audit.list(t.Context(), &api.ListAuditRequest{Method: "lab.AttachLabConsole"})
		if err != nil || len(got.Records) != 1 || got.Records[0].Who != "boss" || got.Records[0].Result != "OK" {
			t.Errorf("audit of a console: %v, %v", got, err)
		}
	}
	one()
	conn.Close(websocket.StatusNormalClosure, "")
	one()

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

// TestMachineEndsWithToken: what a client has open with a service of the machine
// ends soon after its token, from a file or issued, and so does an answer that it
// does not take.
func TestMachineEndsWithToken(t *testing.T) {
	ended := make(chan string, 10)
	socket, file := serveLab(t, ended), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, func(c *Config) { c.Lab, c.TokenFile = socket, file })
	open := func(token string) func() error {
		t.Helper()
		header := http.Header{"Authorization": {"Bearer " + token}}
		conn, _, err := websocket.Dial(t.Context(), "ws://"+s.address+"/v1/lab/consoles/1", &websocket.DialOptions{HTTPHeader: header})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		return func() error {
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
			defer cancel()
			if err := conn.Write(ctx, websocket.MessageBinary, []byte("echo")); err != nil {
				return err
			}
			_, _, err := conn.Read(ctx)
			return err
		}
	}
	capture := func(token string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.address+"/v1/lab/labs/endless/capture", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		t.Cleanup(func() { resp.Body.Close() }) // nobody reads it
	}
	await := func(what ...string) {
		t.Helper()
		slices.Sort(what)
		var got []string
		for range what {
			select {
			case e := <-ended:
				got = append(got, e)
			case <-time.After(testwait.Limit):
				t.Fatalf("%v of %v have ended", got, what)
			}
		}
		if slices.Sort(got); !slices.Equal(got, what) {
			t.Errorf("%v have ended, want %v", got, what)
		}
	}
	first, second, byFile := open(s.made(t, "first", "admin")), open(s.made(t, "second", "admin")), open(token)
	capture("weft_token-of-first")
	if _, err := s.guard.ledger.revoke(t.Context(), &api.RevokeTokenRequest{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	await("console", "capture")
	if err := os.WriteFile(file, []byte("another-"+token), 0o600); err != nil {
		t.Fatal(err)
	}
	await("console")
	if first() == nil || byFile() == nil {
		t.Error("a console goes on after its token")
	}
	if err := second(); err != nil {
		t.Errorf("the console of another token: %v", err)
	}
	capture("weft_token-of-second")
	await("capture") // which nobody reads
}

func TestMachineAway(t *testing.T) {
	s := serve(t, func(c *Config) { c.Lab = filepath.Join(t.TempDir(), "none.sock") })
	if resp, body := s.request(t, "GET", "/v1/lab/labs", ""); resp.StatusCode != 503 || !strings.Contains(body, "weft lab serve") {
		t.Errorf("%s %s", resp.Status, body)
	}
	s = serve(t, nil)
	if resp, body := s.request(t, "GET", "/v1/lab/labs", ""); resp.StatusCode != 400 || !strings.Contains(body, "weft lab serve is not connected") {
		t.Errorf("%s %s", resp.Status, body)
	}
}
