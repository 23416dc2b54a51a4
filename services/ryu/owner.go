package ryu

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/northbound"
)

// minToken is the length of the shortest token that nobody can guess.
const minToken = 16

// owners decides who may change something through Ryu's REST.
type owners struct {
	exposed bool
	users   map[int]bool // of this machine, besides root and the user who runs the controller
	token   string       // empty: none
}

// fromKey is the context's key for the remote address of a connection.
type fromKey struct{}

// newOwners returns the owners of a configuration.
func newOwners(c *Config) (*owners, error) {
	o := &owners{exposed: c.Exposed, users: map[int]bool{}}
	for _, name := range c.Users {
		uid, err := localsocket.UserID(name)
		if err != nil {
			return nil, fmt.Errorf("ryu.users: %w", err)
		}
		o.users[uid] = true
	}
	if c.TokenFile == "" {
		return o, nil
	}
	info, err := os.Stat(c.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("ryu.token_file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("ryu.token_file %s: its mode is %04o, so others on this machine can read it; run chmod 600 %s", c.TokenFile, info.Mode().Perm(), c.TokenFile)
	}
	text, err := asowner.ReadFile(c.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("ryu.token_file: %w", err)
	}
	if o.token = strings.TrimSpace(string(text)); len(o.token) < minToken || strings.ContainsAny(o.token, " \t\r\n") {
		return nil, fmt.Errorf("ryu.token_file %s: want one line of at least %d characters, such as that of `openssl rand -hex 16`", c.TokenFile, minToken)
	}
	return o, nil
}

// rank returns the precedence of a request's user.
func (o *owners) rank(r *http.Request) northbound.Rank {
	if _, err := o.check(r, false); err != nil {
		return northbound.Stranger
	}
	named := *o
	named.exposed = false
	if _, err := named.check(r, true); err != nil {
		return northbound.Reader
	}
	return northbound.Operator
}

// newcomer returns the rank of a user of this machine without an earlier request.
func (o *owners) newcomer(uid int) northbound.Rank {
	if localsocket.Own(uid) || o.users[uid] {
		return northbound.Operator
	}
	return northbound.Stranger
}

// check returns the user of a request, and why the request is refused, if it is.
// Unknown users, behind a proxy or not named by the kernel, may do nothing; other
// users of this machine may read.
func (o *owners) check(r *http.Request, changes bool) (who string, err error) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if o.token != "" && strings.EqualFold(kind, "bearer") {
		a, b := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(o.token))
		if subtle.ConstantTimeCompare(a[:], b[:]) == 1 {
			return auditWho, nil
		}
		return auditWho, &failure{401, "the token is not that of ryu.token_file"}
	}
	if o.exposed {
		return auditWho, nil
	}
	if header := localsocket.Proxied(r.Header); header != "" {
		return auditWho, &failure{401, fmt.Sprintf("%s says that this request comes through a proxy, so whose it is cannot be told: send the token of ryu.token_file", header)}
	}
	from, _ := r.Context().Value(fromKey{}).(net.Addr)
	uid, err := localsocket.UserAt(from)
	switch {
	case err != nil:
		return auditWho, &failure{401, fmt.Sprintf("whose connection this is cannot be told (%v): send the token of ryu.token_file", err)}
	case localsocket.Own(uid):
		return auditWho, nil
	}
	who = auditWho + " user " + strconv.Itoa(uid)
	if changes && !o.users[uid] {
		return who, &failure{403, fmt.Sprintf("user %d of this machine may only read: be root or the user who runs the controller, have it name you in ryu.users, or send the token of ryu.token_file", uid)}
	}
	return who, nil
}
