package ryu

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/wefttest"
)

// as returns a client that another user of the machine runs; root may.
func as(t *testing.T, uid int) *http.Client {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to become somebody else; run the tests as root")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				err = errno
				return
			}
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
		}()
		<-done
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestOtherUsersOnlyRead: other users of the machine change nothing by Ryu's
// REST, unless the configuration names them, or they bring the token, or all may.
func TestOtherUsersOnlyRead(t *testing.T) {
	const stranger, named = 65533, 65532
	const token = "0123456789abcdef0123456789abcdef"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := "/v1.0/conf/switches/0000000000000005/x"
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, fmt.Sprintf("users: [\"%d\"]\ntoken_file: %s\n", named, file))
		h.Start()
		for _, x := range []struct {
			what         string
			client       *http.Client
			method, path string
			status       int
			header       []string
		}{
			{"own", http.DefaultClient, "PUT", conf, 201, nil},
			{"other reads", as(t, stranger), "GET", conf, 200, nil},
			{"other changes", as(t, stranger), "PUT", conf, 403, nil},
			{"other deletes", as(t, stranger), "DELETE", conf, 403, nil},
			{"named", as(t, named), "PUT", conf, 201, nil},
			{"with the token", as(t, stranger), "PUT", conf, 201, []string{"Authorization", "Bearer " + token}},
			{"with a wrong one", http.DefaultClient, "PUT", conf, 401, []string{"Authorization", "Bearer x"}},
			{"through a proxy", http.DefaultClient, "PUT", conf, 401, []string{"X-Real-Ip", "192.0.2.1"}},
		} {
			req, err := http.NewRequest(x.method, "http://"+c.address+x.path, strings.NewReader("1"))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(x.header); i += 2 {
				req.Header.Set(x.header[i], x.header[i+1])
			}
			resp, err := x.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != x.status {
				t.Errorf("%s: %d; want %d", x.what, resp.StatusCode, x.status)
			}
		}
		events, _, err := websocket.Dial(t.Context(), "ws://"+c.address+eventsPath, &websocket.DialOptions{HTTPClient: as(t, stranger)})
		if err != nil {
			t.Errorf("events: %v", err)
		} else {
			events.CloseNow()
		}
	})
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "exposed: true\n")
		h.Start()
		req, err := http.NewRequest("PUT", "http://"+c.address+conf, strings.NewReader("1"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := as(t, stranger).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 201 {
			t.Errorf("exposed: %d", resp.StatusCode)
		}
	})
}
