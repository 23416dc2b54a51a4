package tunnels

import (
	"cmp"
	"maps"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	for _, s := range c.Switches() {
		for name := range b.at[cmp.Or(s.Is, s.Was).Key] {
			b.judge(b.status[name])
		}
	}
	for _, s := range c.Links() {
		b.linkChanged(s)
	}
	for _, name := range sorted(doubted(c, b.at)) {
		b.judge(b.status[name])
	}
	for _, s := range c.Nodes() {
		b.nodeChanged(s)
		b.steering.nodeChanged(cmp.Or(s.Is, s.Was).Key)
	}
	for _, s := range c.TunnelPorts() {
		b.tunnelPortChanged(s)
	}
}

// doubted returns the tunnels of which it may be known now that a link is absent, given those
// at each switch.
func doubted(c nib.Change, at map[flow.DPID]map[string]bool) map[string]bool {
	names := map[string]bool{}
	if c.Heard(ofLinks) {
		for _, of := range at {
			maps.Copy(names, of)
		}
	}
	for _, s := range c.Settled() {
		maps.Copy(names, at[cmp.Or(s.Is, s.Was).Key])
	}
	for _, sw := range c.SwitchesOf(flow.RoleLink) {
		maps.Copy(names, at[sw])
	}
	return names
}
