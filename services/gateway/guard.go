package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/northbound"
)

// The names in the audit log and messages for those without an issued token.
const (
	nameLoopback   = "loopback"
	nameConfigured = "configured"
	nameNobody     = "nobody" // uses what is open to all
	nameRyu        = "ryu"    // uses Ryu's REST
	userPrefix     = "user "  // other users of this machine, by their numbers
)

// madePrefix begins the tokens that weft token makes.
const madePrefix = "weft_"

// guard decides which requests may enter, and as whom.
//
// If there are tokens, a request must present one. If there are none, and that is
// allowed at all, users of this machine may enter on loopback: root, the user who
// runs the controller and those whom the configuration names may do more than
// read. The kernel tells the user of a connection; connections through a proxy
// have no user. No foreign page may use a browser to send requests: the Host must
// name this machine (against DNS rebinding), and an Origin must be this very
// server (against cross-site requests). The same Origin is asked of requests that
// show what a browser adds by itself, a cookie or a certificate.
type guard struct {
	tokens   *tokens
	ledger   *ledger
	throttle *throttle
	open     bool         // clients without a token may enter
	users    map[int]role // of this machine, besides root and the user who runs the controller
	listen   string       // the host that the configuration names

	orCertificate string // what else than a token lets in, for messages

	count func(refusal)
}

// refusal is why a request was refused.
type refusal string

const (
	refusedToken refusal = "token"

	refusedCertificate refusal = "certificate"
	refusedRate        refusal = "too_many_tokens"
	refusedHost        refusal = "host"
	refusedOrigin      refusal = "origin"
	refusedSize        refusal = "size"
	refusedRole        refusal = "role"
	refusedUser        refusal = "user"
	refusedMany        refusal = "too_many_connections"
	refusedOldest      refusal = "made_room" // connections that were closed for others
	refusedOctets      refusal = "octets"
)

func refusals() []refusal {
	return []refusal{refusedToken, refusedCertificate, refusedRate, refusedHost, refusedOrigin, refusedSize, refusedRole, refusedUser, refusedMany, refusedOldest, refusedOctets}
}

// denied is a refused request.
type denied struct {
	kind  codes.Code
	why   refusal
	text  string
	after time.Duration // when to try again; 0: at any time
}

// open reports whether a request learns nothing about the network and needs no
// token.
func open(r *http.Request) bool {
	path := r.URL.Path
	return path == "/" || path == "/healthz" || strings.HasPrefix(path, pagePrefix) || path == sessionPath && r.Method != http.MethodGet
}

// calling reports whether a request is a call of a method, whose role counts.
func calling(r *http.Request) bool {
	return isGRPC(r) || strings.HasPrefix(r.URL.Path, "/v1/") && r.URL.Path != eventsPath
}

