package machineservice

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/internal/testwait"
)

func TestServe(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "deep", "s.sock")
	ctx, stop := context.WithCancel(t.Context())
	s := Service{
		Socket: socket,
		Streams: map[Route]runtime.HandlerFunc{
			{"GET", "/v1/x/{name}"}: func(w http.ResponseWriter, r *http.Request, fields map[string]string) {
				io.WriteString(w, fields["name"]+" for "+CallerOf(r.Context()).Name+" as "+CallerOf(r.Context()).Role)
			},
			{"GET", "/v1/panic"}: func(http.ResponseWriter, *http.Request, map[string]string) { panic("oh") },
			{"GET", "/v1/late"}: func(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
				Refuse(w, status.Error(codes.ResourceExhausted, "too many"))
			},
		},
		Log: slog.New(slog.DiscardHandler),
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	testwait.Until(t, "the service listens", func() bool {
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	for _, test := range []struct {
		path string
		code int
		text string
	}{
		{"/v1/x/a", 200, "a for alice as read"}, {"/v1/panic", 500, "panic in GET /v1/panic"},
		{"/v1/late", 429, `{"code":8,"message":"too many"}`}, {"/v1/none", 501, "/v1/none"},
	} {
		req, err := http.NewRequest("GET", "http://s"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(CallerHeader, "alice")
		req.Header.Set(RoleHeader, "read")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != test.code || !strings.Contains(string(body), test.text) {
			t.Errorf("%s: %s %s %v; want %d %s", test.path, resp.Status, body, err, test.code, test.text)
		}
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info.Mode(), err)
	}
	client.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}

// A group may be a number that has no name here.
func TestGroup(t *testing.T) {
	own := strconv.Itoa(os.Getegid())
	for group, right := range map[string]bool{own: true, "": true, "-1": false, "no such group": false} {
		socket := filepath.Join(t.TempDir(), "s.sock")
		l, err := Service{Socket: socket, Group: group}.listen()
		if (err == nil) != right {
			t.Errorf("group %q: %v", group, err)
		}
		if err != nil {
			continue
		}
		want := os.FileMode(0o660)
		if group == "" {
			want = 0o600
		}
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != want {
			t.Errorf("group %q: %v %v; want %v", group, info.Mode(), err, want)
		}
		l.Close()
	}
}
