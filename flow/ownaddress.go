package flow

import "hash/fnv"

// OwnAddressCookie returns the cookie that scp's stage gives a packet of a consumer to a producer's
// own address, for the balancer's stage to give the connection to the member that it chooses for the
// VIP of a name. No entry has it.
func OwnAddressCookie(vip string) Cookie {
	h := fnv.New32a()
	h.Write([]byte(vip))
	return NewCookie(OwnerSCP, ownAddressGeneration, h.Sum32())
}

// ownAddressGeneration is no generation of scp's entries.
const ownAddressGeneration = 2
