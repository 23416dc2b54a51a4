package flow

import "slices"

// The numbers of groups and meters, which all services share on a switch, are
// divided by owner as follows, so that each deletes its own only. Groups below
// 0x80000000 are those of routes, meters below GuardMeters are qos's.
const (
	FloodGroups    uint32 = 0xa0000000 // forwarding's, and the 1<<28 numbers from here
	BalancerGroups uint32 = 0xb0000000 // and the 1<<28 numbers from here
	PolicyGroups   uint32 = 0xc0000000 // and owner<<20 and the 1<<20 numbers from there: other owners'

	GuardMeters  uint32 = 0x10000 // and the 1<<16 numbers from each of these
	TenantMeters uint32 = 0x20000
)

// GroupOwner returns the owner whose numbers this group's is among;
// OwnerForeign if it is nobody's.
func GroupOwner(id uint32) Owner {
	switch {
	case id == 0:
		return OwnerForeign
	case id < 1<<31:
		return OwnerRoutes
	case id&0xf0000000 == FloodGroups:
		return OwnerForwarding
	case id&0xf0000000 == BalancerGroups:
		return OwnerBalancer
	case id&0xf0000000 == PolicyGroups:
		if o := Owner(id >> 20); slices.Contains(PolicyOwners(), o) {
			return o
		}
	}
	return OwnerForeign
}

// MeterOwner returns the owner whose numbers this meter's is among;
// OwnerForeign if it is nobody's.
func MeterOwner(id uint32) Owner {
	switch {
	case id == 0 || id >= TenantMeters+1<<16:
		return OwnerForeign
	case id < GuardMeters:
		return OwnerQoS
	case id < TenantMeters:
		return OwnerGuard
	}
	return OwnerTenants
}

// PolicyOwners returns the owners that are policy services.
func PolicyOwners() []Owner {
	return []Owner{OwnerFirewall, OwnerBalancer, OwnerNAT, OwnerQoS, OwnerTenants, OwnerGuard, OwnerRouter}
}
