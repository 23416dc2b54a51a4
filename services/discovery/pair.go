package discovery

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// parsePort parses DPID:PORT.
func parsePort(text string) (at flow.Location, err error) {
	i := strings.LastIndexAny(text, ":/")
	if i < 0 {
		return at, fmt.Errorf("port %.80q: want DPID:PORT, such as 1:2", text)
	}
	if at.Switch, err = flow.ParseDPID(text[:i]); err != nil {
		return at, fmt.Errorf("port %.80q: want DPID:PORT, such as 1:2", text)
	}
	n, err := strconv.ParseUint(text[i+1:], 10, 32)
	if at.Port = flow.Port(n); err != nil || !at.Port.Physical() {
		return at, fmt.Errorf("port %.80q: want the number of a physical port behind the colon", text)
	}
	return at, nil
}

// parsePair parses two ports with a space between them.
func parsePair(text string) (pair, error) {
	f := strings.Fields(text)
	if len(f) != 2 {
		return pair{}, fmt.Errorf("link %.80q: want DPID:PORT DPID:PORT", text)
	}
	a, err := parsePort(f[0])
	if err != nil {
		return pair{}, err
	}
	b, err := parsePort(f[1])
	if err == nil && a.Switch == b.Switch {
		err = fmt.Errorf("link %.80q: want ports of two switches", text)
	}
	return newPair(a, b), err
}

// validPattern checks a pattern of ports: DPID:PORT with *, ? and [] in either
// part.
func validPattern(text string) error {
	if _, err := path.Match(text, ""); err != nil || strings.Count(text, ":") != 1 {
		return fmt.Errorf("%.80q: want DPID:PORT with 16 hex digits, in both of which *, ? and [a-c] stand for others, such as *:49", text)
	}
	return nil
}

// A pair is the two ends of a link without direction: a before b.
type pair struct{ a, b flow.Location }

func newPair(a, b flow.Location) pair {
	if b.Switch < a.Switch || b.Switch == a.Switch && b.Port < a.Port {
		a, b = b, a
	}
	return pair{a, b}
}

// String returns both ports.
func (p pair) String() string { return fmt.Sprintf("%v to %v", p.a, p.b) }

func (p pair) key() string {
	return fmt.Sprintf("%v.%d-%v.%d", p.a.Switch, uint32(p.a.Port), p.b.Switch, uint32(p.b.Port))
}

// portName returns a port in the form that weft link takes.
func portName(at flow.Location) string { return fmt.Sprintf("%v:%d", at.Switch, uint32(at.Port)) }

func compareLocations(a, b *api.Location) int {
	switch {
	case a.Dpid != b.Dpid && a.Dpid < b.Dpid:
		return -1
	case a.Dpid != b.Dpid:
		return 1
	}
	return int(int64(a.Port) - int64(b.Port))
}
