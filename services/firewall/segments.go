package firewall

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// Rules that name a tenant and no VLAN hold in all its virtual networks: the
// firewall makes them anew when one comes or goes. It stores which VLAN carries
// whose network, so that they hold from the start after a restart.

// segmentsChanged records the virtual networks that have come or gone. It does not
// block.
func (b *store) segmentsChanged(c nib.Change) {
	b.newsMu.Lock()
	defer b.newsMu.Unlock()
	for _, s := range c.Segments() {
		if vlan := cmp.Or(s.Is, s.Was).Key; vlan == 0 || vlan > 4094 {
			continue
		} else if b.segmentNews[vlan] = ""; s.Is != nil {
			b.segmentNews[vlan] = s.Is.Is.Tenant
		}
		object.Notify(b.news)
	}
}

// follow makes rules anew as virtual networks come and go, until ctx ends.
func (b *store) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.news:
		}
		if err := b.renewSegments(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("which VLANs are whose is not kept: after a restart, rules of tenants wait for the service tenants", "error", err)
		}
	}
}

// renewSegments makes the rules of tenants anew whose virtual networks have
// changed. It returns an error if it cannot store this.
func (b *store) renewSegments(ctx context.Context) error {
	done, err := b.mu.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	b.newsMu.Lock()
	news := b.segmentNews
	b.segmentNews = map[uint16]string{}
	b.newsMu.Unlock()
	changed := map[string]bool{}
	for vlan, tenant := range news {
		old := b.segments[vlan]
		if old == tenant {
			continue
		}
		changed[old], changed[tenant] = true, true
		if b.segments[vlan] = tenant; tenant == "" {
			delete(b.segments, vlan)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	err = b.saveSegments(ctx)
	var list []*rule
	for _, r := range b.rules {
		if r.wide && changed[r.msg.Tenant] {
			list = append(list, r)
		}
	}
	b.mu.Lock()
	for _, r := range list {
		next := *r
		b.leave(r)
		b.enter(&next)
	}
	b.mu.Unlock()
	if !b.changed.empty() {
		x := b.publish()
		done()
		b.enforce(ctx, x, false)
	}
	return err
}

// conditions returns what a rule asks for; a tenant's rule asks for it in each of
// the tenant's virtual networks.
func (r *rule) conditions() ([]condition, error) {
	if !r.wide {
		return parseConditions(r.msg)
	}
	var list []condition
	for _, vlan := range r.vlans {
		some, err := parseConditions(&api.FirewallRule{Match: r.msg.Match, Vlan: uint32(vlan)})
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

const keySegments = "segments"

// saveSegments stores which VLAN is whose.
func (b *store) saveSegments(ctx context.Context) error {
	m := &api.ListNetworksResponse{}
	for _, vlan := range slices.Sorted(maps.Keys(b.segments)) {
		m.Networks = append(m.Networks, &api.TenantNetwork{Tenant: b.segments[vlan], Segment: uint32(vlan)})
	}
	value, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	_, err = b.bucket.Put(ctx, keySegments, value)
	return err
}

// loadSegments loads what saveSegments has stored.
func (b *store) loadSegments(value []byte) error {
	var m api.ListNetworksResponse
	if err := proto.Unmarshal(value, &m); err != nil {
		return fmt.Errorf("firewall's segments of tenants: %w", err)
	}
	for _, n := range m.Networks {
		if n.Segment > 0 && n.Segment < 4095 && n.Tenant != "" {
			b.segments[uint16(n.Segment)] = n.Tenant
		}
	}
	return nil
}
