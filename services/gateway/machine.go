package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/northbound"
)

// machine passes calls of a service of this machine, such as weft lab serve, on
// to its socket, if their callers may make them, and logs changes.
type machine struct {
	server *server
	name   string // of the service in the .proto file, in lower case
	key    string // of the configuration that names the socket
	socket string // empty: none
	proxy  *httputil.ReverseProxy
}

// machineCalls bounds how long a service of the machine has to begin its answer:
// pings and measurements answer when they are over.
const machineCalls = 10 * time.Minute

func (s *server) machine(name, key, socket string) *machine {
	m := &machine{server: s, name: name, key: key, socket: socket}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	transports := byRank{}
	for rank := northbound.Stranger; rank <= northbound.Administrator; rank++ {
		transports[rank] = &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
			MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: machineCalls, DisableCompression: true,
		}
	}
	m.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			who := callerOf(p.In.Context())
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", name, name
			for _, secret := range []string{"Authorization", "Cookie", "Origin"} { // the gateway has judged them
				p.Out.Header.Del(secret)
			}
			p.Out.Header.Set(machineservice.CallerHeader, who.name)
			p.Out.Header.Set(machineservice.RoleHeader, who.role.String())
		},
		Transport:     transports,
		FlushInterval: -1, // streams are passed on at once
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Set-Cookie")
			return nil
		},
		ErrorHandler: m.failed,
	}
	return m
}

// byRank has requests of clients of different ranks go by different connections: the
// service closes those of lower ranks first.
type byRank map[northbound.Rank]*http.Transport

// RoundTrip makes a request (http.RoundTripper).
func (t byRank) RoundTrip(r *http.Request) (*http.Response, error) {
	return t[rankOf(callerOf(r.Context()).role)].RoundTrip(r)
}

// failed answers a request that the service did not answer.
func (m *machine) failed(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(context.Cause(r.Context()), errEnded):
		refuse(w, r, codes.Unauthenticated, status.Convert(errEnded).Message())
	case errors.Is(err, context.Canceled):
		return // the client is gone
	case status.Code(err) == codes.ResourceExhausted:
		refuseErr(w, r, err)
	case errors.Is(err, fs.ErrPermission):
		refuse(w, r, codes.Unavailable, fmt.Sprintf("%s, which %s names, may not be opened by the controller: start weft %s with --group %d", m.socket, m.key, commandOf(m.name), os.Getegid()))
	default:
		refuse(w, r, codes.Unavailable, fmt.Sprintf("%s at %s, which %s names, does not answer (%v): start weft %s", m.name, m.socket, m.key, err, commandOf(m.name)))
	}
}

// commandOf returns the command that runs a service of the machine.
func commandOf(name string) string {
	return map[string]string{"lab": "lab serve", "experiments": "experiment serve"}[name]
}

// register adds the paths of the service's methods, as its .proto file has them.
func (m *machine) register(mux *runtime.ServeMux) error {
	for _, d := range api.MachineServices() {
		if !strings.EqualFold(string(d.Name()), m.name) {
			continue
		}
		for i := range d.Methods().Len() {
			method := m.name + "." + string(d.Methods().Get(i).Name())
			for _, route := range api.RulesOf(method).Routes() {
				if err := mux.HandlePath(route.Verb, route.Path, func(w http.ResponseWriter, r *http.Request, _ map[string]string) { m.serve(w, r, method) }); err != nil {
					return fmt.Errorf("%s %s: %w", route.Verb, route.Path, err)
				}
			}
		}
	}
	return nil
}

// serve passes one call on.
func (m *machine) serve(w http.ResponseWriter, r *http.Request, method string) {
	who, changes := callerOf(r.Context()), api.RulesOf(method).GetChanges()
	text, err := m.admit(w, r, who, method)
	out := &observed{ResponseWriter: w, code: http.StatusOK}
	if err == nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	if changes {
		begun := m.server.calls.now()
		line := &record{Time: begun.UTC(), Who: who.name, Role: who.role.String(), From: who.from, Method: method, Request: pathText(r, text, err)}
		write := sync.OnceFunc(func() {
			if err == nil {
				err = out.err()
			}
			outcome(line, err, m.server.calls.now().Sub(begun))
			m.server.calls.audit.Add(line)
		})
		out.begun = write // a stream may last for days, and this process may be killed meanwhile
		defer write()
	}
	if err != nil {
		m.server.calls.failed(status.Code(err))
		refuseErr(w, r, err)
		return
	}
	ctx, end := m.server.guard.lasting(r.Context())
	defer end()
	r = r.WithContext(ctx)
	// Answers may be streams, and take longer than those of the controller.
	deadlines := http.NewResponseController(w)
	_, _ = deadlines.SetWriteDeadline(time.Time{}), deadlines.SetReadDeadline(time.Time{}) // not on all writers of tests
	defer northbound.Follow(r.Context())()
	m.proxy.ServeHTTP(out, r)
}

// admit returns the body of a call if the caller may make it.
func (m *machine) admit(w http.ResponseWriter, r *http.Request, who caller, method string) ([]byte, error) {
	if err := who.may(method, needs(method)); err != nil {
		m.server.refused(refusedRole)
		return nil, err
	}
	if m.socket == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "weft %s is not connected to this controller: run weft %s as root, then the controller with --set %s=SOCKET", commandOf(m.name), commandOf(m.name), m.key)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		err = unread(err)
		m.server.tooMuch(err)
	}
	return text, err
}

// pathText returns what a call asks for, for the audit log.
func pathText(r *http.Request, body []byte, err error) json.RawMessage {
	var tree any
	switch {
	case err != nil:
		return json.RawMessage(`"not read"`)
	case len(body) > encodeMost:
		return omitted(len(body))
	case len(body) > 0 && json.Unmarshal(body, &tree) != nil:
		tree = "no JSON"
	}
	text, err := json.Marshal(map[string]any{"path": r.URL.Path, "query": scrub(r.URL.RawQuery), "body": cleaned("", tree)})
	if err != nil || len(text) > requestMost {
		return omitted(len(body))
	}
	return text
}

// observed is a writer that remembers how a call was answered.
type observed struct {
	http.ResponseWriter
	code  int
	text  []byte // the beginning of an error
	begun func() // called when an answer begins that is no error; may be nil
}

// WriteHeader begins the answer (http.ResponseWriter).
func (o *observed) WriteHeader(code int) {
	o.code = code
	if code >= http.StatusOK && code < http.StatusBadRequest {
		o.begin()
	}
	o.ResponseWriter.WriteHeader(code)
}

// Hijack hands over the connection of a WebSocket (http.Hijacker).
func (o *observed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	o.begin()
	return http.NewResponseController(o.ResponseWriter).Hijack()
}

func (o *observed) begin() {
	if o.begun != nil {
		o.begun()
	}
}

// Write writes a part of the answer (http.ResponseWriter).
func (o *observed) Write(p []byte) (int, error) {
	if o.code >= 400 && len(o.text) < 4096 {
		o.text = append(o.text, p[:min(len(p), 4096-len(o.text))]...)
	}
	return o.ResponseWriter.Write(p)
}

// Unwrap returns the writer below (http.ResponseController).
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// err returns the error that was answered, nil if it was none.
func (o *observed) err() error {
	if o.code < 400 {
		return nil
	}
	said := failure{}
	if json.Unmarshal(o.text, &said) != nil || said.Code == 0 {
		return status.Errorf(codes.Unknown, "HTTP status %d", o.code)
	}
	return status.Error(codes.Code(said.Code), said.Message)
}
