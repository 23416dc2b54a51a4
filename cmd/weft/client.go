package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"weft/api"
)

const defaultServer = "http://127.0.0.1:8181"

// remote is the controller that a command talks to: --server and --token.
type remote struct {
	server  string
	token   string
	timeout time.Duration
}

// flags adds the flags to a command and those below it.
func (r *remote) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&r.server, "server", "", "URL of the controller (default WEFT_SERVER, or "+defaultServer+")")
	f.StringVar(&r.token, "token", "", "token of the controller (default WEFT_TOKEN)")
	f.DurationVar(&r.timeout, "timeout", 30*time.Second, "how long to wait for an answer")
}

// address returns the controller's URL, checked.
func (r *remote) address() (*url.URL, error) {
	server := r.server
	if server == "" {
		server = os.Getenv("WEFT_SERVER")
	}
	if server == "" {
		server = defaultServer
	}
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || (u.Path != "" && u.Path != "/") {
		return nil, fmt.Errorf("--server %q: want a URL such as %s", server, defaultServer)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return u, nil
}

// secret returns the token.
func (r *remote) secret() string {
	if r.token != "" {
		return r.token
	}
	return os.Getenv("WEFT_TOKEN")
}

// absent says that nobody answers at the controller's address.
func absent(u *url.URL, cause error) error {
	if op := (*net.OpError)(nil); errors.As(cause, &op) {
		cause = op.Err
	}
	return fmt.Errorf("no controller answers at %s (%w); start one with `weft up`, or name another with --server or WEFT_SERVER", u, cause)
}

// controller is a connection to a controller.
type controller struct {
	api.GatewayClient
	api.SouthboundClient
	api.DiscoveryClient
	api.HostsClient
	api.PathsClient
	api.ForwardingClient
	api.FlowrulesClient
	api.StatsClient
	api.QosClient
	api.HeartbeatClient
	ctx context.Context // of the command's calls
}

// dial returns a connection, and what ends it.
func (r *remote) dial(cmd *cobra.Command) (*controller, func(), error) {
	u, err := r.address()
	if err != nil {
		return nil, nil, wrongly(cmd, "%v", err)
	}
	var unreachable atomic.Pointer[error]
	creds := insecure.NewCredentials()
	if u.Scheme == "https" {
		creds = credentials.NewTLS(&tls.Config{ServerName: u.Hostname()})
	}
	conn, err := grpc.NewClient("passthrough:///"+u.Host,
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent("weft"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				unreachable.Store(&err)
			}
			return conn, err
		}),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if token := r.secret(); token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
			}
			err := invoke(ctx, method, req, reply, cc, opts...)
			if cause := unreachable.Load(); cause != nil && status.Code(err) == codes.Unavailable {
				return absent(u, *cause)
			}
			return said(err)
		}))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", u, err)
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, r.timeout)
	return &controller{
		api.NewGatewayClient(conn), api.NewSouthboundClient(conn), api.NewDiscoveryClient(conn), api.NewHostsClient(conn),
		api.NewPathsClient(conn), api.NewForwardingClient(conn), api.NewFlowrulesClient(conn), api.NewStatsClient(conn), api.NewQosClient(conn), api.NewHeartbeatClient(conn), ctx,
	}, func() { cancel(); conn.Close() }, nil
}

// remoteError is an error that the controller has answered.
type remoteError struct {
	kind codes.Code
	text string
}

func (e *remoteError) Error() string { return e.text }

// said returns the controller's own words.
func said(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	return &remoteError{s.Code(), s.Message()}
}

// header returns what a request that is not of gRPC carries.
func (r *remote) header() http.Header {
	h := http.Header{}
	if token := r.secret(); token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}
