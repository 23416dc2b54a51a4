package firewall

import (
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
)

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
