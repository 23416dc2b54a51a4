package deploy

import (
	"context"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/transport"
)

// The prefixes of identities in certificates.
const (
	workerIdentity  = "weft://worker/"
	serviceIdentity = "weft://service/"
)

// FromBus returns a handler for requests that arrive over the bus. It does not
// ask Allow: the bus authenticates its own clients, and any of them may
// apply another plan anyway.
func FromBus(h transport.Handler) transport.Handler { return fromBus{h} }

type fromBus struct{ transport.Handler }

type fromBusKey struct{}

// Call handles a request (transport.Handler).
func (f fromBus) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	return f.Handler.Call(context.WithValue(ctx, fromBusKey{}, true), method, req)
}

// AllowDeclared returns NodeConfig.Allow for callers with certificates.
// Processes may make any request of each other; a service's method may be
// called only if the Spec of one of the caller's services lists it in Calls.
func AllowDeclared(specs []weft.Spec) func(identities []string, method string) bool {
	callers := map[string][]string{} // by method
	for _, s := range specs {
		for _, m := range s.Calls {
			callers[m.MethodName()] = append(callers[m.MethodName()], s.Name)
		}
	}
	return func(identities []string, method string) bool {
		if strings.HasPrefix(method, "deploy.") {
			return slices.ContainsFunc(identities, func(id string) bool { return strings.HasPrefix(id, workerIdentity) })
		}
		return slices.ContainsFunc(identities, func(id string) bool {
			name, ok := strings.CutPrefix(id, serviceIdentity)
			return ok && slices.Contains(callers[method], name)
		})
	}
}
