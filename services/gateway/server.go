package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/jsonhttp"
	"github.com/weft-sdn/weft/internal/keypair"
	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/northbound"
	"github.com/weft-sdn/weft/loom"
)

// stopTimeout bounds calls under way when the gateway stops.
const stopTimeout = 2 * time.Second

// streamBuffer is how many octets of HTTP/2 a client may send before the server
// reads them.
const streamBuffer = 256 << 10

// metricsOctets is the approximate memory for writing metrics, in octets.
const metricsOctets = 4 << 20

// server is the northbound on one port.
type server struct {
	config  Config
	calls   *calls
	stream  *stream
	watch   *watching
	guard   *guard
	pair    *keypair.Pair // nil: without TLS
	metrics http.Handler  // nil: none
	refused func(refusal)
	log     *slog.Logger

	stopWithin time.Duration // bounds calls under way when the gateway stops
}

// handler returns the handler of all requests.
func (s *server) handler() (http.Handler, *grpc.Server, error) {
	rpc := grpc.NewServer(grpc.MaxRecvMsgSize(maxBody), grpc.ForceServerCodecV2(newCountingCodec()))
	s.calls.register(rpc)
	jsonCalls := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, newJSONCodec()),
		runtime.WithErrorHandler(httpError),
		runtime.WithRoutingErrorHandler(routingError),
		runtime.WithMetadata(func(ctx context.Context, _ *http.Request) metadata.MD { // before the body is read
			if method, ok := runtime.RPCMethod(ctx); ok {
				if b := bodyOf(ctx); b != nil && b.err == nil {
					b.err = s.calls.permit(ctx, method)
				}
			}
			return nil
		}),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		// Headers are not metadata: no call reads any.
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
	)
	for _, d := range api.Services() {
		for i := range d.Methods().Len() {
			m := d.Methods().Get(i)
			full := fullName(api.MethodName(m))
			if err := jsonhttp.Register(jsonCalls, m, func(ctx context.Context, req proto.Message) (proto.Message, error) {
				return s.calls.answer(ctx, full, req)
			}); err != nil {
				return nil, nil, fmt.Errorf("gateway: %w", err)
			}
		}
	}

	machines := runtime.NewServeMux(runtime.WithRoutingErrorHandler(routingError), runtime.WithDisablePathLengthFallback(), runtime.WithDisableHTTPMethodOverride())
	mux := http.NewServeMux()
	for _, m := range []*machine{s.machine("lab", "gateway.lab", s.config.Lab), s.machine("experiments", "gateway.experiments", s.config.Experiments)} {
		if err := m.register(machines); err != nil {
			return nil, nil, fmt.Errorf("gateway: %w", err)
		}
		mux.Handle("/v1/"+m.name, machines)
		mux.Handle("/v1/"+m.name+"/", machines)
	}
	mux.Handle("/v1/", s.bounded(jsonCalls))
	mux.Handle("GET "+eventsPath, s.stream)
	mux.Handle("POST "+watchPath, s.bounded(s.watch))
	s.guard.session(mux)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		document, err := api.OpenAPI()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(document)
	})
	if s.metrics != nil {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
			if err := room(northbound.Hold(r.Context(), metricsOctets)); err != nil {
				s.tooMuch(err)
				refuseErr(w, r, err)
				return
			}
			s.metrics.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok\n")
	})
	files, built := loom.Files()
	pages(mux, files, built)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, codes.NotFound, fmt.Sprintf("there is no %s %s; GET / lists what there is", r.Method, r.URL.Path))
	})

	return headers(s.guard.protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isGRPC(r) {
			if err := s.calls.permit(r.Context(), r.URL.Path); err != nil {
				refuseErr(w, r, err)
				return
			}
			if err := whole(r); err != nil {
				s.tooMuch(err)
				refuseErr(w, r, err)
				return
			}
			rpc.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))), rpc, nil
}

// isGRPC reports whether a request is a gRPC request.
func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// headers forbids browsers whatever our answers do not need.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// bounded bounds the body of a request by maxBody, and records the query. The
// body is read once the caller is known to have the right to the call.
func (s *server) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &body{
			from: http.MaxBytesReader(w, r.Body, maxBody),
			hold: func(octets int) error { return northbound.Hold(r.Context(), octets) },
		}
		ctx := context.WithValue(r.Context(), queryKey{}, r.URL.Query())
		ctx = context.WithValue(ctx, answerKey{}, w)
		r = r.WithContext(context.WithValue(ctx, bodyKey{}, b))
		r.Body = b
		next.ServeHTTP(w, r)
		s.tooMuch(b.err)
	})
}

