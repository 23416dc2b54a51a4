package tenants

import (
	"context"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// status answers GetTenantsStatus.
func (b *store) status(context.Context, *api.GetTenantsStatusRequest) (*api.TenantsStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := &api.TenantsStatus{}
	here := map[flow.DPID]uint32{}
	for n := range b.networks.All() {
		for _, p := range n.ports {
			here[p.at.Switch]++
		}
	}
	all := map[flow.DPID]bool{}
	for f := range b.net.Switches() {
		all[f.Key] = true
	}
	for sw := range here {
		all[sw] = true
	}
	for _, sw := range slices.Sorted(maps.Keys(all)) {
		resp.Switches = append(resp.Switches, b.switchStatus(sw, here[sw]))
	}
	for _, t := range b.tenants.List() {
		resp.Tenants = append(resp.Tenants, b.usage(t))
	}
	return resp, nil
}

// hosts returns how many hosts of all tenants are let in and kept out.
func (b *store) hosts() (admitted, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.tenants.All() {
		u := b.usage(t)
		admitted += int(u.Hosts)
		refused += int(u.HostsRefused)
	}
	return admitted, refused
}

// switchStatus returns the status of a switch. It is called with mu held.
func (b *store) switchStatus(sw flow.DPID, members uint32) *api.TenantsSwitch {
	info := b.net.Info(sw)
	s := &api.TenantsSwitch{Dpid: sw.String(), Members: members}
	if info == nil {
		s.State, s.Reason = "away", "the switch has not connected yet"
		return s
	}
	r := b.compile(sw, info)
	s.Entries, s.Meters = uint32(len(r.Flows)), uint32(len(r.Meters))
	state, err := b.networks.Flows().Status(sw)
	if err != nil {
		s.Reason = err.Error()
	}
	switch why := info.Lack(api.NeedTables); {
	case !info.Connected:
		s.State, s.Reason = "away", info.Reason
	case why != "" && members > 0:
		s.State, s.Reason = "refused", "the switch "+why+"; its ports cannot be members"
	case state == "in_sync":
		s.State = "enforced"
	case state == "failing":
		s.State = state
	default:
		s.State = "pending"
	}
	for _, n := range b.networks.List() {
		for _, p := range n.ports {
			if p.at.Switch == sw && s.Reason == "" && b.links.has(p.at) {
				s.State, s.Reason = "failing", "port "+p.at.Port.String()+" of network "+n.key()+" is a link to another switch, and no member as long as it is"
			}
		}
	}
	return s
}

// usage returns a tenant's usage. It is called with mu held.
func (b *store) usage(t *api.Tenant) *api.TenantUsage {
	u := &api.TenantUsage{Tenant: t.Name, Members: uint32(b.membersOf(t.Name, ""))}
	for n := range b.networks.All() {
		if n.said.Tenant == t.Name {
			u.Networks++
		}
	}
	known := uint32(b.hostsOf(t.Name))
	u.Hosts = known
	if limit := t.MaxHosts; limit != 0 {
		u.Hosts = min(known, limit)
	}
	u.HostsRefused = known - u.Hosts
	return u
}
