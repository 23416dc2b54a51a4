package discovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/flow"
)

// encodeLinks writes which ports of a switch are links, and to where, for the
// next run: one line "PORT DPID PORT" for each.
func encodeLinks(links map[flow.Port]flow.Location) []byte {
	lines := make([]string, 0, len(links))
	for p, far := range links {
		lines = append(lines, fmt.Sprintf("%d %v %d\n", uint32(p), far.Switch, uint32(far.Port)))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// decodeLinks reads what encodeLinks has written.
func decodeLinks(b []byte) (map[flow.Port]flow.Location, error) {
	links := map[flow.Port]flow.Location{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("line %q: want PORT DPID PORT", line)
		}
		near, err1 := strconv.ParseUint(f[0], 10, 32)
		sw, err2 := flow.ParseDPID(f[1])
		far, err3 := strconv.ParseUint(f[2], 10, 32)
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", line, err)
			}
		}
		links[flow.Port(near)] = flow.Location{Switch: sw, Port: flow.Port(far)}
	}
	return links, nil
}
