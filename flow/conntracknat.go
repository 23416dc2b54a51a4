package flow

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// NAT is Open vSwitch's action nat (NXAST_NAT) inside of ct. Without Src and
// Dst, it translates packets of connections that are translated already.
type NAT struct {
	Src, Dst         bool // at most one
	Min, Max         netip.Addr
	MinPort, MaxPort uint16 // 0: as they are
	Persistent       bool   // the same address for a client always
	Hash, Random     bool   // how to choose; at most one
}

// check returns an error if a switch would reject the action inside of a ct.
func (n *NAT) check(commit bool) error {
	switch {
	case n.Src && n.Dst:
		return fmt.Errorf("nat: want src or dst, not both")
	case !n.Src && !n.Dst:
		if *n != (NAT{}) {
			return fmt.Errorf("nat: addresses, ports and choices need src or dst")
		}
		return nil
	case !commit:
		return fmt.Errorf("nat: src and dst need commit in ct")
	case n.Hash && n.Random:
		return fmt.Errorf("nat: want hash or random, not both")
	case !n.Min.IsValid() && (n.Max.IsValid() || n.MinPort != 0):
		return fmt.Errorf("nat: ports and the end of a range need a first address")
	case n.Min.Zone() != "" || n.Max.Zone() != "" || n.Min.Is4In6() || n.Max.Is4In6():
		return fmt.Errorf("nat: want plain addresses, without zone")
	case n.Max.IsValid() && (n.Min.Is4() != n.Max.Is4() || !n.Min.Less(n.Max)):
		return fmt.Errorf("nat: want a range that ends above its first address %v, not %v", n.Min, n.Max)
	case n.MaxPort != 0 && (n.MinPort == 0 || n.MaxPort <= n.MinPort):
		return fmt.Errorf("nat: want a range of ports that ends above its first port %d, not %d", n.MinPort, n.MaxPort)
	}
	return nil
}

// String returns the translation as ovs-ofctl writes it, such as
// "nat(src=198.51.100.1-198.51.100.2:1024-65535)".
func (n NAT) String() string {
	if n == (NAT{}) {
		return "nat"
	}
	var b strings.Builder
	switch {
	case n.Src:
		b.WriteString("nat(src")
	case n.Dst:
		b.WriteString("nat(dst")
	}
	if n.Min.IsValid() {
		b.WriteByte('=')
		form := "%v"
		if n.Min.Is6() && n.MinPort != 0 {
			form = "[%v]"
		}
		fmt.Fprintf(&b, form, n.Min)
		if n.Max.IsValid() {
			fmt.Fprintf(&b, "-"+form, n.Max)
		}
		if n.MinPort != 0 {
			fmt.Fprintf(&b, ":%d", n.MinPort)
		}
		if n.MaxPort != 0 {
			fmt.Fprintf(&b, "-%d", n.MaxPort)
		}
	}
	for _, o := range []struct {
		on   bool
		name string
	}{{n.Persistent, "persistent"}, {n.Hash, "hash"}, {n.Random, "random"}} {
		if o.on {
			b.WriteString("," + o.name)
		}
	}
	return b.String() + ")"
}

// natForms are the ways to write the action, for messages.
const natForms = "nat or nat(…)"

// isNATText reports whether s is one of natForms.
func isNATText(s string) bool {
	_, inside := cutCall(s, "nat")
	return inside || s == "nat"
}

// parseNATText reads one of natForms.
func parseNATText(s string) (NAT, error) {
	var n NAT
	s, inside := cutCall(s, "nat")
	if !inside {
		return n, nil
	}
	for _, part := range strings.Split(s, ",") {
		name, value, has := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "src" && !n.Src, name == "dst" && !n.Dst:
			n.Src, n.Dst = n.Src || name == "src", n.Dst || name == "dst"
			if has {
				if err := n.parseRange(value); err != nil {
					return NAT{}, err
				}
			}
		case name == "persistent" && !has:
			n.Persistent = true
		case name == "hash" && !has:
			n.Hash = true
		case name == "random" && !has:
			n.Random = true
		default:
			return NAT{}, fmt.Errorf("nat: %q: want src=ADDRESSES:PORTS, dst=ADDRESSES:PORTS, persistent, hash or random", part)
		}
	}
	return n, nil
}

// parseRange reads ADDRESS[-ADDRESS][:PORT[-PORT]]; IPv6 addresses with ports
// stand in brackets.
func (n *NAT) parseRange(s string) error {
	addresses, ports := s, ""
	if strings.Contains(s, "[") {
		if i := strings.LastIndexByte(s, ']'); i >= 0 && strings.HasPrefix(s[i+1:], ":") {
			addresses, ports = s[:i+1], s[i+2:]
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 && strings.Count(s, ":") == 1 {
		addresses, ports = s[:i], s[i+1:]
	}
	first, last, ranged := strings.Cut(addresses, "-")
	var err error
	if n.Min, err = netip.ParseAddr(strings.Trim(first, "[]")); err == nil && ranged {
		n.Max, err = netip.ParseAddr(strings.Trim(last, "[]"))
	}
	if err != nil {
		return fmt.Errorf("nat: addresses %q: want ADDRESS or FIRST-LAST", addresses)
	}
	if ports == "" {
		return nil
	}
	first, last, ranged = strings.Cut(ports, "-")
	p, err := strconv.ParseUint(first, 10, 16)
	q := uint64(0)
	if err == nil && ranged {
		q, err = strconv.ParseUint(last, 10, 16)
	}
	if err != nil || p == 0 || ranged && q == 0 {
		return fmt.Errorf("nat: ports %q: want PORT or FIRST-LAST, 1 to 65535", ports)
	}
	n.MinPort, n.MaxPort = uint16(p), uint16(q)
	return nil
}
