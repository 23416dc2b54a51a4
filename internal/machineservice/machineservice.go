// Package machineservice is the common part of services of a machine, such as
// weft lab serve: a Unix socket at which the methods of a .proto file are
// answered as JSON over HTTP, for the gateway and whoever may open the socket.
package machineservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/internal/jsonhttp"
	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/northbound"
	"github.com/weft-sdn/weft/internal/shares"
)

// Headers in which the gateway says who makes a request, and with which role.
const (
	CallerHeader = "Weft-Caller"
	RoleHeader   = "Weft-Role"
)

// maxBody is the largest request, in octets.
const maxBody = 4 << 20

// stopTimeout bounds requests under way when a service ends.
const stopTimeout = 2 * time.Second

// The most connections at any time, and octets that requests hold.
const (
	maxConnections = 256
	maxOctets      = 64 << 20
)

// Service is what answers at a socket.
type Service struct {
	Socket string // path
	Group  string // name or number; may open the socket, besides its owner; empty: none
	// API is the service of the .proto files, as generated for gRPC, and Server what answers
	// its methods that do not stream: of its generated interface. Nil: Streams only.
	API    *grpc.ServiceDesc
	Server any
	// Begin, if not nil, is called once the socket is open, before a request is answered.
	Begin func(context.Context) error
	// Streams are methods whose answer is a stream: handlers by verb and path
	// ("GET /v1/lab/consoles/{console}").
	Streams map[Route]StreamHandler
	Log     *slog.Logger
}

// StreamHandler answers a request; fields are those of the path.
type StreamHandler = runtime.HandlerFunc

// Route is the verb and the path of a method, with {fields}.
type Route struct{ Verb, Path string }

// Handler returns the handler of all requests.
func (s Service) Handler() (http.Handler, error) {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{
			MarshalOptions:   protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true},
			UnmarshalOptions: protojson.UnmarshalOptions{},
		}),
		runtime.WithErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
			Refuse(w, err)
		}),
		runtime.WithRoutingErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
			Refuse(w, status.Errorf(codes.Unimplemented, "%s %s: %s; GET /openapi.json of the controller says what there is", r.Method, r.URL.Path, http.StatusText(code)))
		}),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
	)
	if s.API != nil {
		if err := jsonhttp.RegisterServer(mux, s.API, s.Server); err != nil {
			return nil, err
		}
	}
	for r, h := range s.Streams { // after the others, so that they come first
		if err := mux.HandlePath(r.Verb, r.Path, follows(h)); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.Verb, r.Path, err)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
					panic(p)
				}
				s.Log.Error("panic", "request", r.Method+" "+r.URL.Path, "panic", p)
				Refuse(w, status.Errorf(codes.Internal, "panic in %s %s: %v", r.Method, r.URL.Path, p))
			}
		}()
		who := Caller{Name: r.Header.Get(CallerHeader), Role: r.Header.Get(RoleHeader)}
		visit, err := northbound.Enter(r.Context(), who.rank())
		if err != nil {
			Refuse(w, status.Error(codes.ResourceExhausted, err.Error()))
			return
		}
		defer visit.End()
		r = visit.Request(r)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		who.at = northbound.ClientOf(r.Context(), r.RemoteAddr)
		mux.ServeHTTP(visit.Writer(w), r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	}), nil
}

// Serve answers at the socket until ctx ends.
func (s Service) Serve(ctx context.Context) error {
	handler, err := s.Handler()
	if err != nil {
		return err
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	if s.Begin != nil {
		if err := s.Begin(ctx); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	counted := shares.Sparsely(func(n uint64) {
		s.Log.Warn("connections were closed to make room for others", "socket", s.Socket, "connections", n, "limit", maxConnections)
	})
	limited := northbound.Listen(l, northbound.Limits{
		// The gateway makes the requests of all its clients, so that one client may have all.
		Connections: maxConnections, PerClient: maxConnections, Octets: maxOctets, OctetsPerClient: maxOctets,
		Newcomer: func(int) northbound.Rank { return northbound.Operator }, // or it could not open the socket
		Refused:  counted, Closed: counted,
	})
	srv := &http.Server{
		Handler: handler, ConnContext: limited.ConnContext, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(limited) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if srv.Shutdown(stopping) != nil {
		_ = srv.Close() // cuts off the rest
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen opens the socket: for its owner alone, or for a group, too.
func (s Service) listen() (net.Listener, error) {
	if err := asowner.Check(s.Socket); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(s.Socket), 0o755); err != nil {
		return nil, err
	}
	gid := -1
	if s.Group != "" {
		number := s.Group
		if _, err := strconv.ParseUint(number, 10, 31); err != nil {
			g, err := user.LookupGroup(s.Group)
			if err != nil {
				return nil, fmt.Errorf("group %s: %w", s.Group, err)
			}
			number = g.Gid
		}
		var err error
		if gid, err = strconv.Atoi(number); err != nil {
			return nil, fmt.Errorf("group %s: number %q: %w", s.Group, number, err)
		}
	}
	l, err := localsocket.Listen(s.Socket)
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0o600)
	if gid >= 0 {
		mode = 0o660
		err = os.Chown(s.Socket, -1, gid)
	}
	if err == nil {
		err = os.Chmod(s.Socket, mode)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// follows returns a handler of a stream, whose client may take its time.
func follows(h runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, fields map[string]string) {
		defer northbound.Follow(r.Context())()
		h(w, r, fields)
	}
}

// Caller is who makes a request, as the gateway says; Name and Role are empty for
// those who open the socket themselves.
type Caller struct {
	Name, Role string

	at northbound.Client
}

type callerKey struct{}

// Client returns who takes places when the caller does.
func (c Caller) Client() shares.Client {
	switch c.Role {
	case "": // may do all, as they have opened the socket
		return shares.Client{Name: c.at.String(), Rank: shares.Administrator}
	case "admin":
		return shares.Client{Name: c.Name, Rank: shares.Administrator}
	case "operate":
		return shares.Client{Name: c.Name, Rank: shares.Operator}
	}
	return shares.Client{Name: c.Name, Rank: shares.Reader}
}

// rank returns the precedence of the caller's connection.
func (c Caller) rank() northbound.Rank {
	switch c.Client().Rank {
	case shares.Administrator:
		return northbound.Administrator
	case shares.Operator:
		return northbound.Operator
	}
	return northbound.Reader
}

// CallerOf returns who makes a request.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Refuse answers a request with an error, as the northbound does.
func Refuse(w http.ResponseWriter, err error) {
	st := status.Convert(err)
	if st.Code() == codes.Unknown {
		if s := status.FromContextError(err); s.Code() != codes.Unknown {
			st = s
		}
	}
	body, _ := json.Marshal(struct { // of two plain fields: cannot fail
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{int(st.Code()), northbound.Shortened(st.Message())})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(runtime.HTTPStatusFromCode(st.Code()))
	_, _ = io.WriteString(w, string(body)+"\n") // the client is gone if it fails
}
