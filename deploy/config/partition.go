package config

import (
	"encoding/json"
	"reflect"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// The keys by which a service is told, if its configuration has them, which
// partition is its own, which switches are of it, and which of others: lists in
// the notation of a plan's partitions, those of others by name.
const (
	partitionKey = "partition"
	switchesKey  = "switches"
	elsewhereKey = "elsewhere"
)

// AddPartition sets the switches of a partition in the configuration of the
// services that hold the switches' sessions, be they which they may, and, where
// the partitions are parts of one network, of all others that have the keys. What
// the plan sets there itself counts more, for it is added later.
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

// tell sets those of some keys that the configuration of a service has; from is
// what set them.
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

// The keys by which a service is told, if its configuration has them, how many
// processes stand by, which of them it is in (0: none), and the instance's name.
const (
	standbysKey = "standbys"
	standbyKey  = "standby"
	instanceKey = "instance"
)

// AddStandby tells the services of an instance that can stand by of the
// instances that do.
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
