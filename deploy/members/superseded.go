package members

import (
	"slices"

	"github.com/weft-sdn/weft"
)

// StateStandby is the state of a standby service in a process.
const StateStandby = "standby"

// RunOf identifies a run of a service.
type RunOf struct {
	Service   string
	Partition string
	Epoch     uint64
}

// superseded returns the runs of services that another run of the same service
// and partition has replaced by becoming ready later.
func superseded(entries map[string]*Entry, specs []weft.Spec) map[RunOf]bool {
	latest := map[RunOf]uint64{} // by service and partition
	each := func(f func(key RunOf, s *ServiceState)) {
		for _, e := range entries {
			for i := range e.Services {
				if slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Standby && s.Name == e.Services[i].Name }) {
					f(RunOf{Service: e.Services[i].Name, Partition: e.Partition}, &e.Services[i])
				}
			}
		}
	}
	each(func(key RunOf, s *ServiceState) {
		if s.State == StateReady || s.State == StateSyncing {
			latest[key] = max(latest[key], s.Epoch)
		}
	})
	var over map[RunOf]bool
	each(func(key RunOf, s *ServiceState) {
		if s.State != StateStandby && s.Epoch < latest[key] {
			if over == nil {
				over = map[RunOf]bool{}
			}
			key.Epoch = s.Epoch
			over[key] = true
		}
	})
	return over
}

// The roles of a service with standbys in the plan.
const (
	roleMaster     = "master"     // it is active
	roleStandby    = "standby"    // it waits
	roleSuperseded = "superseded" // it was active, and another is now
)

// RoleOf returns the role of a service in a process; empty if the plan has no
// standby for it.
func RoleOf(c *Current, over map[RunOf]bool, e *Entry, s *ServiceState) string {
	switch {
	case s.State == StateStandby:
		return roleStandby
	case over[RunOf{s.Name, e.Partition, s.Epoch}]:
		return roleSuperseded
	case s.State == StateReady && c.InForce().HasStandby(s.Name):
		if w := c.InForce().Worker(e.Worker); w != nil && w.Standby > 0 {
			return roleMaster
		}
	}
	return ""
}
