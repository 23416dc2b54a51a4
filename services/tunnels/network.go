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
	b.judgeAbsent(c)
	for _, s := range c.Nodes() {
		b.nodeChanged(s)
	}
	for _, s := range c.TunnelPorts() {
		b.tunnelPortChanged(s)
	}
}

// judgeAbsent judges the tunnels of which it may be known now that a link is absent. It is
// called with mu held.
func (b *store) judgeAbsent(c nib.Change) {
	names := map[string]bool{}
	if c.Heard(ofLinks) {
		for name := range b.status {
			names[name] = true
		}
	}
	for _, s := range c.Settled() {
		maps.Copy(names, b.at[cmp.Or(s.Is, s.Was).Key])
	}
	for _, sw := range c.SwitchesOf(flow.RoleLink) {
		maps.Copy(names, b.at[sw])
	}
	for _, name := range sorted(names) {
		b.judge(b.status[name])
	}
}
