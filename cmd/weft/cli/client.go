package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/document"
)

// FirewallBatch is how many rules are sent at once: a request has a limit.
const FirewallBatch = 5000

const defaultServer = "http://127.0.0.1:8181"

// Remote is the controller that a command talks to: --server, --ca, --client-cert and --token.
type Remote struct {
	Server    string
	CA        string
	Cert      string
	token     string
	TokenFile string
	Timeout   time.Duration
}

// Flags adds the flags to a command and those below it.
func (r *Remote) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&r.Server, "server", "", "URL of the controller (default WEFT_SERVER, or "+defaultServer+")")
	f.StringVar(&r.CA, "ca", "", "file with the authority of the controller's certificate, for https (default WEFT_CA, or those of this machine)")
	f.StringVar(&r.Cert, "client-cert", "", "file with a certificate that says who calls, for https; its key is beside it, .key for .crt (default WEFT_CLIENT_CERT)")
	f.StringVar(&r.token, "token", "", "token of the controller; others on this machine can see it: better WEFT_TOKEN or --token-file")
	f.StringVar(&r.TokenFile, "token-file", "", "file with the token of the controller (default WEFT_TOKEN_FILE)")
	f.DurationVar(&r.Timeout, "timeout", 30*time.Second, "how long to wait for an answer")
}

// Address returns the controller's URL, checked.
func (r *Remote) Address() (*url.URL, error) {
	server := r.Server
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

// Absent says that nobody answers at the controller's address, or not in our
// language.
func Absent(u *url.URL, cause error) error {
	if text := misunderstood(u, cause); text != "" {
		return errors.New(text)
	}
	if op := (*net.OpError)(nil); errors.As(cause, &op) {
		cause = op.Err
	}
	return &AbsentError{fmt.Errorf("no controller answers at %s (%w); start one with `weft up`, or name another with --server or WEFT_SERVER", u, cause)}
}

// AbsentError is the error for a controller to which there is no connection.
type AbsentError struct{ err error }

func (e *AbsentError) Error() string { return e.err.Error() }

func (e *AbsentError) Unwrap() error { return e.err }

// Broken reports whether a call has failed because the connection to the controller
// could not be made, or broke before the answer: what became of the call is not known.
func Broken(err error) bool {
	remote, absent := (*RemoteError)(nil), (*AbsentError)(nil)
	return errors.As(err, &absent) || errors.As(err, &remote) && remote.Kind == codes.Unavailable
}

// Controller is a connection to a controller.
type Controller struct {
	api.Clients
	Ctx         context.Context // of the command's calls
	switchNames namesOf
}

// Dial returns a connection, and what ends it.
func (r *Remote) Dial(cmd *cobra.Command) (*Controller, func(), error) {
	u, err := r.Address()
	if err != nil {
		return nil, nil, Usagef(cmd, "%v", err)
	}
	token, err := r.secret()
	if err != nil {
		return nil, nil, err
	}
	var unreachable atomic.Pointer[error]
	creds, err := r.credentials(u, &unreachable)
	if err != nil {
		return nil, nil, err
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
			if token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
			}
			if Terminal(os.Stderr) && method != api.Gateway_TakeProfile_FullMethodName { // which says itself how far it is
				patience := time.AfterFunc(2*time.Second, func() {
					fmt.Fprintf(cmd.ErrOrStderr(), "waiting for the controller's answer, at most %v (--timeout)\n", r.Timeout)
				})
				defer patience.Stop()
			}
			call := func(ctx context.Context) error { return invoke(ctx, method, req, reply, cc, opts...) }
			if change := call; isChange(method) {
				call = func(ctx context.Context) error {
					return whileStored(ctx, change, func(ctx context.Context) error {
						return invoke(ctx, api.Gateway_GetStore_FullMethodName, &api.GetStoreRequest{}, &api.StoreStatus{}, cc)
					})
				}
			}
			err := call(ctx)
			if cause := unreachable.Load(); cause != nil && status.Code(err) == codes.Unavailable {
				return Absent(u, *cause)
			}
			if u.Scheme == "http" && status.Code(err) == codes.Unavailable && ctx.Err() == nil {
				if other := notHTTP2(u, status.Convert(err).Message()); other != nil {
					return other
				}
			}
			if late := Unanswered(ctx, status.Code(err), r.Timeout); late != nil {
				return late
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
	ctx, cancel := context.WithTimeout(parent, r.Timeout)
	c := &Controller{Clients: api.NewClients(conn), Ctx: ctx}
	c.switchNames = askNames(ctx, c.Clients)
	cmd.SetContext(context.WithValue(parent, namesKey{}, c.switchNames))
	done := func() { cancel(); conn.Close() }
	if err := c.resolveFlags(cmd); err != nil {
		done()
		return nil, nil, err
	}
	return c, done, nil
}

// RemoteError is an error that the controller has answered.
type RemoteError struct {
	Kind codes.Code
	Text string
}

func (e *RemoteError) Error() string { return e.Text }

// said returns the controller's own words.
func said(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	return &RemoteError{s.Code(), s.Message()}
}

// Header returns what a request that is not of gRPC carries.
func (r *Remote) Header() (http.Header, error) {
	h := http.Header{}
	token, err := r.secret()
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h, err
}

// Unless returns err unless it is of a kind.
func Unless(err error, kind codes.Code) error {
	if e := (*RemoteError)(nil); errors.As(err, &e) && e.Kind == kind {
		return nil
	}
	return err
}

// FileLimits are those of files with what is to be sent to a controller, which
// messages call what.
func FileLimits(what string) document.Limits {
	return document.Limits{What: what, Syntax: "YAML or JSON", Octets: 64 << 20, Lines: 4_000_000}
}

// notHTTP2 returns why a connection could not begin, from the text of gRPC's error; nil if
// it could.
func notHTTP2(u *url.URL, text string) error {
	switch {
	case strings.Contains(text, "server preface") && strings.Contains(text, "use of closed network connection"): // gRPC has waited, and closed it
		return fmt.Errorf("what listens at %s accepts connections and answers nothing: is the controller stopped, or overloaded?", u)
	case strings.Contains(text, "server preface"),
		(strings.Contains(text, "broken pipe") || strings.Contains(text, "connection reset by peer")) && refusesPlain(u.Host): // its answer was lost with the connection
		return fmt.Errorf("what answers at %s does not speak HTTP without TLS (%s): try https://%s, with --ca", u, text, u.Host)
	}
	return nil
}

// refusesPlain reports whether a server refuses a connection without TLS, by a TLS alert or by
// HTTP/1. It sends five octets, as long as the header of a TLS record. A server that closes a
// connection with unread octets resets it, and its answer may be lost.
func refusesPlain(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(time.Second)) != nil {
		return false
	}
	if _, err := io.WriteString(conn, "PRI *"); err != nil {
		return false
	}
	answer := make([]byte, 5)
	n, _ := io.ReadFull(conn, answer) // a shorter answer is no error
	return n > 1 && answer[0] == 0x15 && answer[1] == 3 || string(answer[:n]) == "HTTP/"
}
