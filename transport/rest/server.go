package rest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/socket"
)

// Server answers requests at the paths of this package.
type Server struct {
	ctx     context.Context // of the offer
	handler transport.Handler
	// underWay counts calls; draining is set once the server accepts no more.
	underWay atomic.Int64
	draining atomic.Bool
}

// NewServer returns a server. When ctx ends, so do the contexts of running
// handlers.
func NewServer(ctx context.Context, h transport.Handler) *Server {
	return &Server{ctx: ctx, handler: h}
}

// Drain refuses new calls and waits until the handlers have finished earlier
// ones, or ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	for pauses := (backoff.Exponential{First: time.Millisecond, Last: 50 * time.Millisecond}); s.underWay.Load() > 0; {
		if err := pauses.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bodyTime is how long a peer may take to send a body.
const bodyTime = 30 * time.Second

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if path == PingPath {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	method, isCall := strings.CutPrefix(path, CallPath)
	switch {
	case !isCall || method == "":
		http.Error(w, "want "+CallPath+"METHOD or "+PingPath, http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	if err := socket.FromPage(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	s.underWay.Add(1)
	defer s.underWay.Add(-1)
	if s.draining.Load() {
		writeError(w, transport.Errorf(transport.Unavailable, "the listener is shutting down"))
		return
	}
	body, fail := readBody(w, r)
	if fail != nil {
		writeError(w, fail)
		return
	}
	ctx, cancel := context.WithCancel(transport.WithPeer(r.Context(), socket.Peer(r.TLS)))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	ctx = bare{ctx}
	if text := r.Header.Get(TimeoutHeader); text != "" {
		timeout, err := time.ParseDuration(text)
		if err != nil {
			http.Error(w, "header "+TimeoutHeader+" "+strconv.Quote(text)+": want a duration such as 50ms or 1.5s", http.StatusBadRequest)
			return
		}
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	resp, fail := transport.Answer(ctx, s.handler, method, body)
	if s.ctx.Err() != nil {
		panic(http.ErrAbortHandler) // makes net/http break off
	}
	if fail != nil {
		writeError(w, fail)
		return
	}
	header := w.Header()
	header["Content-Type"] = octetStream
	header["Content-Length"] = []string{strconv.Itoa(len(resp))}
	_, _ = w.Write(resp) // fails if the peer has gone
}

var octetStream = []string{"application/octet-stream"}

// bare is a context without the values that net/http puts into it.
type bare struct{ context.Context }

func (b bare) Value(key any) any {
	switch key {
	case http.ServerContextKey, http.LocalAddrContextKey:
		return nil
	}
	return b.Context.Value(key)
}

// readBody reads the body of a request into memory that grows with the received
// bytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *transport.Error) {
	if r.ContentLength > transport.MaxMessage {
		return nil, transport.TooLarge("message", int(r.ContentLength))
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
		return nil, transport.Errorf(transport.Unavailable, "read the body: %v", err)
	}
	body, err := readAll(r.Body, r.ContentLength)
	if err != nil {
		return nil, transport.Errorf(transport.Unavailable, "read the body: %v", err)
	}
	if len(body) > transport.MaxMessage {
		return nil, transport.TooLarge("message", len(body))
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return nil, transport.Errorf(transport.Unavailable, "read the body: %v", err)
	}
	return body, nil
}

// readAll reads up to one octet more than MaxMessage. size is what to expect,
// or -1.
func readAll(r io.Reader, size int64) ([]byte, error) {
	const most = transport.MaxMessage + 1
	if size < 0 {
		size = most
	}
	b := make([]byte, 0, min(size+1, 64<<10)) // one more, to meet the end without growing
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF || len(b) == most {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			grown := make([]byte, len(b), min(max(int64(2*cap(b)), 64<<10), size+1, most))
			copy(grown, b)
			b = grown
		}
	}
}

func writeError(w http.ResponseWriter, err *transport.Error) {
	header := w.Header()
	header.Set(CodeHeader, strconv.FormatUint(uint64(err.Code), 10))
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(err.Text)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status(err.Code))
	_, _ = io.WriteString(w, err.Text) // fails if the peer has gone
}

// status returns the HTTP status for a code, as in grpc-gateway.
func status(c transport.Code) int {
	switch c {
	case 1: // Canceled
		return 499
	case 3, 9, 11: // InvalidArgument, FailedPrecondition, OutOfRange
		return http.StatusBadRequest
	case 4: // DeadlineExceeded
		return http.StatusGatewayTimeout
	case 5: // NotFound
		return http.StatusNotFound
	case 6, 10: // AlreadyExists, Aborted
		return http.StatusConflict
	case 7: // PermissionDenied
		return http.StatusForbidden
	case 8: // ResourceExhausted
		return http.StatusTooManyRequests
	case 12: // Unimplemented
		return http.StatusNotImplemented
	case 14: // Unavailable
		return http.StatusServiceUnavailable
	case 16: // Unauthenticated
		return http.StatusUnauthorized
	}
	return http.StatusInternalServerError
}
