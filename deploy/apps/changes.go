package apps

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
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

// nobodys is the name of callers without a certificate: processes of the user
// who runs Weft, and of root.
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

// appHeader is the HTTP or gRPC header with the name of the calling app.
const appHeader = "weft-app"

// visitor is the caller of a method; app is empty if the caller is no app.
type visitor struct{ who, from, app string }

type visitorKey struct{}

// visitorOf returns the caller of a method.
func visitorOf(ctx context.Context) visitor {
	v, _ := ctx.Value(visitorKey{}).(visitor)
	return v
}

// visited returns a context for a call, with its caller; peer is the context of
// the caller's connection, app the name that the caller claims. With
// certificates, the caller's certificate must contain that name, and supplies
// the name if the caller claims none.
func (o *Server) visited(ctx, peer context.Context, from, app string) (context.Context, error) {
	v := visitor{who: nobodys, from: from, app: app}
	if o.config.Peer != nil {
		ids := o.config.Peer(peer)
		v.who = strings.Join(ids, " ")
		switch {
		case app == "":
			for _, id := range ids {
				if name, ok := strings.CutPrefix(id, "weft://app/"); ok {
					v.app = name
					break
				}
			}
		case !mayBe(ids, app):
			return nil, api.Errorf(codes.PermissionDenied, "the certificate is that of %q, not of app %.60q (weft certs)", ids, app)
		}
	} else if app != "" {
		v.who += " " + strings.ToValidUTF8(app[:min(len(app), 40)], "")
	}
	return context.WithValue(ctx, visitorKey{}, v), nil
}

// tell reports a call that may have changed something.
func (c *calls) tell(ctx context.Context, method string, req proto.Message, begun time.Time, err error) {
	if c.changed == nil || reads(method) {
		return
	}
	v := visitorOf(ctx) // of whom nothing is known, nothing is told
	c.changed(Change{Who: v.who, From: v.from, Method: method, Request: req, Err: err, Begun: begun, Took: time.Since(begun)})
}
