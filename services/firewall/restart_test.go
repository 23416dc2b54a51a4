package firewall

import (
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// TestRestartKeepsLinks: after a restart a switch is declared its rules at once, and keeps
// what it has of ports of links until the roles of all its ports are known.
func TestRestartKeepsLinks(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(h)
		add(t, h, deny("a", 3, "tcp_dst=80"))
		h.Restart()
		declared := func(entries int, keep bool) func() bool {
			return func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return len(p.standing[flow.DPID(1).String()]) == entries && p.keep == keep
			}
		}
		connect(h, 1, true)
		testwait.Until(t, "the rule declared at once", func() bool { return len(p.entries(1)) > 0 })
		n := len(p.entries(1))
		testwait.Until(t, "what there is beyond it kept", declared(n, true))
		at := &api.Location{Dpid: flow.DPID(1).String(), Port: 1}
		wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: at, Role: flow.RoleLink.String()}})
		testwait.Until(t, "a link declared", declared(n+1, true))
		wefttest.Publish(h, api.RolesSettledEvent, &api.RolesSettled{Dpid: at.Dpid})
		testwait.Until(t, "all declared, and no more kept", declared(n+1, false))
		connect(h, 1, false)
		wefttest.Publish(h, api.RolesSettledEvent, &api.RolesSettled{Dpid: at.Dpid, Gone: true})
		connect(h, 1, true)
		testwait.Until(t, "kept again after it was away", declared(n+1, true))
	})
}
