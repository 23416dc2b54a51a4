package virtual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// islands returns, for each switch, the number of the part of the network that it
// is in: switches that links which are up connect.
func (w *world) islands() map[flow.DPID]int {
	of := map[flow.DPID]int{}
	for _, d := range w.devices {
		of[d.sw] = int(d.sw)
	}
	for changed := true; changed; {
		changed = false
		for _, c := range w.links {
			if a, b := of[c.a.Switch], of[c.b.Switch]; !c.cut && a != b {
				of[c.a.Switch], of[c.b.Switch] = min(a, b), min(a, b)
				changed = true
			}
		}
	}
	return of
}

// trueLinks returns both directions of the links that are up, as texts, in order.
func (w *world) trueLinks() (list []string) {
	for _, c := range w.links {
		if !c.cut {
			list = append(list, fmt.Sprintf("%v>%v", c.a, c.b), fmt.Sprintf("%v>%v", c.b, c.a))
		}
	}
	slices.Sort(list)
	return list
}

// trueHosts returns who is where, as texts, in order.
func (w *world) trueHosts() (list []string) {
	for _, s := range w.stations {
		list = append(list, fmt.Sprintf("%v at %v", s.mac, s.Location()))
	}
	slices.Sort(list)
	return list
}

// differ says how two lists in order differ; "" if they do not.
func differ(what string, have, want []string) string {
	if slices.Equal(have, want) {
		return ""
	}
	var missing, beyond []string
	for _, x := range want {
		if !slices.Contains(have, x) {
			missing = append(missing, x)
		}
	}
	for _, x := range have {
		if !slices.Contains(want, x) {
			beyond = append(beyond, x)
		}
	}
	return fmt.Sprintf("%s: missing [%s], wrong [%s]", what, strings.Join(missing, ", "), strings.Join(beyond, ", "))
}
