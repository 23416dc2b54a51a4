package apps

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/localsocket"
)

// identities returns the names of services and apps in an app's certificate.
func identities(state *tls.ConnectionState) []string {
	var list []string
	for _, u := range state.PeerCertificates[0].URIs {
		if u.Scheme == "weft" {
			list = append(list, u.String())
		}
	}
	return list
}

// known reports, where certificates are in use, a peer that has none of ours.
func (o *Server) known(ctx context.Context) error {
	ours := func(identity string) bool { return strings.HasPrefix(identity, "weft://") }
	if o.config.Peer != nil && !slices.ContainsFunc(o.config.Peer(ctx), ours) {
		return api.Errorf(codes.Unauthenticated, "a certificate that names weft://app/NAME or weft://service/NAME is needed (weft certs)")
	}
	return nil
}

// enter takes a place for a connection that lasts.
func (o *Server) enter() error {
	select {
	case o.room <- struct{}{}:
		return nil
	default:
		return api.Errorf(codes.ResourceExhausted, "%d connections of apps are open: no more are allowed", cap(o.room))
	}
}

func (o *Server) leave() { <-o.room }

// Protect rejects requests that a foreign page could have made a browser send:
// an Origin must be this server (against cross-site requests) and, without
// certificates, the Host must name this machine (against DNS rebinding).
func (o *Server) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		err := o.known(r.Context())
		if host := r.Host; o.config.Peer == nil && !localsocket.Loopback(host) {
			err = api.Errorf(codes.PermissionDenied, "host %q is not this machine: use 127.0.0.1 or localhost; other machines need certificates", host)
		}
		if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r) {
			err = api.Errorf(codes.PermissionDenied, "requests from pages of %q are refused", origin)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func sameOrigin(origin string, r *http.Request) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == scheme && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// checkURL parses the URL of a REST app. Without certificates it must be on
// this machine, so that nobody can use Weft to reach other machines.
func (o *Server) checkURL(text string) (*url.URL, error) {
	fail := func(want string) (*url.URL, error) {
		return nil, api.Errorf(codes.InvalidArgument, "hello: url %.200q: %s", text, want)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || len(text) > 2000:
		return fail("want where the app listens, such as http://127.0.0.1:8000/packets")
	case u.User != nil || u.Fragment != "":
		return fail("want no user and no fragment in it")
	case u.Scheme == "http" && localsocket.Loopback(u.Hostname()):
		return u, nil
	case u.Scheme == "http":
		return fail("want 127.0.0.1 or localhost; apps on other machines need https, and Weft certificates")
	case u.Scheme != "https":
		return fail("want http or https")
	case o.config.TLS == nil:
		return fail("want http and this machine: Weft has no certificates with which it could ask an app by https")
	}
	return u, nil
}

// dialLocal checks the resolved address before a dial.
func dialLocal(address string) error {
	if !localsocket.Loopback(address) {
		return fmt.Errorf("address %s is not of this machine", address)
	}
	return nil
}
