package tunnels

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// differs records that a tunnel may differ from what was published. It is called with
// mu held.
func (b *store) differs(name string) {
	if len(b.news) == 0 {
		b.notify()
	}
	b.news[name] = true
	b.steering.tunnelChanged(name)
}

// changes returns what is to be published, by name.
func (b *store) changes() (list []*api.TunnelChanged) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range sorted(b.news) {
		told, s := b.told[name], b.status[name]
		if s == nil || s.tunnel.around != nil {
			if told != nil {
				list = append(list, &api.TunnelChanged{Tunnel: told, Deleted: true})
				delete(b.told, name)
			}
			continue
		}
		if m := b.message(s); !proto.Equal(m, told) {
			list = append(list, &api.TunnelChanged{Tunnel: m})
			b.told[name] = m
		}
	}
	clear(b.news)
	return list
}
