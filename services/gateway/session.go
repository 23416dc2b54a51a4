package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/internal/northbound"
)

// sessionPath is where browsers sign in (POST), out (DELETE), and learn who they
// are (GET).
const sessionPath = "/v1/session"

// cookieName is the cookie that holds a browser's token. It survives restarts of
// the gateway and ends with its token; scripts cannot read it, and other sites
// cannot have it sent (RFC 6265bis, SameSite).
const cookieName = "weft_token"

// cookieOf returns the name of the cookie for a connection. Over TLS, browsers take
// a name with this prefix from this host alone and for all of its paths, so that
// nothing else on the host can put another before it (RFC 6265bis, §4.1.3.2).
func cookieOf(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-" + cookieName
	}
	return cookieName
}

// maxSignIn is the largest request to sign in, in octets.
const maxSignIn = 4 << 10

// signIn is what a browser sends to sign in.
type signIn struct {
	Token string `json:"token"`
}

// signedIn is the answer: who the browser's user is.
type signedIn struct {
	Name string `json:"name"` // of the token; loopback, or user and its number
	Role string `json:"role"` // read, operate or admin
	// Cookie reports whether the browser has a cookie, and so can sign out.
	Cookie bool `json:"cookie"`
}

// cookie returns the cookie of a token; an empty one removes it.
func cookie(r *http.Request, token string) *http.Cookie {
	c := &http.Cookie{Name: cookieOf(r), Value: base64.RawURLEncoding.EncodeToString([]byte(token)), Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// cookieToken returns the token in a request's cookie, empty if there is none.
func cookieToken(r *http.Request) string {
	c, err := r.Cookie(cookieOf(r))
	if err != nil {
		return ""
	}
	token, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return string(token)
}

// session serves sessionPath.
func (g *guard) session(mux *http.ServeMux) {
	answer := func(w http.ResponseWriter, who caller, byCookie bool) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(signedIn{who.name, who.role.String(), byCookie}) // the client is gone if it fails
	}
	mux.HandleFunc("GET "+sessionPath, func(w http.ResponseWriter, r *http.Request) {
		answer(w, callerOf(r.Context()), cookieToken(r) != "")
	})
	mux.HandleFunc("DELETE "+sessionPath, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, cookie(r, ""))
		answer(w, caller{name: nameNobody}, false)
	})
	mux.HandleFunc("POST "+sessionPath, func(w http.ResponseWriter, r *http.Request) {
		in := signIn{}
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSignIn))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			refuse(w, r, codes.InvalidArgument, fmt.Sprintf("sign in: %s: want {\"token\": \"TOKEN\"}", northbound.Shortened(err.Error())))
			return
		}
		if in.Token = strings.TrimSpace(in.Token); in.Token == "" {
			refuse(w, r, codes.InvalidArgument, "token: is empty; weft token create makes one")
			return
		}
		who, no := g.identify(r, in.Token)
		if no == nil && who.role == roleNode {
			no = &denied{kind: codes.PermissionDenied, why: refusedRole, text: who.credential() + " has the role node, which is for reports of nodes alone"}
		}
		if no != nil {
			g.refuse(w, r, no)
			return
		}
		http.SetCookie(w, cookie(r, in.Token))
		answer(w, who, true)
	})
}
