package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
)

// guard decides which requests are let in.
//
// With a token, those that present it. Without one, which Config allows on
// loopback only, those that a browser could not have been made to send by a
// foreign page: the Host must name this machine (against DNS rebinding), and
// an Origin must be this very server (against cross-site requests).
type guard struct {
	tokens *tokens
	listen string // the host that the configuration names
	count  func(refusal)
}

// refusal is why a request was not let in.
type refusal string

const (
	refusedToken  refusal = "token"
	refusedHost   refusal = "host"
	refusedOrigin refusal = "origin"
	refusedSize   refusal = "size"
)

func refusals() []refusal { return []refusal{refusedToken, refusedHost, refusedOrigin, refusedSize} }

// open are the paths that tell nothing about the network and need no token.
func open(path string) bool { return path == "/" || path == "/healthz" }

// protect returns a handler that passes to next what may come in.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, why, err := g.check(r)
		if err != nil {
			g.count(why)
			if kind == codes.Unauthenticated {
				w.Header().Set("WWW-Authenticate", `Bearer realm="weft"`)
			}
			refuse(w, r, kind, err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *guard) check(r *http.Request) (codes.Code, refusal, error) {
	if g.tokens.asked() {
		if !open(r.URL.Path) && !g.tokens.right(presented(r)) {
			return codes.Unauthenticated, refusedToken, fmt.Errorf("a token is needed: send it as Authorization: Bearer TOKEN (weft: --token or WEFT_TOKEN)")
		}
		return codes.OK, "", nil
	}
	if host := hostname(r.Host); !loopback(host) && !strings.EqualFold(host, g.listen) {
		return codes.PermissionDenied, refusedHost, fmt.Errorf("host %q is not this server: use 127.0.0.1 or localhost, or set gateway.token", host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
		return codes.PermissionDenied, refusedOrigin, fmt.Errorf("requests from pages of %s are refused: set gateway.token to let them in with it", origin)
	}
	return codes.OK, "", nil
}

// presented returns the token that a request carries: in its Authorization
// header or, for the WebSocket of a browser, which cannot set one, in its query.
func presented(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "bearer") {
		return strings.TrimSpace(token)
	}
	if r.URL.Path == eventsPath {
		return r.URL.Query().Get("access_token")
	}
	return ""
}

// hostname returns a Host header without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && u.Host != "" && strings.EqualFold(u.Host, host)
}
