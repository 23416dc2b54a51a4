package l2vpn

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
		b.switchChanged(s)
	}
	for _, s := range c.Ports() {
		at := cmp.Or(s.Is, s.Was).Key
		if s.Was != nil || c.Was.Switch(at.Switch) == c.Is.Switch(at.Switch) { // else its switch has just come, with its ports
			b.reassess(at)
		}
	}
	for _, s := range c.Roles() {
		b.reassess(cmp.Or(s.Is, s.Was).Key)
	}
	for _, s := range c.Links() {
		b.linkChanged(s)
	}
	for _, s := range c.Nodes() {
		b.nodeChanged(s)
	}
}