// protect returns a handler that passes permitted requests to next, with the
// caller in their context.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, no := g.check(r)
		if no == nil && who.role == roleNone && !open(r) {
			no = &denied{kind: codes.Unauthenticated, why: refusedToken, text: "a token is needed"} // check has let nobody in
		}
		if no == nil && who.role == roleNode && !calling(r) {
			no = &denied{kind: codes.PermissionDenied, why: refusedRole, text: fmt.Sprintf("%s has the role %s, which is for reports of nodes alone", who.credential(), who.role)}
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
			g.refuse(w, r, no)
			return
		}
		who.from = r.RemoteAddr
		r = visit.Request(r)
		next.ServeHTTP(visit.Writer(w), r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// refuse answers a request that is denied, and counts it.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, no *denied) {
	g.count(no.why)
	if no.kind == codes.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="weft"`)
	}
	if no.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.after.Seconds())+1))
	}
	refuse(w, r, no.kind, no.text)
}

// enter admits a request of a known caller, if there is room for it.
func (g *guard) enter(r *http.Request, who caller) (*northbound.Visit, *denied) {
	visit, err := northbound.Enter(r.Context(), rankOf(who.role))
	if err != nil {
		return nil, &denied{kind: codes.ResourceExhausted, why: refusedOctets, text: err.Error(), after: time.Second}
	}
	return visit, nil
}

// rankOf returns the precedence of clients of a role.
func rankOf(r role) northbound.Rank {
	switch {
	case r >= roleAdmin:
		return northbound.Administrator
	case r >= roleOperate:
		return northbound.Operator
	case r >= roleNode:
		return northbound.Reader
	}
	return northbound.Stranger
}

// newcomer returns the rank of a user of this machine without an earlier request.
func (g *guard) newcomer(uid int) northbound.Rank {
	if localsocket.Own(uid) {
		return northbound.Administrator
	}
	return rankOf(g.users[uid])
}

// check returns the caller of a request, or why it is refused.
func (g *guard) check(r *http.Request) (caller, *denied) {
	token, byCookie := presented(r)
	asked := g.tokens.asked() || !g.open
	shown := certified(r.TLS)
	foreign := foreignPage(r)
	switch {
	case foreign != "" && (byCookie || token == "" && shown != nil || r.URL.Path == sessionPath):
		return caller{}, &denied{kind: codes.PermissionDenied, why: refusedOrigin, text: fmt.Sprintf("requests from %s are refused: sign in on the controller's own page", foreign)}
	case asked && open(r):
		return caller{name: nameNobody}, nil
	case token == "" && shown != nil:
		return bearer(shown, time.Now())
	case asked && token == "":
		return caller{}, &denied{kind: codes.Unauthenticated, why: refusedToken, text: "a token is needed: send it as Authorization: Bearer TOKEN (weft: --token, --token-file or WEFT_TOKEN)" + g.orCertificate}
	case token != "" && (asked || g.ledger.some() || strings.HasPrefix(token, madePrefix)):
		who, no := g.identify(r, token)
		if no == nil || !byCookie || no.kind != codes.Unauthenticated {
			return who, no
		}
		// The token of the cookie has ended; what else the browser shows counts.
		if shown != nil {
			return bearer(shown, time.Now())
		}
		if asked {
			return who, no
		}
	}
	if host := hostname(r.Host); !localsocket.Loopback(host) && !strings.EqualFold(host, g.listen) {
		return caller{}, &denied{kind: codes.PermissionDenied, why: refusedHost, text: fmt.Sprintf("host %q is not this server: use 127.0.0.1 or localhost, or set gateway.token", host)}
	}
	if foreign != "" {
		return caller{}, &denied{kind: codes.PermissionDenied, why: refusedOrigin, text: fmt.Sprintf("requests from %s are refused: set gateway.token to let them in with it", foreign)}
	}
	return g.local(r)
}

// local returns the user of this machine that makes a request.
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

// fromKey is the context's key for the remote address of a connection.
type fromKey struct{}

// identify returns the caller of a token.
func (g *guard) identify(r *http.Request, token string) (caller, *denied) {
	from := northbound.ClientOf(r.Context(), r.RemoteAddr)
	if wait := g.throttle.wait(from, token); wait > 0 {
		return caller{}, &denied{codes.ResourceExhausted, refusedRate, fmt.Sprintf("too many wrong tokens from %v: wait %.0f s", from, wait.Seconds()+1), wait}
	}
	who := caller{}
	if sum := sha256.Sum256([]byte(token)); g.tokens.right(sum) {
		who = caller{name: nameConfigured, role: roleAdmin, sum: sum}
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

// holds reports whether a caller still has the rights that it entered with.
func (g *guard) holds(c caller) bool {
	switch {
	case c.local:
		return true
	case !c.until.IsZero():
		return time.Now().Before(c.until)
	case c.token != nil:
		return g.ledger.holds(c.token)
	}
	return g.tokens.right(c.sum)
}

// errEnded ends what a caller has open that has lost its rights.
var errEnded = status.Error(codes.Unauthenticated, "the token, or the certificate, has ended")

// lasting returns the context of a request that lasts: it ends, with errEnded as
// its cause, soon after its caller has lost the rights that it entered with.
func (g *guard) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	who := callerOf(ctx)
	if !who.local {
		go func() {
			look := time.NewTicker(time.Second)
			defer look.Stop()
			for g.holds(who) {
				select {
				case <-look.C:
				case <-ctx.Done():
					return
				}
			}
			end(errEnded)
		}()
	}
	return ctx, func() { end(context.Canceled) }
}

// presented returns the token of a request: from its Authorization header or a
// browser's cookie.
func presented(r *http.Request) (token string, byCookie bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "bearer") {
		return strings.TrimSpace(token), false
	}
	token = cookieToken(r)
	return token, token != ""
}

// hostname returns a Host header without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// foreignPage says which page of another site, or of another port, has a browser
// send a request; empty if none does. Browsers add an Origin to what may change
// something, and mark the rest by Sec-Fetch-Site: of that, the controller's own
// page is for everybody who follows a link to it.
func foreignPage(r *http.Request) string {
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host, r.TLS != nil) {
		return "pages of " + origin
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && !(open(r) && r.Method == http.MethodGet) {
		return "pages of other sites"
	}
	return ""
}

func sameOrigin(origin, host string, secure bool) bool {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == scheme && u.Host != "" && strings.EqualFold(u.Host, host)
}
