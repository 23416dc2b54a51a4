package apps

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// HTTP returns what answers requests of apps and clients over HTTP:
//
//	GET    /v1/call            the methods that there are
//	POST   /v1/call/{method}   calls one, JSON to JSON
//	GET    /v1/apps            a WebSocket of an app or a client; else the apps that are attached
//	POST   /v1/apps            registers a REST app, or renews its lease
//	DELETE /v1/apps/{name}     detaches a REST app
func (o *Server) HTTP() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/call", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, &api.ListMethodsResponse{Methods: o.calls.methods()})
	})
	mux.HandleFunc("POST /v1/call/{method}", func(w http.ResponseWriter, r *http.Request) {
		respond(w, func() (proto.Message, error) { return o.post(w, r) })
	})
	mux.HandleFunc("GET /v1/apps", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			o.serveSocket(w, r)
			return
		}
		reply(w, &api.ListAppsResponse{Apps: o.Apps()})
	})
	mux.HandleFunc("POST /v1/apps", func(w http.ResponseWriter, r *http.Request) {
		respond(w, func() (proto.Message, error) {
			h := &api.Hello{}
			if err := readBody(w, r, h); err != nil {
				return nil, err
			}
			return o.registerApp(r.Context(), h)
		})
	})
	mux.HandleFunc("DELETE /v1/apps/{name}", func(w http.ResponseWriter, r *http.Request) {
		respond(w, func() (proto.Message, error) { return o.leaveApp(r.Context(), r.PathValue("name")) })
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, api.Errorf(codes.NotFound, "there is no %s %.200q; there are GET /v1/call, POST /v1/call/SERVICE.METHOD, GET and POST /v1/apps, DELETE /v1/apps/NAME", r.Method, r.URL.Path))
	})
	return o.Protect(mux)
}

func respond(w http.ResponseWriter, do func() (proto.Message, error)) {
	m, err := do()
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, m)
}

// post makes a call by its POST.
func (o *Server) post(w http.ResponseWriter, r *http.Request) (proto.Message, error) {
	method := r.PathValue("method")
	req, err := o.calls.request(method)
	if err != nil {
		return nil, err
	}
	if err := readBody(w, r, req); err != nil {
		return nil, err
	}
	ctx, err := o.visited(r.Context(), r.Context(), r.RemoteAddr, r.Header.Get(appHeader))
	if err != nil {
		return nil, err
	}
	return o.calls.do(ctx, method, req)
}

// leaveApp detaches a REST app, as it asks itself.
func (o *Server) leaveApp(ctx context.Context, name string) (proto.Message, error) {
	a := o.apps.find(name)
	if a == nil {
		return nil, api.Errorf(codes.NotFound, "app %.60q is not attached", name)
	}
	if _, ok := a.link.(*lease); !ok {
		return nil, api.Errorf(codes.FailedPrecondition, "app %s is attached over %s: it leaves by closing its connection", name, a.info.Transport)
	}
	if o.config.Peer != nil && !mayBe(o.config.Peer(ctx), name) {
		return nil, api.Errorf(codes.PermissionDenied, "only app %s itself can leave", name)
	}
	a.end(errLeft)
	return a.status(), nil
}

// bodyTimeout is how long the body of a request may take to arrive.
const bodyTimeout = 10 * time.Second

// readBody reads the message in a request's body; no body is an empty message.
func readBody(w http.ResponseWriter, r *http.Request, m proto.Message) error {
	// The deadline is of the body only: left in force, it would end the call.
	deadline := http.NewResponseController(w)
	if err := deadline.SetReadDeadline(time.Now().Add(bodyTimeout)); err == nil {
		defer func() { _ = deadline.SetReadDeadline(time.Time{}) }() // as it could be set before
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return api.Errorf(codes.ResourceExhausted, "the request is larger than %d octets; send it in parts", maxMessage)
		}
		return api.Errorf(codes.InvalidArgument, "read the request: %w", err)
	}
	if len(body) == 0 {
		return nil
	}
	return readJSON(body, m)
}
