package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// TestNotHTTP2: a server that answers nothing, and one that wants TLS, give different errors.
func TestNotHTTP2(t *testing.T) {
	for _, c := range []struct{ what, answer, want string }{
		{"nothing", "", "answers nothing"},
		{"a TLS alert, and the end", "\x15\x03\x01\x00\x02\x02\x16", "without TLS"},
		{"HTTP/1.1", "HTTP/1.1 400 Bad Request\r\n\r\n", "without TLS"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if c.answer == "" {
					defer conn.Close()
					continue
				}
				_, _ = io.ReadFull(conn, make([]byte, 5)) // and what is left unread ends the connection, perhaps before its answer
				_, _ = io.WriteString(conn, c.answer)
				conn.Close()
			}
		}()
		u := &url.URL{Scheme: "http", Host: l.Addr().String()}
		conn, err := grpc.NewClient("passthrough:///"+u.Host, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 100 * time.Millisecond}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		err = errors.New("none")
		for range 100 { // gRPC may report an attempt before that
			err = conn.Invoke(context.Background(), "/x.Y/Z", nil, nil)
			if notHTTP2(u, status.Convert(err).Message()) != nil {
				break
			}
		}
		if got := notHTTP2(u, status.Convert(err).Message()); got == nil || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: %v, of %v; want %s", c.what, got, err, c.want)
		}
	}
}
