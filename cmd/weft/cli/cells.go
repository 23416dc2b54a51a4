package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The values of tables, as people read them.

// Millis writes microseconds as milliseconds.
func Millis(us uint64) string {
	if us == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(us)/1000, 'f', 2, 64)
}

// When writes a time of RFC 3339 in the local zone, without the date if it is
// today's.
func When(rfc3339 string) string {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return rfc3339
	}
	t = t.Local()
	if now := time.Now(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Place writes a port of a switch.
func Place(l *api.Location) string {
	if l.GetDpid() == "" {
		return ""
	}
	return l.Dpid + "/" + Port(l.Port)
}

func Port(p uint32) string { return flow.Port(p).String() }

func Vlan(v uint32) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprint(v)
}

func Yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Hops writes a path: SWITCH:OUT > IN:SWITCH:OUT > IN:SWITCH.
func Hops(list []*api.Hop) string {
	text := make([]string, len(list))
	for i, h := range list {
		text[i] = h.Dpid
		if h.InPort != 0 {
			text[i] = Port(h.InPort) + ":" + text[i]
		}
		if h.OutPort != 0 {
			text[i] += ":" + Port(h.OutPort)
		}
	}
	return strings.Join(text, " > ")
}

// Seconds writes a duration as ovs-ofctl does.
func Seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + "s" }

// Rate writes a rate with a metric prefix.
func Rate(v float64) string {
	for _, p := range []struct {
		size   float64
		prefix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= p.size {
			return strconv.FormatFloat(v/p.size, 'f', 2, 64) + p.prefix
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Footer writes counts that are not zero below a table.
func Footer(t *Table, title string, counts map[string]uint64) {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(t, "\n%s: %s\n", title, strings.Join(parts, ", "))
	}
}

// MatchText writes a match in the order of the fields' numbers.
func MatchText(m map[string]string) string {
	if parsed, err := flow.ParseMatch(m); err == nil {
		return parsed.String()
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, name+"="+m[name])
	}
	return strings.Join(parts, ",")
}
