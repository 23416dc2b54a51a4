package ryu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/internal/northbound"
)

const (
	maxBody     = 1 << 20
	maxOctets   = 32 << 20        // held by all requests and answers under way
	stopTimeout = 2 * time.Second // bounds requests under way when the service stops
)

// server answers Ryu's requests.
type server struct {
	switches
	commands commands
	config   Config
	owners   *owners
	stream   *stream
	conf     *conf
	firewall *firewall
	gateways *gateways
	qos      *qos
	count    func(ok bool)
	noRoom   func() // counts connections closed to make room for others
	audit    *auditlog.Log
	log      *slog.Logger
}

// listen opens the port.
func (s *server) listen(ctx context.Context) (*northbound.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address with ryu.listen", err)
	}
	return northbound.Listen(l, northbound.Limits{
		Connections: s.config.MaxConnections, PerClient: max(1, s.config.MaxConnections/2), Octets: maxOctets, OctetsPerClient: maxOctets / 2,
		Newcomer: s.owners.newcomer, Refused: s.noRoom, Closed: s.noRoom,
	}), nil
}

// serve answers requests until ctx ends.
func (s *server) serve(ctx context.Context, l *northbound.Listener) error {
	web := &http.Server{
		Handler: s.router(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: s.config.CallTimeout + 30*time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(l.ConnContext(ctx, c), fromKey{}, c.RemoteAddr())
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stream.close()
	stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if web.Shutdown(stop) != nil {
		web.Close()
	}
	return err
}

// answer carries out a request and writes the outcome. It logs requests that may
// change something, also in the audit log.
func (s *server) answer(w http.ResponseWriter, r *http.Request, x *route, args map[string]string) {
	ctx, cancel := context.WithTimeout(r.Context(), s.config.CallTimeout)
	defer cancel()
	who, err := s.owners.check(r, x.changes())
	taken := begin(r, who)
	var body []byte
	tooLarge := error(nil)
	if err == nil {
		body, tooLarge = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	var v any
	switch full := (*northbound.Full)(nil); {
	case errors.As(tooLarge, &full):
		err = &failure{429, full.Error()}
	case tooLarge != nil:
		err = &failure{413, fmt.Sprintf("body: want at most %d octets", maxBody)}
	}
	if err == nil {
		v, err = x.handler(ctx, &request{path: r.URL.Path, args: args, body: body, header: w.Header()})
	}
	var text bytes.Buffer
	if err == nil {
		err = encode(ctx, &text, v)
	}
	if x.changes() {
		taken.end(s.audit, body, w.Header(), err)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if x.changes() {
		s.log.Info("request", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr)
	}
	s.count(true)
	switch v := v.(type) {
	case nil:
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(http.StatusOK)
	case reply:
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(v.status)
		io.WriteString(w, v.text)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Write(text.Bytes())
	}
}

// encode writes a value as JSON, if there is room for it.
func encode(ctx context.Context, text *bytes.Buffer, v any) error {
	switch v.(type) {
	case nil, reply:
		return nil
	}
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	if err := northbound.Hold(ctx, text.Len()); err != nil {
		return &failure{429, err.Error()}
	}
	return nil
}

// fail writes an error: Ryu's status, with a text that describes the mistake.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.count(false)
	f := &failure{text: err.Error()}
	if !errors.As(err, &f) {
		f.status = map[codes.Code]int{
			codes.InvalidArgument: 400, codes.NotFound: 404, codes.Unimplemented: 501, codes.Unavailable: 404,
			codes.DeadlineExceeded: 504, codes.FailedPrecondition: 400,
		}[api.KindOf(err)]
		if f.status == 0 {
			f.status = 500
		}
	}
	f.text = northbound.Shortened(f.text)
	s.log.Info("request failed", "method", r.Method, "path", northbound.Shortened(r.URL.Path), "from", r.RemoteAddr, "status", f.status, "error", f.text)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(f.status)
	fmt.Fprintln(w, f.text)
}
