package deploy

import (
	"encoding/json"
	"reflect"

	"weft"
	"weft/plan"
)

// The keys by which a service is told, if its configuration has them, which
// partition is its own, which switches are of it, and which of others: lists in
// the notation of a plan's partitions, those of others by name.
const (
	partitionKey = "partition"
	switchesKey  = "switches"
	elsewhereKey = "elsewhere"
)

// addPartition sets the switches of a partition in the configuration of the
// services that hold the switches' sessions, be they which they may, and, where
// the partitions are parts of one network, of all others that have the keys. What
// the plan sets there itself counts more, for it is added later.
func (s *Settings) addPartition(p *plan.Plan, partition string, specs []weft.Spec) error {
	if partition == "" {
		return nil
	}
	values := map[string]any{partitionKey: partition}
	elsewhere := map[string][]string{}
	for _, x := range p.Partitions {
		var list []string
		for _, r := range x.Switches {
			list = append(list, r.String())
		}
		if x.Rest {
			list = append(list, "rest")
		}
		if x.Name == partition {
			values[switchesKey] = list
		} else {
			elsewhere[x.Name] = list
		}
	}
	values[elsewhereKey] = elsewhere
	for i := range specs {
		if !specs[i].Pipeline && specs[i].Beside == nil && !p.OneNetwork(specs) || specs[i].Config == nil {
			continue
		}
		keys, _ := structKeys(reflect.TypeOf(specs[i].Config))
		set := map[string]any{}
		for key, v := range values {
			if _, ok := keys[key]; ok {
				set[key] = v
			}
		}
		if len(set) == 0 {
			continue
		}
		text, err := json.Marshal(set) // JSON is YAML
		if err != nil {
			return err
		}
		if err := s.Add(specs[i].Name, "the plan's partitions", text); err != nil {
			return err
		}
	}
	return nil
}
