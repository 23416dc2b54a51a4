package outside

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
)

// Change is a call from outside that may have changed something, for the audit
// log.
type Change struct {
	Who     string // the identities in the caller's certificate; nobodys without one
	From    string // the caller's address
	Method  string
	Request proto.Message
	Err     error // nil if it was carried out
	Begun   time.Time
	Took    time.Duration
}

// nobodys is what callers without a certificate are called: processes of the
// user who runs Weft, and of root.
const nobodys = "local app"

// reads reports a method that only reads, as its name says.
func reads(method string) bool {
	_, name, _ := strings.Cut(method, ".")
	for _, verb := range []string{"List", "Get", "Find", "Read", "Check"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return false
}

// visitor is who makes a call.
type visitor struct{ who, from string }

type visitorKey struct{}

// visited returns a context for a call, with who makes it; peer is that of the
// caller's connection.
func (o *Outside) visited(ctx, peer context.Context, from string) context.Context {
	v := visitor{who: nobodys, from: from}
	if o.config.Peer != nil {
		v.who = strings.Join(o.config.Peer(peer), " ")
	}
	return context.WithValue(ctx, visitorKey{}, v)
}

// tell tells of a call that may have changed something.
func (c *calls) tell(ctx context.Context, method string, req proto.Message, begun time.Time, err error) {
	if c.changed == nil || reads(method) {
		return
	}
	v, _ := ctx.Value(visitorKey{}).(visitor) // of whom nothing is known, nothing is told
	c.changed(Change{Who: v.who, From: v.from, Method: method, Request: req, Err: err, Begun: begun, Took: time.Since(begun)})
}
