package plan

import (
	"slices"
)

// standbys checks that all services of a worker with a standby can stand ready.
func (f *fit) standbys() {
	var able []string
	for _, s := range f.specs {
		if s.Standby {
			able = append(able, s.Name)
		}
	}
	for i := range f.plan.Workers {
		w := &f.plan.Workers[i]
		if w.Standby == 0 {
			continue
		}
		for _, name := range w.Services {
			if specOf(f.specs, name) != nil && !slices.Contains(able, name) {
				f.fail("workers."+w.Name+".standby", "workers.%s.standby: %s cannot stand by for another process; move it to a worker without a standby (those that can: %s)", w.Name, name, orNone(able))
			}
		}
	}
}

// HasStandby reports whether several processes of the plan have a service for
// the same switches of which one is at work at a time.
func (p *Plan) HasStandby(service string) bool {
	return slices.ContainsFunc(p.Workers, func(w Worker) bool { return w.Standby > 0 && slices.Contains(w.Services, service) })
}
