package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
)

// role is what a client may do. Each of read, operate and admin includes those
// before it; node is apart: it may report nodes, as operate may, too, and nothing
// else.
type role int

// The roles; the zero value may do nothing.
const (
	roleNone role = iota
	roleNode
	roleRead
	roleOperate
	roleAdmin
)

var roleNames = [...]string{"none", "node", "read", "operate", "admin"}

// roleOf returns a role of the .proto files.
func roleOf(r api.Role) role {
	return map[api.Role]role{
		api.Role_ROLE_NODE: roleNode, api.Role_ROLE_READ: roleRead, api.Role_ROLE_OPERATE: roleOperate, api.Role_ROLE_ADMIN: roleAdmin,
	}[r]
}

// String returns the name of a role.
func (r role) String() string { return roleNames[r] }

// parseRole reads the name of a role that a token may have.
func parseRole(name string) (role, error) {
	for r := roleNode; r <= roleAdmin; r++ {
		if roleNames[r] == name {
			return r, nil
		}
	}
	return roleNone, fmt.Errorf("role %q; allowed: %s", name, strings.Join(roleNames[roleNode:], ", "))
}

// needs returns the least role that may call a method: administrator if the
// .proto files name none.
func needs(method string) role {
	if r := roleOf(api.RulesOf(method).GetRole()); r != roleNone {
		return r
	}
	return roleAdmin
}

// caller identifies who makes a request.
type caller struct {
	name  string // of the token; configured, or for none loopback or user and its number
	role  role
	local bool   // a user of this machine, without a token
	from  string // address and port
	token *issued
	sum   [sha256.Size]byte // of the configured token, if it has shown that
	until time.Time         // of its certificate; zero: it has shown none
}

// callerKey is the context's key for the caller.
type callerKey struct{}

// callerOf returns the caller of a request; without one, its role is zero.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// may returns an error if a caller may not call a method.
func (c caller) may(method string, needs role) error {
	if c.role >= needs && (needs != roleNode || c.role != roleRead) {
		return nil
	}
	if c.local {
		return status.Errorf(codes.PermissionDenied, "%s needs the role %s, and %s of this machine has %s: be root or the user who runs the controller, have it name you in gateway.users, or use a token (weft token create --role %s)", method, needs, c.name, c.role, needs)
	}
	return status.Errorf(codes.PermissionDenied, "%s needs the role %s, and %s has %s: use another, or have one made (weft token create --role %s)", method, needs, c.credential(), c.role, needs)
}
