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
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc/codes"

	"weft/api"
	"weft/flow"
	"weft/internal/auditlog"
	"weft/internal/localsocket"
)

const (
	maxBody     = 1 << 20
	stopTimeout = 2 * time.Second // how long requests under way may take when the service stops
)

// southbound is what the handlers need of the southbound service.
type southbound interface {
	read(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error)
	apply(context.Context, *flow.Decision) (*api.ApplyResult, error)
	modifyPort(context.Context, *api.ModifyPortRequest) (*api.ApplyResult, error)
	sendExperimenter(context.Context, *api.SendExperimenterRequest) (*api.ApplyResult, error)
}

// server answers Ryu's requests.
type server struct {
	config   Config
	owners   *owners
	net      southbound
	view     *view
	stream   *stream
	conf     *conf
	firewall *firewall
	gateways *gateways
	queue    queueService
	qos      qosNumbers
	count    func(ok bool)
	audit    *auditlog.Log
	log      *slog.Logger
}

// request is one request, of which handlers see this.
type request struct {
	path   string
	args   map[string]string // what stands for the names in the route's path
	body   []byte
	header http.Header // of the answer
}

// note tells in a header what Ryu would not tell.
func (r *request) note(text string) {
	r.header.Set("Weft-Refused", strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, text))
}

// dict reads the body, a dictionary; none is an empty one.
func (r *request) dict() (dict, error) {
	if len(bytes.TrimSpace(r.body)) == 0 {
		return dict{}, nil
	}
	v, err := parseLiteral(string(r.body))
	if err != nil {
		return nil, bad("%v", err)
	}
	d, ok := v.(dict)
	if !ok {
		return nil, bad("body: want a dictionary, such as {\"dpid\": 1}")
	}
	return d, nil
}

// handler answers a request: with what is to be shown as JSON, with nothing, or
// with a reply of another status.
type handler func(context.Context, *request) (any, error)

// reply is an answer that is none of the usual.
type reply struct {
	status int
	text   string
}

// refused reports whether an error says that a switch refuses to answer.
func refused(err error) bool { return api.KindOf(err) == codes.FailedPrecondition }

// connected returns the switch of a number, decimal or hexadecimal.
func (s *server) connected(text string) (flow.DPID, error) {
	n, err := parseInt(text)
	if err != nil {
		return 0, bad("dpid: %v", err)
	}
	if !n.IsUint64() || !s.view.has(flow.DPID(n.Uint64())) {
		return 0, &failure{404, "there is no switch " + text}
	}
	sw := flow.DPID(n.Uint64())
	if v := s.view.version(sw); v != "1.3" {
		return 0, &failure{501, fmt.Sprintf("the switch speaks OpenFlow %s; this interface is for 1.3", v)}
	}
	return sw, nil
}

// listen opens the port.
func (s *server) listen(ctx context.Context) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address with ryu.listen", err)
	}
	return netutil.LimitListener(localsocket.Peers(l), s.config.MaxConnections), nil
}

// serve answers requests until ctx ends.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler: s.router(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: s.config.CallTimeout + 30*time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, fromKey{}, c.RemoteAddr())
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

// answer carries out a request and writes what came of it. What may change
// something is logged, and goes into the audit log.
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
	if tooLarge != nil {
		err = &failure{413, fmt.Sprintf("body: want at most %d octets", maxBody)}
	}
	if err == nil {
		v, err = x.handler(ctx, &request{path: r.URL.Path, args: args, body: body, header: w.Header()})
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
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			s.log.Debug("answer not sent", "path", r.URL.Path, "error", err)
		}
	}
}

// fail writes an error: Ryu's status, with a text that says what is wrong.
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
	s.log.Info("request failed", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "status", f.status, "error", f.text)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(f.status)
	fmt.Fprintln(w, f.text)
}
