package config

import (
	"encoding/json"
	"reflect"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// The keys by which a service learns its partition, the switches of that
// partition, and those of the others, if its configuration has these keys:
// lists in the notation of a plan's partitions, those of others by name.
const (
	partitionKey = "partition"
	switchesKey  = "switches"
	elsewhereKey = "elsewhere"
)

// AddPartition sets the switches of a partition in the configuration of every
// service that holds the switches' sessions and, where the partitions are parts
// of one network, of all other services that have the keys. The plan's own
// settings are added later and override these.
func (s *Settings) AddPartition(p *plan.Plan, partition string, specs []weft.Spec) error {
	if partition == "" {
		return nil
	}
	values := map[string]any{partitionKey: partition}
	elsewhere := map[string][]string{}
	for _, x := range p.Partitions {
		if x.Name == partition {
			values[switchesKey] = x.List()
		} else {
			elsewhere[x.Name] = x.List()
		}
	}
	values[elsewhereKey] = elsewhere
	for i := range specs {
		if !specs[i].Pipeline && specs[i].Beside == nil && !p.OneNetwork(specs) {
			continue
		}
		if err := s.tell(&specs[i], "the plan's partitions", values); err != nil {
			return err
		}
	}
	return nil
}

// tell sets those of the keys that a service's configuration has; from names
// the origin of the values.
func (s *Settings) tell(spec *weft.Spec, from string, values map[string]any) error {
	if spec.Config == nil {
		return nil
	}
	keys, _ := structKeys(reflect.TypeOf(spec.Config))
	set := map[string]any{}
	for key, v := range values {
		if _, ok := keys[key]; ok {
			set[key] = v
		}
	}
	if len(set) == 0 {
		return nil
	}
	text, err := json.Marshal(set) // JSON is YAML
	if err != nil {
		return err
	}
	return s.Add(spec.Name, from, text)
}

// The keys by which a service learns the number of standbys, which of them it
// runs in (0: none), and the instance's name, if its configuration has these
// keys.
const (
	standbysKey = "standbys"
	standbyKey  = "standby"
	instanceKey = "instance"
)

// AddStandby sets the standby keys of the services of an instance that can
// stand by.
func (s *Settings) AddStandby(p *plan.Plan, mine plan.Instance, specs []weft.Spec) error {
	w := p.Worker(mine.Worker)
	if w == nil || w.Standby == 0 {
		return nil
	}
	values := map[string]any{standbysKey: w.Standby, standbyKey: mine.Standby, instanceKey: mine.Name}
	for i := range specs {
		if !specs[i].Standby {
			continue
		}
		if err := s.tell(&specs[i], "the plan's standby", values); err != nil {
			return err
		}
	}
	return nil
}
