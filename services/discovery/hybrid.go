package discovery

import (
	"fmt"
	"path"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// parseHybrid parses an entry of Config.Hybrid.
func parseHybrid(text string) (pattern string, h *flow.Hybrid, err error) {
	pattern, lists, _ := strings.Cut(strings.TrimSpace(text), " ")
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" || strings.Contains(pattern, "=") {
		return "", nil, fmt.Errorf("%.80q: want a switch of 16 hex digits, in which *, ? and [a-c] stand for others, and its ports, such as 00000000000000a? access=3,4 internal=101-199", text)
	}
	h, err = flow.ParseHybrid("hybrid " + lists)
	return pattern, h, err
}

// rejectProbe reports whether a probe that arrived at to must be ignored because
// one of the ports is a customer's, internal or a tunnel. It records that for
// explain.
func rejectProbe(now int64, from, to *port) bool {
	if from.listedRole() == flow.RoleUnsettled && to.listedRole() == flow.RoleUnsettled {
		return false
	}
	from.rival, from.rivalAt = to.at, now
	to.rival, to.rivalAt = from.at, now
	return true
}

// setHybrid records what a switch that connects says of itself. Links of ports
// that are now in a list are gone.
func (t *topology) setHybrid(now int64, dp *datapath, h *flow.Hybrid) {
	dp.hybrid = h
	for _, p := range dp.ports {
		if p.listedRole() != flow.RoleUnsettled {
			t.unlink(now, p, "hybrid")
			t.endTrials(now, p, "hybrid")
			t.forgetNeighbour(p)
			p.presumed, p.blocked = 0, 0
		}
	}
}
