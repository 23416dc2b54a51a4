package firewall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// checkFields returns an error if rules cannot ask for a field. What switches refuse the
// controller judges; of these fields it gets nothing, and a rule would be passed.
func checkFields(conditions []condition) error {
	for _, c := range conditions {
		for _, f := range []flow.Field{flow.FieldMetadata, flow.FieldInPhyPort} {
			if c.match.Set.Has(f) {
				return fmt.Errorf("match %v: it says nothing of the packet, and the controller, which judges where switches cannot, does not get it; leave it out", f)
			}
		}
	}
	return nil
}

// needs returns what a rule asks of switches, beyond what the controller makes up for: it
// judges what a switch cannot ask for, but of the packet's fields alone.
func needs(conditions []condition) (list []api.Need) {
	if slices.ContainsFunc(conditions, func(c condition) bool { return c.match.Set.Has(flow.FieldTunnelID) }) {
		list = append(list, api.NeedTunnelID)
	}
	return list
}

// holds returns an error if a connected switch cannot hold a rule. Those of the configuration
// are taken: their state says it.
func (b *store) holds(r *rule) error {
	if strings.HasPrefix(r.id, configPrefix) || len(r.asks) == 0 {
		return nil
	}
	var list []*api.Switch
	for _, s := range b.sites.all() {
		if !r.local || r.sw == s.dpid {
			s.mu.Lock()
			list = append(list, s.info)
			s.mu.Unlock()
		}
	}
	return api.CheckNeeds("rule "+r.id, "a rule with dpid is for one switch", slices.Values(list), r.asks...)
}
