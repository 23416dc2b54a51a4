package port_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	googlegrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/port"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/transporttest"
	"github.com/weft-sdn/weft/transport/ws"
)

// through dials with a transport and listens with a port.
type through struct {
	transport.Transport
	config port.Config
}

func (t through) Listen(address string, h transport.Handler) (transport.Listener, error) {
	c := t.config
	c.Handler = h
	p, err := port.Listen(address, c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// transports returns one of each.
func transports(c *tls.Config) map[string]transport.Transport {
	return map[string]transport.Transport{"grpc": grpc.New(c), "ws": ws.New(c), "rest": rest.New(c)}
}

func TestTransports(t *testing.T) {
	for name, tr := range transports(nil) {
		t.Run(name, func(t *testing.T) {
			transporttest.Test(t, func(*testing.T) (transport.Transport, string) { return through{tr, port.Config{}}, "127.0.0.1:0" })
		})
	}
}

func TestTransportsTLS(t *testing.T) {
	c := transporttest.TLS(t)
	for name, tr := range transports(c) {
		t.Run(name, func(t *testing.T) {
			transporttest.Test(t, func(*testing.T) (transport.Transport, string) {
				return through{tr, port.Config{TLS: c}}, "127.0.0.1:0"
			})
		})
	}
}

// function is a transport.Handler of a function.
type function func(ctx context.Context, method string, req []byte) ([]byte, error)

func (f function) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	return f(ctx, method, req)
}

// listen serves a port until the test ends.
func listen(t *testing.T, c port.Config) *port.Port {
	t.Helper()
	p, err := port.Listen("127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPeer(t *testing.T) {
	for _, w := range []struct {
		name string
		tls  *tls.Config
		want string
	}{{"mutual TLS", transporttest.TLS(t), transporttest.Identity}, {"plain", nil, ""}} {
		p := listen(t, port.Config{TLS: w.tls, Handler: function(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			return []byte(strings.Join(transport.Peer(ctx), " ")), nil
		})})
		for name, tr := range transports(w.tls) {
			c, err := tr.Dial(t.Context(), p.Address())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Call(t.Context(), "m", nil); err != nil || string(got) != w.want {
				t.Errorf("%s, %s: call from %q, %v; want %q", w.name, name, got, err, w.want)
			}
			_ = c.Close() // of no further use
		}
	}
}

func TestRefusals(t *testing.T) {
	if _, err := port.Listen("0.0.0.0:0", port.Config{}); err == nil || !strings.Contains(err.Error(), "give certificates (weft certs) or listen on 127.0.0.1") {
		t.Errorf("listening to everybody without TLS: %v", err)
	}
	c := transporttest.TLS(t)
	p := listen(t, port.Config{TLS: c, Handler: echo{}})
	nobody := c.Clone()
	nobody.Certificates = nil
	for name, own := range map[string]*tls.Config{"without a certificate": nobody, "of another authority": transporttest.TLS(t), "without TLS": nil} {
		for kind, tr := range transports(own) {
			_, err := tr.Dial(t.Context(), p.Address())
			var e *transport.Error
			if !errors.As(err, &e) || e.Code != transport.Unavailable {
				t.Errorf("%s, %s: error %v, want Unavailable", name, kind, err)
			}
		}
	}
}

func TestPlainHTTP(t *testing.T) {
	c := transporttest.TLS(t)
	for _, own := range []*tls.Config{nil, c} {
		p := listen(t, port.Config{
			TLS: own,
			Handler: function(func(ctx context.Context, method string, req []byte) ([]byte, error) {
				if method == "hosts.Wait" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if method != "hosts.FindHost" {
					return nil, &transport.Error{Code: 5, Text: "no method " + method}
				}
				return bytes.ToUpper(req), nil
			}),
			HTTP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }),
		})
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: own, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		scheme := "http://"
		if own != nil {
			scheme = "https://"
		}
		for _, w := range []struct {
			method, path, timeout string
			status                int
			body, code            string
		}{
			{"POST", "/weft/call/hosts.FindHost", "1s", 200, "BODY", ""},
			{"POST", "/weft/call/hosts.Nothing", "", 404, "no method hosts.Nothing", "5"},
			{"POST", "/weft/call/hosts.Wait", "10ms", 504, "context deadline exceeded", "4"},
			{"POST", "/weft/call/hosts.Wait", "soon", 400, "header Weft-Timeout \"soon\": want a duration such as 50ms or 1.5s\n", ""},
			{"GET", "/weft/call/hosts.FindHost", "", 405, "want POST\n", ""},
			{"GET", "/weft/ping", "", 204, "", ""},
			{"GET", "/metrics", "", 200, "metrics", ""},
			{"GET", "/weft/link", "", 426, "WebSocket protocol violation: Connection header \"\" does not contain Upgrade\n", ""},
		} {
			r, err := http.NewRequestWithContext(t.Context(), w.method, scheme+p.Address()+w.path, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			if w.timeout != "" {
				r.Header.Set(rest.TimeoutHeader, w.timeout)
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // read to its end
			if err != nil || resp.StatusCode != w.status || string(body) != w.body || resp.Header.Get(rest.CodeHeader) != w.code {
				t.Errorf("%s %s: %s %q code %q, %v; want %d %q code %q", w.method, w.path, resp.Status, body, resp.Header.Get(rest.CodeHeader), err, w.status, w.body, w.code)
			}
		}
	}
}

// TestPlainGRPC calls with the client that gRPC itself has.
func TestPlainGRPC(t *testing.T) {
	c := transporttest.TLS(t)
	for _, own := range []*tls.Config{nil, c} {
		p := listen(t, port.Config{
			TLS: own,
			Handler: function(func(_ context.Context, method string, req []byte) ([]byte, error) {
				if method != "hosts.FindHost" {
					return nil, &transport.Error{Code: 5, Text: "no method " + method}
				}
				return req, nil
			}),
			GRPC: func(s *googlegrpc.Server) { healthpb.RegisterHealthServer(s, health.NewServer()) },
		})
		creds := insecure.NewCredentials()
		if own != nil {
			creds = credentials.NewTLS(own)
		}
		cc, err := googlegrpc.NewClient(p.Address(), googlegrpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		for _, path := range []string{"/weft/hosts.FindHost", "/weft.v1.Hosts/FindHost"} {
			var got wrapperspb.StringValue
			if err := cc.Invoke(t.Context(), path, wrapperspb.String("h1"), &got); err != nil || got.Value != "h1" {
				t.Errorf("%s: %q, %v", path, got.Value, err)
			}
		}
		if err := cc.Invoke(t.Context(), "/weft.v1.Hosts/Nothing", &wrapperspb.StringValue{}, &wrapperspb.StringValue{}); status.Code(err) != codes.NotFound {
			t.Errorf("error %v, want NotFound", err)
		}
		if r, err := healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("a registered service: %v, %v", r, err)
		}
	}
}

func TestShutdown(t *testing.T) {
	for name, tr := range transports(nil) {
		t.Run(name, func(t *testing.T) {
			started, release := make(chan struct{}, 1), make(chan struct{})
			p := listen(t, port.Config{Handler: function(func(context.Context, string, []byte) ([]byte, error) {
				started <- struct{}{}
				<-release
				return []byte("done"), nil
			})})
			c, err := tr.Dial(t.Context(), p.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			answered := make(chan error, 1)
			go func() {
				resp, err := c.Call(t.Context(), "m", nil)
				if err == nil && string(resp) != "done" {
					err = errors.New("another answer: " + string(resp))
				}
				answered <- err
			}()
			<-started
			down := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
				defer cancel()
				down <- p.Shutdown(ctx)
			}()
			for { // until it refuses
				conn, err := net.Dial("tcp", p.Address())
				if err != nil {
					break
				}
				_ = conn.Close() // it was still there
			}
			close(release)
			if err := <-answered; err != nil {
				t.Errorf("the call under way: %v", err)
			}
			if err := <-down; err != nil {
				t.Error(err)
			}
		})
	}
}
