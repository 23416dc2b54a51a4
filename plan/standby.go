package plan

import (
	"slices"

	"github.com/weft-sdn/weft"
)

// standbys checks that all services of a worker with a standby support
// standbys.
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
// the same switches, one of which is active at a time.
func (p *Plan) HasStandby(service string) bool {
	return slices.ContainsFunc(p.Workers, func(w Worker) bool { return w.Standby > 0 && slices.Contains(w.Services, service) })
}

// standbyListen is the key that lists the addresses of a service's standbys, in
// order; a standby without an entry uses the address of the first instance.
const standbyListen = "standby_listen"

// standbyListens checks that standbys on the machine of the first instance have
// distinct addresses, and reserves them.
func (f *fit) standbyListens(w *Worker, s *weft.Spec, listens []string, take func(path, text string)) {
	if w.Standby == 0 || !s.Standby {
		return
	}
	path := "workers." + w.Name + ".settings." + s.Name + "." + standbyListen
	own := f.plan.listens(w, s, standbyListen)
	for _, text := range own[:min(len(own), w.Standby)] {
		take(path, text)
	}
	fixed := slices.ContainsFunc(listens, func(text string) bool {
		a, ok := parseAddress(text, w.Machine)
		return ok && a.fixed()
	})
	if w.Machine == "" && fixed && len(own) < w.Standby {
		f.fail("workers."+w.Name+".standby", "workers.%s.standby: %d, but %s cannot listen twice where the first does: list an address for each in %s (there are %d)", w.Name, w.Standby, s.Name, path, len(own))
	}
}
