package nat

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// answer is a next hop's report of its Ethernet address.
type answer struct {
	gateway string
	hop     netip.Addr
	mac     flow.MAC
}

// answered records that a next hop has reported its address, and passes a new one
// on to the reader of news.
func (b *store) answered(g *gateway, mac flow.MAC, now int64) {
	b.mu.Lock()
	b.heard[g.name] = now
	b.mu.Unlock()
	if mac == g.hopMAC {
		return
	}
	select {
	case b.news <- answer{g.name, g.hop, mac}:
	default: // it is asked again
	}
}

// ask appends questions for the next hops that are due: unknown ones at every
// turn, others a sixth as often.
func (b *store) ask(now int64, d *flow.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.gateways.List() {
		if unable(b.net.Connected(g.at.Switch)) != nil {
			continue
		}
		if known := g.hopMAC != (flow.MAC{}); known && now-max(b.asked[g.name], b.heard[g.name]) < 6*int64(b.cfg.Load().AskInterval) {
			continue
		}
		b.asked[g.name] = now
		g.send(d, g.at, g.question())
	}
}
