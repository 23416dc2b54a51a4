package run

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/plan"
)

// settings returns the settings that flags make, for every process. Those of
// where to listen make sense only once.
func (o *UpOptions) settings(p *plan.Plan) ([]string, error) {
	listen, err := ListenAddresses(o.Listen)
	if err != nil {
		return nil, err
	}
	if len(p.Partitions) > 1 && (len(listen) > 0 || o.HTTP != "" || o.ryu != "") {
		return nil, errors.New("--listen, --http and --ryu are for plans with one southbound and one gateway; write the addresses into the plan")
	}
	set := slices.Clone(o.Set)
	if len(listen) > 0 {
		list, err := json.Marshal(listen)
		if err != nil {
			return nil, err
		}
		set = append(set, "southbound.listen="+string(list))
	}
	if o.HTTP != "" {
		set = append(set, "gateway.listen="+o.HTTP)
	}
	if o.ryu != "" {
		set = append(set, "ryu.listen="+o.ryu)
	}
	return set, nil
}

// overrides returns assignments of flags as what changes settings.
func overrides(set []string) (list []config.Override) {
	for _, s := range set {
		list = append(list, config.Override(s))
	}
	return list
}
