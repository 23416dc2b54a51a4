package nat

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// v6 reports whether a gateway translates IPv6; it translates IPv4 or IPv6, as
// its pool is.
func (g *gateway) v6() bool { return g.first.Is6() }

func (g *gateway) version() string {
	if g.v6() {
		return "IPv6"
	}
	return "IPv4"
}

func (g *gateway) example() string {
	if g.v6() {
		return "fd00::/64"
	}
	return "10.0.0.0/24"
}

// address reads an address of the gateway's version that a host can have.
func (g *gateway) address(text string) (netip.Addr, error) {
	a, err := address(text)
	if err == nil && a.Is6() != g.v6() {
		err = fmt.Errorf("address %q: want an %s address, as the pool has", text, g.version())
	}
	return a, err
}

// address reads an address that a host can have.
func address(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
		return netip.Addr{}, fmt.Errorf("address %q: want an IPv4 or IPv6 address", text)
	}
	return a, nil
}

// readPool reads ADDRESS, FIRST-LAST or ADDRESS/BITS, which stands for all
// addresses of that prefix.
func readPool(text string) (first, last netip.Addr, err error) {
	wrong := fmt.Errorf("pool %q: want ADDRESS, FIRST-LAST or a prefix such as 2001:db8::/112, at most %d IPv4 or %d IPv6 addresses", text, poolMax, poolMax6)
	from, to, ranged := strings.Cut(text, "-")
	switch p, failed := netip.ParsePrefix(strings.TrimSpace(text)); {
	case failed == nil:
		first = p.Masked().Addr()
		size := first.BitLen() - p.Bits()
		if size > 16 {
			return first, first, wrong
		}
		last = plus(first, 1<<size-1)
		if _, err := address(first.String()); err != nil {
			return first, last, wrong
		}
	case ranged:
		if last, err = address(to); err != nil {
			return first, last, wrong
		}
		fallthrough
	default:
		if first, err = address(from); err != nil {
			return first, last, wrong
		}
		if !ranged {
			last = first
		}
	}
	room := uint64(poolMax)
	if first.Is6() {
		room = poolMax6
	}
	if first.Is6() != last.Is6() || last.Less(first) || span(first, last) > room {
		return first, last, wrong
	}
	return first, last, nil
}

// halves returns an address as two numbers.
func halves(a netip.Addr) (high, low uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// plus returns the address n after another. The last 64 bits must have room for
// it.
func plus(a netip.Addr, n uint64) netip.Addr {
	b := a.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	sum := netip.AddrFrom16(b)
	if a.Is4() {
		sum = sum.Unmap()
	}
	return sum
}

// span returns how many addresses a range has; one that spans more than a network
// of 64 bits has more than any allowed range.
func span(first, last netip.Addr) uint64 {
	h1, l1 := halves(first)
	h2, l2 := halves(last)
	if h1 != h2 || l2-l1 == math.MaxUint64 {
		return math.MaxUint64
	}
	return l2 - l1 + 1
}

// prefixes returns the networks that make up a range of addresses.
func prefixes(first, last netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	_, low := halves(first)
	for n, a := span(first, last), first; n > 0; {
		size := uint64(1) << min(bits.TrailingZeros64(low), bits.Len64(n)-1)
		out = append(out, netip.PrefixFrom(a, a.BitLen()-bits.Len64(size)+1))
		if n -= size; n > 0 {
			a, low = plus(a, size), low+size
		}
	}
	return out
}

// ip matches packets of the gateway's version.
func (g *gateway) ip() flow.Match {
	if g.v6() {
		return flow.Match{}.WithEthType(flow.EthTypeIPv6)
	}
	return flow.Match{}.WithEthType(flow.EthTypeIPv4)
}

// alone returns the network of one address.
func alone(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
