package deploy

import (
	"slices"
	"strings"

	"weft"
)

// The prefixes of identities in certificates.
const (
	workerIdentity  = "weft://worker/"
	serviceIdentity = "weft://service/"
)

// AllowDeclared returns NodeConfig.Allow for callers with certificates: between
// processes whatever they need, and of methods those that the Spec of one of
// the caller's services lists in Calls.
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
