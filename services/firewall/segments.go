package firewall

import (
	"cmp"
	"context"

	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// Rules that name a tenant and no VLAN hold in all its virtual networks: the
// firewall makes them anew when one comes or goes. It stores which VLAN carries
// whose network, so that they hold from the start after a restart.

// segmentsChanged follows virtual networks that have come or gone.
func (b *store) segmentsChanged(c nib.Change) {
	news := map[uint16]string{}
	for _, s := range c.Segments() {
		if vlan := cmp.Or(s.Is, s.Was).Key; vlan == 0 || vlan > 4094 {
			continue
		} else if news[vlan] = ""; s.Is != nil {
			news[vlan] = s.Is.Is.Tenant
		}
	}
	if len(news) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.assign(news) {
		b.publish()
		object.Notify(b.news)
	}
}

// follow stores which VLAN is whose as that changes, until ctx ends.
func (b *store) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.news:
		}
		_, _, err := b.kept.Change(ctx, keySegments, func(*record) (*record, error) { return segmentsRecord(b.segments), nil })
		if err != nil && ctx.Err() == nil {
			b.log.Warn("which VLANs are whose is not kept: after a restart, rules of tenants wait for the service tenants", "error", err)
		}
	}
}
