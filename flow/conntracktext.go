package flow

import (
	"fmt"
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
// "ct(commit,table=5,zone=7)".
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
func parseCTText(s string) (Action, error) {
	ct, err := readCTText(s)
	if err == nil {
		err = ct.Check()
	}
	return ct.Action(), err
}

func readCTText(s string) (CT, error) {
	c := CT{Table: NoTable}
	if s == "" {
		return c, nil
	}
	for _, part := range splitOutside(s) {
		part = strings.TrimSpace(part)
		name, value, _ := strings.Cut(part, "=")
		var err error
		var n uint64
		switch {
		case part == "commit":
			c.Commit = true
		case part == "force":
			c.Force = true
		case isNATText(part):
			c.HasNAT = true
			c.NAT, err = parseNATText(part)
		case name == "table":
			if n, err = strconv.ParseUint(value, 0, 8); err == nil && n == uint64(NoTable) {
				err = fmt.Errorf("there is no table 255")
			}
			c.Table = uint8(n)
		case name == "zone":
			n, err = strconv.ParseUint(value, 0, 16)
			c.Zone = uint16(n)
		default:
			err = fmt.Errorf("want commit, force, table=N, zone=N, %s", natForms)
		}
		if err != nil {
			return CT{}, fmt.Errorf("%q: %w", part, err)
		}
	}
	return c, nil
}
