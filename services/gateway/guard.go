package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/northbound"
)

// The names that the audit log and messages have for those without a token that
// somebody has made.
const (
	nameLoopback   = "loopback"
	nameConfigured = "configured"
	nameNobody     = "nobody" // who looks at what is open to all
	nameRyu        = "ryu"    // who comes by Ryu's REST
	userPrefix     = "user "  // other users of this machine, by their numbers
)

// madePrefix is what tokens of weft token begin with.
const madePrefix = "weft_"

// guard decides which requests are let in, and as whom.
//
// With a token, those that present it. Without one, if that is allowed at all,
// on loopback, those of users of this machine: root, who runs the controller and
// whoever the configuration names may do more than read. The kernel says whose a
// connection is; what a proxy passes on has no user. A browser could not have
// been made to send them by a foreign page: the Host must name this machine
// (against DNS rebinding), and an Origin must be this very server (against
// cross-site requests).
type guard struct {
	tokens   *tokens
	ledger   *ledger
	throttle *throttle
	open     bool         // who has no token is let in
	users    map[int]role // of this machine, besides root and who runs the controller
	listen   string       // the host that the configuration names
	count    func(refusal)
}

// refusal is why a request was not let in.
type refusal string

const (
	refusedToken  refusal = "token"
	refusedRate   refusal = "too_many_tokens"
	refusedHost   refusal = "host"
	refusedOrigin refusal = "origin"
	refusedSize   refusal = "size"
	refusedRole   refusal = "role"
	refusedUser   refusal = "user"
	refusedMany   refusal = "too_many_connections"
	refusedOldest refusal = "made_room" // connections that were closed for others
	refusedOctets refusal = "octets"
)

func refusals() []refusal {
	return []refusal{refusedToken, refusedRate, refusedHost, refusedOrigin, refusedSize, refusedRole, refusedUser, refusedMany, refusedOldest, refusedOctets}
}

// denied is a request that is not let in.
type denied struct {
	kind  codes.Code
	why   refusal
	text  string
	after time.Duration // when to try again; 0: at any time
}

// open are the paths that tell nothing about the network and need no token.
func open(path string) bool { return path == "/" || path == "/healthz" }

// protect returns a handler that passes to next what may come in, with the
// caller in its context.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, no := g.check(r)
		if no == nil && who.role == roleNone && !open(r.URL.Path) {
			no = &denied{kind: codes.Unauthenticated, why: refusedToken, text: "a token is needed"} // check has let nobody in
		}
		var visit *northbound.Visit
		if no == nil {
			if visit, no = g.enter(r, who); no == nil {
				defer visit.End()
			}
		} else {
			northbound.Identify(r.Context(), northbound.Stranger)
		}
		if no != nil {
			g.count(no.why)
			if no.kind == codes.Unauthenticated {
				w.Header().Set("WWW-Authenticate", `Bearer realm="weft"`)
			}
			if no.after > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(int(no.after.Seconds())+1))
			}
			refuse(w, r, no.kind, no.text)
			return
		}
		who.from = r.RemoteAddr
		r = visit.Request(r)
		next.ServeHTTP(visit.Writer(w), r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// enter lets a request in whose caller is known, if there is room for it.
func (g *guard) enter(r *http.Request, who caller) (*northbound.Visit, *denied) {
	visit, err := northbound.Enter(r.Context(), rankOf(who.role))
	if err != nil {
		return nil, &denied{kind: codes.ResourceExhausted, why: refusedOctets, text: err.Error(), after: time.Second}
	}
	return visit, nil
}

// rankOf returns which clients have precedence.
func rankOf(r role) northbound.Rank {
	switch {
	case r >= roleOperate:
		return northbound.Operator
	case r >= roleRead:
		return northbound.Reader
	}
	return northbound.Stranger
}

// newcomer returns the rank of a user of this machine who has not made a
// request yet.
func (g *guard) newcomer(uid int) northbound.Rank {
	if localsocket.Own(uid) {
		return northbound.Operator
	}
	return rankOf(g.users[uid])
}

// check returns who makes a request, or why it is not let in.
func (g *guard) check(r *http.Request) (caller, *denied) {
	token := presented(r)
	asked := g.tokens.asked() || !g.open
	switch {
	case asked && open(r.URL.Path):
		return caller{name: nameNobody}, nil
	case asked && token == "":
		return caller{}, &denied{kind: codes.Unauthenticated, why: refusedToken, text: "a token is needed: send it as Authorization: Bearer TOKEN (weft: --token, --token-file or WEFT_TOKEN)"}
	case token != "" && (asked || g.ledger.some() || strings.HasPrefix(token, madePrefix)):
		return g.identify(r.RemoteAddr, token)
	}
	if host := hostname(r.Host); !loopback(host) && !strings.EqualFold(host, g.listen) {
		return caller{}, &denied{kind: codes.PermissionDenied, why: refusedHost, text: fmt.Sprintf("host %q is not this server: use 127.0.0.1 or localhost, or set gateway.token", host)}
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host, r.TLS != nil) {
		return caller{}, &denied{kind: codes.PermissionDenied, why: refusedOrigin, text: fmt.Sprintf("requests from pages of %s are refused: set gateway.token to let them in with it", origin)}
	}
	return g.local(r)
}

// local returns which user of this machine makes a request.
func (g *guard) local(r *http.Request) (caller, *denied) {
	fail := func(form string, args ...any) (caller, *denied) {
		return caller{}, &denied{kind: codes.Unauthenticated, why: refusedUser, text: fmt.Sprintf(form, args...) + ": send a token (weft token create)"}
	}
	if header := localsocket.Proxied(r.Header); header != "" {
		return fail("%s says that this request comes through a proxy, so whose it is cannot be told", header)
	}
	from, _ := r.Context().Value(fromKey{}).(net.Addr)
	uid, err := localsocket.UserAt(from)
	if err != nil {
		return fail("whose connection this is cannot be told (%v)", err)
	}
	if localsocket.Own(uid) {
		return caller{name: nameLoopback, role: roleAdmin, local: true}, nil
	}
	return caller{name: userPrefix + strconv.Itoa(uid), role: max(roleRead, g.users[uid]), local: true}, nil
}

// fromKey is the context's key for the address that a connection comes from.
type fromKey struct{}

// identify returns whose a token is.
func (g *guard) identify(from, token string) (caller, *denied) {
	if wait := g.throttle.wait(from, token); wait > 0 {
		return caller{}, &denied{codes.ResourceExhausted, refusedRate, fmt.Sprintf("too many wrong tokens from %v: wait %.0f s", northbound.Address(from), wait.Seconds()+1), wait}
	}
	who := caller{}
	if g.tokens.right(token) {
		who = caller{name: nameConfigured, role: roleAdmin}
	}
	if t := g.ledger.find(token); t != nil {
		who = caller{name: t.Name, role: t.role, token: t}
	}
	g.throttle.tried(from, token, who.role != roleNone)
	if who.role == roleNone {
		return who, &denied{kind: codes.Unauthenticated, why: refusedToken, text: "the token is wrong, has ended, or was revoked (WEFT_TOKEN, --token or --token-file); weft token list shows those that there are"}
	}
	return who, nil
}

// holds reports whether a caller may still do what it could when it was let in.
func (g *guard) holds(c caller) bool {
	switch {
	case c.local:
		return true
	case c.name == nameConfigured:
		return g.tokens.asked()
	}
	return c.token != nil && g.ledger.holds(c.token)
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

func sameOrigin(origin, host string, secure bool) bool {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == scheme && u.Host != "" && strings.EqualFold(u.Host, host)
}
