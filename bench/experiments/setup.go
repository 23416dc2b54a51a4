package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/testbed"
)

// Setup is what a case is measured under that makes it faster or slower, whatever is
// compared. Two cases of one ratio are to have it in common, but for what the
// comparison is about.
type Setup struct {
	Services   string `json:"services"`   // all that run, whatever process they are in
	Priority   string `json:"priority"`   // of what is measured and of its load
	Processors string `json:"processors"` // that they have
	Load       string `json:"load"`
}

// The parts of a setup that a comparison may be about.
const (
	AboutServices   = "services"
	AboutPriority   = "priority"
	AboutProcessors = "processors"
	AboutLoad       = "load"
)

// AsStarted is the priority, and the processors, of what has none of its own: those of
// the run itself, which its conditions tell, alike for all cases.
const AsStarted = "as the run itself"

// SetupOf returns the setup of a controller of a plan, nil being one process with every
// service, under a load.
func SetupOf(p *testbed.Plan, load string) Setup {
	s := Setup{Services: "all of weft up", Priority: AsStarted, Processors: AsStarted, Load: load}
	if p == nil {
		return s
	}
	var services, nice, processors []string
	for _, w := range p.Workers {
		services = append(services, w.Services...)
		if w.Nice != 0 {
			nice = append(nice, fmt.Sprintf("nice %d", w.Nice))
		}
		if w.CPUs != "" {
			processors = append(processors, w.CPUs)
		}
	}
	distinct := func(list []string) string {
		slices.Sort(list)
		return strings.Join(slices.Compact(list), ", ")
	}
	s.Services = distinct(services)
	if len(nice) > 0 {
		s.Priority = distinct(nice)
	}
	if len(processors) > 0 {
		s.Processors = distinct(processors)
	}
	return s
}

// parts are those of the setup by name.
func (s Setup) parts() []struct{ name, value string } {
	return []struct{ name, value string }{
		{AboutServices, s.Services}, {AboutPriority, s.Priority}, {AboutProcessors, s.Processors}, {AboutLoad, s.Load},
	}
}

// Unlike says in what two setups differ that a comparison is not about; empty if in
// nothing.
func (s Setup) Unlike(other Setup, about ...string) string {
	var list []string
	theirs := other.parts()
	for i, part := range s.parts() {
		if part.value != theirs[i].value && !slices.Contains(about, part.name) {
			list = append(list, fmt.Sprintf("%s: %s against %s", part.name, part.value, theirs[i].value))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "unlike are compared: " + strings.Join(list, "; ")
}

// others names the parts in which a setup differs from another.
func (s Setup) others(than Setup) (names []string) {
	theirs := than.parts()
	for i, part := range s.parts() {
		if part.value != theirs[i].value {
			names = append(names, part.name)
		}
	}
	return names
}

// unlikeNotes says which cases that a figure shows beside its first one were measured
// under another setup.
func unlikeNotes(f figure.Figure, setups map[string]Setup) (notes []string) {
	shown := figure.Cases([]figure.Figure{f})
	of := map[string][]string{} // cases by what differs
	var order []string
	for _, name := range shown {
		if differs := strings.Join(setups[name].others(setups[shown[0]]), ", "); differs != "" {
			if of[differs] == nil {
				order = append(order, differs)
			}
			of[differs] = append(of[differs], name)
		}
	}
	for _, differs := range order {
		notes = append(notes, fmt.Sprintf("Not as %s in %s: %s.", shown[0], differs, strings.Join(of[differs], "; ")))
	}
	return notes
}

// Declared reports whether all parts of the setup are there.
func (s Setup) Declared() bool {
	return !slices.ContainsFunc(s.parts(), func(part struct{ name, value string }) bool { return part.value == "" })
}

// Beside returns the claim as one that compares a case with another, about what of
// their setups is given.
func (c Claim) Beside(a, b string, about ...string) Claim {
	c.Sides, c.About = []string{a, b}, about
	return c
}

// compareLike voids the claims that compare cases whose setups are unlike.
func compareLike(claims []Claim, setups map[string]Setup) {
	for i, c := range claims {
		if len(c.Sides) == 2 && c.Void == "" {
			claims[i].Void = setups[c.Sides[0]].Unlike(setups[c.Sides[1]], c.About...)
		}
	}
}
