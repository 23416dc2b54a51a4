package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
)

// stranger is a user of the machine who is neither root nor runs the tests.
const stranger = 65533

// dialAs returns what connects as another user; root may.
func dialAs(t *testing.T, uid int) func(ctx context.Context, network, address string) (net.Conn, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to become somebody else; run the tests as root")
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		done := make(chan result)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				done <- result{nil, errno}
				return
			}
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			done <- result{conn, err}
		}()
		r := <-done
		return r.conn, r.err
	}
}

// as returns a client that another user of the machine runs.
func as(t *testing.T, uid int) *http.Client {
	transport := &http.Transport{DialContext: dialAs(t, uid)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask makes a request and returns the status and the body.
func ask(t *testing.T, c *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestOtherUsersOnlyRead: over IPv4 and IPv6, by JSON, gRPC, events and metrics,
// other users of the machine read, and no more, unless the configuration names
// them or they bring a token.
func TestOtherUsersOnlyRead(t *testing.T) {
	const named = 65532
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		s := serve(t, func(c *Config) {
			c.Listen = listen
			c.Users = map[string]string{strconv.Itoa(named): "operate"}
		})
		at := "http://" + s.address
		token := s.made(t, "other", "operate")
		for _, x := range []struct {
			what         string
			client       *http.Client
			method, path string
			status       int
			header       []string
		}{
			{"own", http.DefaultClient, "POST", "/v1/flows", 200, nil},
			{"other reads", as(t, stranger), "GET", "/v1/hosts", 200, nil},
			{"other reads metrics", as(t, stranger), "GET", "/metrics", 200, nil},
			{"other changes", as(t, stranger), "POST", "/v1/flows", 403, nil},
			{"other reads secrets", as(t, stranger), "GET", "/v1/tokens", 403, nil},
			{"other with a token", as(t, stranger), "POST", "/v1/flows", 200, []string{"Authorization", "Bearer " + token}},
			{"other with a wrong one", as(t, stranger), "POST", "/v1/flows", 401, []string{"Authorization", "Bearer weft_wrong"}},
			{"named changes", as(t, named), "POST", "/v1/flows", 200, nil},
			{"named makes no token", as(t, named), "POST", "/v1/tokens", 403, nil},
			{"own through a proxy", http.DefaultClient, "POST", "/v1/flows", 401, []string{"X-Forwarded-For", "192.0.2.1"}},
			{"read through a proxy", http.DefaultClient, "GET", "/v1/hosts", 401, []string{"Via", "1.1 proxy"}},
		} {
			if got, text := ask(t, x.client, x.method, at+x.path, "{}", x.header...); got != x.status {
				t.Errorf("%s, %s: %d %s; want %d", listen, x.what, got, text, x.status)
			}
		}

		conn, err := grpc.NewClient("passthrough:///"+s.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dialAs(t, stranger)(ctx, "tcp", address)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := api.NewHostsClient(conn).ListHosts(t.Context(), &api.ListHostsRequest{}); err != nil {
			t.Errorf("%s: gRPC: %v", listen, err)
		}
		if _, err := api.NewFlowrulesClient(conn).AddFlows(t.Context(), &api.AddFlowsRequest{}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "gateway.users") {
			t.Errorf("%s: gRPC: %v", listen, err)
		}
		events, _, err := websocket.Dial(t.Context(), "ws://"+s.address+eventsPath, &websocket.DialOptions{HTTPClient: as(t, stranger)})
		if err != nil {
			t.Errorf("%s: events: %v", listen, err)
		} else {
			events.CloseNow()
		}
	}
}

// A user of this machine who guesses tokens keeps no other one from signing in.
func TestGuessesAreAUsersOwn(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback, c.WrongTokensPerMinute = false, 3 })
	url, right := "http://"+s.address+sessionPath, s.made(t, "alice", "read")
	guesser := as(t, stranger)
	for i := range 5 {
		want := map[bool]int{true: 401, false: 429}[i < 3]
		if got, text := ask(t, guesser, "POST", url, `{"token":"guess-guess-guess-`+strconv.Itoa(i)+`"}`); got != want || want == 429 && !strings.Contains(text, "user 65533") {
			t.Errorf("guess %d: %d %s, want %d", i, got, text, want)
		}
	}
	if got, text := ask(t, as(t, stranger-1), "POST", url, `{"token":"`+right+`"}`); got != 200 {
		t.Errorf("another user signs in: %d %s", got, text)
	}
}
