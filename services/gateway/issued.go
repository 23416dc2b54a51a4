package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// tokensMax bounds the tokens that clients may make.
const tokensMax = 1000

// issued is a token that a client has made, as stored. It contains only the
// SHA-256 of the token.
type issued struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	SHA256    string    `json:"sha256"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never

	role role
	sum  [sha256.Size]byte
}

// readIssued parses a stored token.
func readIssued(text []byte) (*issued, error) {
	t := &issued{}
	err := json.Unmarshal(text, t)
	if err == nil {
		t.role, err = parseRole(t.Role)
	}
	if err == nil {
		t.sum, err = readSum(t.SHA256)
	}
	return t, err
}

// readSum parses a SHA-256.
func readSum(digits string) (sum [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != len(sum) {
		return sum, fmt.Errorf("sha256: %q: want the SHA-256 of the token, 64 hexadecimal digits (weft token create makes both)", digits)
	}
	return [sha256.Size]byte(b), nil
}

func (t *issued) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// tell returns a token as clients see it.
func (t *issued) tell(now time.Time) *api.Token {
	told := &api.Token{
		Name: t.Name, Role: t.Role, Created: t.Created.UTC().Format(time.RFC3339), CreatedBy: t.CreatedBy, Expired: t.expired(now),
	}
	if !t.Expires.IsZero() {
		told.Expires = t.Expires.UTC().Format(time.RFC3339)
	}
	return told
}

// shelf is the store of tokens: the part of a bucket that the ledger needs.
type shelf interface {
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Delete(ctx context.Context, key string) error
}

// ledger is the tokens that clients have made, as stored. Other instances of the
// gateway change the store, too.
type ledger struct {
	shelf shelf
	now   func() time.Time
	bad   func(name string, err error)

	writing sync.Mutex // held while the store changes, before mu
	mu      sync.RWMutex
	entries map[string]entry // guarded by mu
}

// entry is a token, nil if revoked, and its known revision.
type entry struct {
	token    *issued
	revision uint64
}

func newLedger(s shelf, now func() time.Time, bad func(string, error)) *ledger {
	return &ledger{shelf: s, now: now, bad: bad, entries: map[string]entry{}}
}

// changed applies a change of the store; a nil value is a removed token.
func (l *ledger) changed(name string, value []byte, revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision < l.entries[name].revision {
		return // older than our own write
	}
	if value == nil {
		delete(l.entries, name)
		return
	}
	t, err := readIssued(value)
	if err != nil {
		l.bad(name, err)
		delete(l.entries, name)
		return
	}
	l.entries[name] = entry{t, revision}
}

// find returns the token that a client has presented, nil if there is none. It
// takes the same time for every token.
func (l *ledger) find(presented string) (found *issued) {
	sum := sha256.Sum256([]byte(presented))
	now := l.now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, e := range l.entries {
		if e.token != nil && subtle.ConstantTimeCompare(sum[:], e.token.sum[:]) == 1 && !e.token.expired(now) {
			found = e.token
		}
	}
	return found
}

// holds reports whether a token is still valid.
func (l *ledger) holds(t *issued) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e := l.entries[t.Name]
	return e.token != nil && e.token.sum == t.sum && e.token.role == t.role && !e.token.expired(l.now())
}

// some reports whether there are any tokens.
func (l *ledger) some() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, e := range l.entries {
		if e.token != nil {
			return true
		}
	}
	return false
}

// reserved are the names that the audit log uses for others.
func reserved() []string { return []string{nameLoopback, nameConfigured, nameNobody, nameRyu} }

// create adds a token. Repeating it changes nothing.
func (l *ledger) create(ctx context.Context, req *api.CreateTokenRequest) (*api.Token, error) {
	now := l.now()
	t := &issued{Name: req.Name, Role: req.Role, SHA256: strings.ToLower(req.Sha256), Created: now.UTC().Truncate(time.Second), CreatedBy: callerOf(ctx).name}
	err := api.CheckName("name", req.Name)
	switch {
	case err != nil:
	case slices.Contains(reserved(), req.Name):
		err = fmt.Errorf("name %q is what the audit log calls others; choose another", req.Name)
	}
	if err == nil {
		t.role, err = parseRole(req.Role)
	}
	if err == nil {
		t.sum, err = readSum(req.Sha256)
	}
	if err == nil && req.Expires != "" {
		if t.Expires, err = time.Parse(time.RFC3339, req.Expires); err != nil {
			err = fmt.Errorf("expires: %q: want a time as of RFC 3339, such as 2030-01-31T00:00:00Z", req.Expires)
		} else if t.expired(now) {
			err = fmt.Errorf("expires: %s is over", req.Expires)
		}
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%v", err)
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.RLock()
	old, count := l.entries[t.Name].token, 0
	for _, e := range l.entries {
		if e.token == nil || e.token.Name == t.Name {
			continue
		}
		count++
		if e.token.sum == t.sum {
			err = api.Errorf(codes.AlreadyExists, "this token is that of %s already; make another", e.token.Name)
		}
	}
	l.mu.RUnlock()
	switch {
	case err != nil:
		return nil, err
	case old != nil && old.sum == t.sum && old.role == t.role && old.Expires.Equal(t.Expires):
		return old.tell(now), nil
	case old != nil:
		return nil, api.Errorf(codes.AlreadyExists, "token %s exists, created %s by %s; revoke it first, or choose another name", old.Name, old.Created.Format(time.RFC3339), old.CreatedBy)
	case count >= tokensMax:
		return nil, api.Errorf(codes.ResourceExhausted, "there are %d tokens, and no more are possible; revoke some", count)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	revision, err := l.shelf.Put(ctx, t.Name, text)
	if err != nil {
		return nil, api.Errorf(codes.Unavailable, "keep token %s: %v", t.Name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[t.Name] = entry{t, revision}
	return t.tell(now), nil
}

// list returns all tokens.
func (l *ledger) list(context.Context, *api.ListTokensRequest) (*api.ListTokensResponse, error) {
	now := l.now()
	resp := &api.ListTokensResponse{}
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, e := range l.entries {
		if e.token != nil {
			resp.Tokens = append(resp.Tokens, e.token.tell(now))
		}
	}
	slices.SortFunc(resp.Tokens, func(a, b *api.Token) int { return strings.Compare(a.Name, b.Name) })
	return resp, nil
}

// revoke revokes a token. It succeeds if there is no such token.
func (l *ledger) revoke(ctx context.Context, req *api.RevokeTokenRequest) (*api.RevokeTokenResponse, error) {
	if api.CheckName("name", req.Name) != nil {
		return nil, api.Errorf(codes.InvalidArgument, "name %.80q: no token has such a name; weft token list shows all", req.Name)
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	old := l.entries[req.Name]
	if old.token != nil { // at once, even if the store fails
		l.entries[req.Name] = entry{nil, old.revision + 1}
	}
	l.mu.Unlock()
	if err := l.shelf.Delete(ctx, req.Name); err != nil {
		return nil, api.Errorf(codes.Unavailable, "token %s has ended here, but that could not be kept (%v); revoke it again", req.Name, err)
	}
	return &api.RevokeTokenResponse{Revoked: old.token != nil}, nil
}
