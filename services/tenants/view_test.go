package tenants

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLinks: a port is a link until it gets another role; without one, it counts as one for
// a while.
func TestLinks(t *testing.T) {
	l := links{}
	var changed []flow.DPID
	now := time.Unix(1000, 0)
	bring := wefttest.Network(nib.Roles, func(c nib.Change) { changed = l.follow(now, c) })
	for _, c := range []struct {
		role          string
		gone          bool
		link, changed bool
	}{
		{"edge", false, false, false}, {"link", false, true, true}, {"unsettled", false, true, false}, {"unsettled", true, true, false},
		{"link", false, true, false}, {"blocked", false, false, true}, {"unsettled", false, false, false},
	} {
		bring(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw1, Port: 9}, Role: c.role}, Gone: c.gone})
		if got := slices.Equal(l.of(1), []flow.Port{9}); got != c.link || l.has(flow.Location{Switch: 1, Port: 9}) != c.link || (len(changed) > 0) != c.changed {
			t.Errorf("%s, gone %v: links %v, changed at %v", c.role, c.gone, l.of(1), changed)
		}
	}
	for _, role := range []string{"link", "unsettled"} {
		bring(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw1, Port: 9}, Role: role}})
		if changed := l.expire(now.Add(lingers - 1)); len(changed) > 0 {
			t.Errorf("%s: expired early at %v", role, changed)
		}
		if changed := l.expire(now.Add(lingers)); (len(changed) == 1) != (role == "unsettled") || (len(l.of(1)) == 0) != (role == "unsettled") {
			t.Errorf("%s: expired at %v, links %v", role, changed, l.of(1))
		}
	}
}
