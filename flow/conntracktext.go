package flow

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

var ctStateNames = [...]string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}

// ctStateText returns a masked state as "+new+trk-snat"; false if bits without
// a name count.
func ctStateText(value, mask uint32) (string, bool) {
	if mask>>len(ctStateNames) != 0 {
		return "", false
	}
	var b strings.Builder
	for _, sign := range []string{"+", "-"} {
		for i, name := range ctStateNames {
			if mask>>i&1 != 0 && (value>>i&1 != 0) == (sign == "+") {
				b.WriteString(sign + name)
			}
		}
	}
	return b.String(), true
}

// parseCTState reads what ctStateText writes.
func parseCTState(s string) (value, mask uint32, err error) {
next:
	for rest := s; rest != ""; {
		sign := rest[0]
		end := strings.IndexAny(rest[1:], "+-") + 1
		if end == 0 {
			end = len(rest)
		}
		name := rest[1:end]
		rest = rest[end:]
		for i, n := range ctStateNames {
			if strings.EqualFold(n, name) && (sign == '+' || sign == '-') && mask>>i&1 == 0 {
				mask |= 1 << i
				if sign == '+' {
					value |= 1 << i
				}
				continue next
			}
		}
		return 0, 0, fmt.Errorf("want signs and names, each once, such as +trk+new: + or - and %s", strings.Join(ctStateNames[:], ", "))
	}
	return value, mask, nil
}

// String returns the action as ovs-ofctl writes it, such as
// "ct(commit,table=5,zone=7,nat(src=198.51.100.1-198.51.100.2:1024-65535))".
// ParseAction reads it back.
func (c CT) String() string {
	var parts []string
	if c.Commit {
		parts = append(parts, "commit")
	}
	if c.Force {
		parts = append(parts, "force")
	}
	if c.Table != NoTable {
		parts = append(parts, fmt.Sprintf("table=%d", c.Table))
	}
	if c.Zone != 0 {
		parts = append(parts, fmt.Sprintf("zone=%d", c.Zone))
	}
	if c.HasNAT {
		parts = append(parts, c.NAT.String())
	}
	return "ct(" + strings.Join(parts, ",") + ")"
}

// String returns the translation as ovs-ofctl writes it.
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

// cutCall returns what is between the parentheses of name(…).
func cutCall(s, name string) (string, bool) {
	if len(s) < len(name)+2 || !strings.EqualFold(s[:len(name)], name) || s[len(name)] != '(' || s[len(s)-1] != ')' {
		return "", false
	}
	return s[len(name)+1 : len(s)-1], true
}

// splitOutside splits at the commas that are not in parentheses.
func splitOutside(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth <= 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

// parseCTText reads what is between the parentheses of a ct.
func parseCTText(s string) (CT, error) {
	c := CT{Table: NoTable}
	if s == "" {
		return c, nil
	}
	for _, part := range splitOutside(s) {
		part = strings.TrimSpace(part)
		name, value, _ := strings.Cut(part, "=")
		inner, isNAT := cutCall(part, "nat")
		var err error
		var n uint64
		switch {
		case part == "commit":
			c.Commit = true
		case part == "force":
			c.Force = true
		case part == "nat":
			c.HasNAT = true
		case isNAT:
			c.HasNAT = true
			c.NAT, err = parseNATText(inner)
		case name == "table":
			if n, err = strconv.ParseUint(value, 0, 8); err == nil && n == uint64(NoTable) {
				err = fmt.Errorf("there is no table 255")
			}
			c.Table = uint8(n)
		case name == "zone":
			n, err = strconv.ParseUint(value, 0, 16)
			c.Zone = uint16(n)
		default:
			err = fmt.Errorf("want commit, force, table=N, zone=N, nat or nat(…)")
		}
		if err != nil {
			return CT{}, fmt.Errorf("%q: %w", part, err)
		}
	}
	return c, nil
}

// parseNATText reads what is between the parentheses of a nat.
func parseNATText(s string) (NAT, error) {
	var n NAT
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
