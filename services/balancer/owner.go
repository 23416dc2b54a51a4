package balancer

import (
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// owner is who made a VIP; nobody else changes it. The calls of clients are the
// operator's, whatever they say; services name themselves in calls that clients
// cannot make.
type owner uint8

const (
	byOperator owner = iota
	bySCP
)

var owners = [...]string{"operator", "scp"}

// mine refuses changes of a VIP by others than its owner.
func (v *vip) mine(who owner) error {
	switch {
	case v.owner == who:
		return nil
	case who == byOperator:
		return api.Errorf(codes.FailedPrecondition, "vip %s: belongs to the service %s, which alone changes it; use another name", v.name, owners[v.owner])
	default:
		return api.Errorf(codes.FailedPrecondition, "vip %s: belongs to %s; %s does not change it", v.name, owners[v.owner], owners[who])
	}
}

// serviceOwner returns the owner that a service names.
func serviceOwner(name string) (owner, error) {
	for i, o := range owners {
		if o == name && owner(i) != byOperator {
			return owner(i), nil
		}
	}
	return 0, api.Errorf(codes.InvalidArgument, "owner %q: want scp", name)
}
