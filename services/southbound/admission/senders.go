package admission

import (
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/ratelimit"
	"github.com/weft-sdn/weft/packet"
)

// senders are the allowances of the addresses that packet-ins of limited ports
// come from. The table has a fixed size, however many addresses an attacker
// makes up. An address whose allowance is full again is as good as unknown, so
// its slot is free. An address that finds no slot has only its port's
// allowance.
type senders struct{ table [sendersMax]sender }

type sender struct {
	key uint64 // address, port and class
	ratelimit.Bucket
}

const (
	sendersMax = 1 << 10 // a power of two
	sendersTry = 8       // slots that an address may use
)

// gauge returns the allowance of an address at a port, nil if there is no slot
// for it.
func (s *senders) gauge(mac flow.MAC, port flow.Port, c Class, now int64) *ratelimit.Bucket {
	key := mac.Uint64() ^ uint64(port)<<48 ^ uint64(port)>>16<<32 ^ uint64(c+1)<<62
	at := int(flow.Spread(key) >> 54)
	var free *sender
	for i := range sendersTry {
		e := &s.table[(at+i)&(sendersMax-1)]
		if e.key == key {
			return &e.Bucket
		}
		if free == nil && e.Full(now) {
			free = e
		}
	}
	if free == nil {
		return nil
	}
	free.key, free.Bucket = key, ratelimit.Bucket{}
	return &free.Bucket
}

// isNeighbourDiscovery reports whether a packet other than ARP is neighbour discovery or
// DHCP, which hosts need to find each other.
func isNeighbourDiscovery(in *flow.PacketIn) bool {
	k := packet.Headers(in)
	switch {
	case k.EthType == flow.EthTypeIPv6 && k.IPProto == flow.IPProtoICMPv6:
		return k.ICMPType >= 133 && k.ICMPType <= 137 // RFC 4861 §4
	case k.IPProto == flow.IPProtoUDP:
		return k.TPDst == 67 || k.TPDst == 68 || k.TPDst == 546 || k.TPDst == 547
	}
	return false
}
