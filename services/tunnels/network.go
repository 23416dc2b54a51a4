package tunnels

import (
	"cmp"

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
	for _, s := range c.Nodes() {
		b.nodeChanged(s)
	}
	for _, s := range c.TunnelPorts() {
		b.tunnelPortChanged(s)
	}
}
