package scp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
)

// notifier puts the front between the NRF and the subscribers to the status of instances,
// so that they learn of end points. The NRF keeps a URI of the front that contains the
// subscriber's own URI, signed: it survives a restart of either, and the front notifies
// only URIs that a subscriber has given.
type notifier struct {
	front *front
	key   []byte
	named bool // the NRF can reach the front: without TLS, or its certificate names its address

	mu       sync.Mutex             // guards the following
	notified map[string]endpointRef // by instance
}

// callback is a subscriber: the URI at which it is notified, its type and instance.
type callback struct {
	URI      string     `json:"u"`
	Type     sbi.NFType `json:"t,omitempty"`
	Instance string     `json:"i,omitempty"`
}

const (
	subscriptions = "/nnrf-nfm/v1/subscriptions"
	callbacks     = "/weft-scp/v1/notifications/"
	callbackURI   = "nfStatusNotificationUri"
	mostNotified  = 20_000
	notifierKey   = 32 // octets
)

// newNotifier returns a notifier that signs by the key in a bucket. It makes that key if
// there is none, and returns nil if the key cannot be stored: no URI would survive a
// restart.
func newNotifier(ctx context.Context, f *front, keys object.Bucket) *notifier {
	key, _, err := keys.Get(ctx, "notifications")
	if err == nil && len(key) != notifierKey {
		key = make([]byte, notifierKey)
		rand.Read(key)
		_, err = keys.Put(ctx, "notifications", key)
	}
	if err != nil {
		f.log.Warn("there is no key to sign callbacks with, so the NRF notifies subscribers of producers' own addresses", "error", err)
		return nil
	}
	n := &notifier{front: f, key: key, named: true, notified: map[string]endpointRef{}}
	if own := f.proxy.cfg.Load().self().Addr(); f.nrf.tls != nil {
		leaf := f.nrf.tls.Certificates[0].Leaf
		if err := leaf.VerifyHostname(own.String()); err != nil {
			n.named = false
			f.log.Warn("the certificate (scp.certificate) does not name the front's own address, to which the NRF is to connect, so it notifies subscribers of producers' own addresses", "address", own, "error", err)
		}
	}
	return n
}

func (n *notifier) sign(text []byte) []byte {
	h := hmac.New(sha256.New, n.key)
	h.Write(text)
	return h.Sum(nil)[:16]
}

// seal returns the front's URI for a callback.
func (n *notifier) seal(c callback) string {
	text, _ := json.Marshal(c) // of strings
	return n.front.nrf.scheme + "://" + n.front.proxy.cfg.Load().self().String() + callbacks + base64.RawURLEncoding.EncodeToString(append(n.sign(text), text...))
}

// open returns the callback in a token; it is ok if seal has made that.
func (n *notifier) open(token string) (c callback, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(text) < 16 || !hmac.Equal(text[:16], n.sign(text[16:])) {
		return c, false
	}
	return c, json.Unmarshal(text[16:], &c) == nil
}

// subscribe passes a subscription, or a change of one, on to the NRF, with a URI of the
// front if the front can notify the subscriber.
func (n *notifier) subscribe(w http.ResponseWriter, r *http.Request, client netip.Addr) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodies.Octets))
	if err != nil {
		n.front.proxy.count.malformed.Add(1)
		sbi.WriteProblem(w, unreachable(err))
		return
	}
	if other := n.rewrite(r.Method, body, client); other != nil {
		body = other
		r.Header.Del("Accept-Encoding") // the answer is read
	}
	n.front.proxy.count.passed.Add(1)
	keepBody(r, body)
	n.front.toNRF(w, r)
}

// rewrite returns a subscription, or a patch of one, with a URI of the front; nil if it
// stays as it is.
func (n *notifier) rewrite(method string, body []byte, client netip.Addr) []byte {
	if !n.front.proxy.cfg.Load().Notifications || !n.named || bodies.Check(body) != nil {
		return nil
	}
	if method == http.MethodPatch {
		var items []map[string]json.RawMessage
		if json.Unmarshal(body, &items) != nil {
			return nil
		}
		changed := false
		for _, item := range items {
			var at, uri string
			_ = json.Unmarshal(item["path"], &at) // else it is not this
			if at != "/"+callbackURI || json.Unmarshal(item["value"], &uri) != nil {
				continue
			}
			if c := (callback{URI: uri, Type: n.typeAt(client)}); n.reaches(uri, client) {
				item["value"], _ = json.Marshal(n.seal(c))
				changed = true
			}
		}
		if !changed {
			return nil
		}
		text, _ := json.Marshal(items) // has been JSON
		return text
	}
	var s sbi.SubscriptionData
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &s) != nil || json.Unmarshal(body, &members) != nil || !n.reaches(s.NotificationURI, client) {
		return nil
	}
	if c := s.Cond; c != nil && (c.NFInstanceID != "" || len(c.NFInstanceIDList) > 0) {
		return nil // of instances that it knows
	}
	c := callback{URI: s.NotificationURI, Type: s.ReqNFType, Instance: strings.ToLower(s.ReqNFInstanceID)}
	if c.Type == "" {
		c.Type = n.typeAt(client)
	}
	members[callbackURI], _ = json.Marshal(n.seal(c))
	text, _ := json.Marshal(members) // has been JSON
	return text
}

// typeAt returns the type that is registered from an address; empty if there is none,
// or more than one.
func (n *notifier) typeAt(client netip.Addr) sbi.NFType {
	p := n.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if types := typesOf(p.consumersOf(client)); len(types) == 1 {
		return types[0]
	}
	return ""
}

// reaches reports whether the front may notify a URI for a client: the URI is at the
// client's port of the network or, if the client is an SCP, at a registered address.
func (n *notifier) reaches(uri string, client netip.Addr) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" && (u.Scheme != "https" || n.front.nrf.tls == nil) || u.User != nil || u.Fragment != "" || len(uri) > 1024 {
		return false
	}
	at, err := addressOf(u)
	p := n.front.proxy
	if err != nil || !dialable(p.cfg.Load(), at) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.together(at.Addr(), client) || p.relays(client) && len(p.byAddr[at.Addr()]) > 0
}

// restore gives the subscriber its own URI in the NRF's answer.
func (n *notifier) restore(resp *http.Response) error {
	text, err := peek(resp)
	if err != nil {
		return err
	}
	var members map[string]json.RawMessage
	var uri string
	if json.Unmarshal(text, &members) == nil && json.Unmarshal(members[callbackURI], &uri) == nil {
		if _, token, ok := strings.Cut(uri, callbacks); ok {
			if c, ok := n.open(token); ok {
				members[callbackURI], _ = json.Marshal(c.URI)
				text, _ = json.Marshal(members) // has been JSON
				setBody(resp, text)
			}
		}
	}
	return nil
}