// tooMuch counts a request that was too large, or had no room.
func (s *server) tooMuch(err error) {
	switch {
	case errors.Is(err, errTooLarge):
		s.refused(refusedSize)
	case status.Code(err) == codes.ResourceExhausted:
		s.refused(refusedOctets)
	}
}

// routingError answers requests without a matching method.
func routingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	switch code {
	case http.StatusMethodNotAllowed:
		writeError(w, code, codes.Unimplemented, fmt.Sprintf("%s does not take %s; GET /openapi.json says what it takes", r.URL.Path, r.Method))
	case http.StatusNotFound:
		refuse(w, r, codes.NotFound, fmt.Sprintf("there is no %s %s; GET / lists what there is", r.Method, r.URL.Path))
	default:
		writeError(w, code, codes.InvalidArgument, fmt.Sprintf("%s %s: %s", r.Method, r.URL.Path, http.StatusText(code)))
	}
}

// listen opens the port.
func (s *server) listen() (*northbound.Listener, error) {
	if s.config.Certificate != "" {
		pair, err := keypair.Open(keypair.Files{Certificate: s.config.Certificate, Key: s.config.Key, Authority: s.config.ClientAuthority, Optional: true}, time.Now)
		if err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		s.pair = pair
	}
	l, err := net.Listen("tcp", s.config.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("gateway.listen: %s is in use, perhaps by another controller; choose another port", s.config.Listen)
	case err != nil:
		return nil, fmt.Errorf("gateway.listen: %w", err)
	}
	limited := northbound.Listen(l, northbound.Limits{
		Connections: s.config.MaxConnections, PerClient: s.config.MaxConnectionsPerAddress,
		Octets: s.config.MaxOctets, OctetsPerClient: s.config.MaxOctetsPerAddress, Newcomer: s.guard.newcomer,
		Refused: func() { s.refused(refusedMany) }, Closed: func() { s.refused(refusedOldest) },
	})
	if limit := limited.Limit(); limit < s.config.MaxConnections {
		s.log.Warn("gateway.max_connections is more than a quarter of the files that this process may have open; raise that (ulimit -n)", "max_connections", s.config.MaxConnections, "used", limit)
	}
	return limited, nil
}

// serve answers requests until ctx ends, and finishes calls under way.
func (s *server) serve(ctx context.Context, l *northbound.Listener) error {
	stop, end := context.WithCancel(context.Background())
	defer end()
	s.watch.stop = stop
	handler, rpc, err := s.handler()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.pair != nil)
	protocols.SetUnencryptedHTTP2(s.pair == nil) // for gRPC
	srv := &http.Server{
		Handler: handler, Protocols: protocols, MaxHeaderBytes: 64 << 10,
		HTTP2:             &http.HTTP2Config{MaxReceiveBufferPerConnection: streamBuffer, MaxReceiveBufferPerStream: streamBuffer},
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		// Longer than any call: net/http cancels a call when one of these is
		// over.
		ReadTimeout: s.config.CallTimeout + 30*time.Second, WriteTimeout: s.config.CallTimeout + 30*time.Second,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(l.ConnContext(ctx, c), fromKey{}, c.RemoteAddr())
		},
	}
	done := make(chan error, 1)
	if s.pair != nil {
		srv.TLSConfig = s.pair.Server()
	}
	go func() {
		if s.pair != nil {
			done <- srv.ServeTLS(l, "", "")
		} else {
			done <- srv.Serve(l)
		}
	}()
	s.log.Info("northbound is open", "address", l.Addr().String(), "tls", s.pair != nil, "token", s.guard.tokens.asked() || !s.guard.open)
	if host := hostname(l.Addr().String()); s.pair == nil && !localsocket.Loopback(host) {
		s.log.Warn("the northbound is not secret: tokens can be read on the way; set gateway.certificate and gateway.key (weft certs controller)", "address", l.Addr().String())
	}
	select {
	case err := <-done:
		return fmt.Errorf("gateway: %w", err)
	case <-ctx.Done():
	}
	close(s.stream.stopped)
	s.stream.places.Close()
	end()
	bounded, cancel := context.WithTimeout(context.Background(), s.stopWithin)
	defer cancel()
	if srv.Shutdown(bounded) != nil {
		srv.Close() // cut off the rest
	}
	rpc.Stop()
	<-done //nolint:errcheck // http.ErrServerClosed
	return nil
}
