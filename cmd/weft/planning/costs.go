package planning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// Costs is what another plan costs, or saves.
type Costs struct {
	// Crossings are the messages that go otherwise, those first that cost most.
	Crossings []Crossing `json:"crossings,omitempty"`
	OldSize   *Size      `json:"old_size"`
	NewSize   *Size      `json:"new_size"`
	// Figures says where they come from.
	Figures string `json:"figures"`
}

// Crossing is the messages of a kind from a service to another.
type Crossing struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"` // call, event or packet
	Old  string `json:"old"`  // transports; inproc within a process
	New  string `json:"new"`
	// Us is how many microseconds longer each takes, if Known.
	Us    float64 `json:"us"`
	Known bool    `json:"known"`
	PerS  float64 `json:"per_s"` // 0 if it is not known
}

// Size is what a plan takes.
type Size struct {
	Processes int    `json:"processes"`
	Memory    uint64 `json:"memory"` // octets
}

// wayOf names messages of a kind from service to service.
type wayOf struct{ from, to, kind string }

// costs says what a plan costs in the place of another. Rates are those of the
// other one at work; nil: they are not known.
func costs(specs []weft.Spec, before, after *plan.Plan, rates map[wayOf]float64) (*Costs, error) {
	profile, err := plan.DefaultProfile()
	if err != nil {
		return nil, err
	}
	c := &Costs{
		Crossings: crossings(specs, before, after, profile, rates), OldSize: sizeOf(before, profile), NewSize: sizeOf(after, profile),
		Figures: fmt.Sprintf("Latencies (of an empty request) and memory are estimates from the built-in profile (%v).", profile),
	}
	if rates != nil {
		c.Figures += " Rates are of this controller in the last 10 s."
	}
	return c, nil
}

// crossings returns the messages between services of both plans that go
// otherwise, those first that cost most.
func crossings(specs []weft.Spec, before, after *plan.Plan, profile *plan.Profile, rates map[wayOf]float64) (list []Crossing) {
	was := map[wayOf]plan.Way{}
	for _, w := range before.Ways(specs) {
		was[wayOf{w.From, w.To, w.Kind}] = w
	}
	for _, is := range after.Ways(specs) {
		of := wayOf{is.From, is.To, is.Kind}
		old, ok := was[of]
		if !ok || old.Apart == is.Apart && slices.Equal(old.Transports, is.Transports) {
			continue // a service that was not there has no latency to compare
		}
		a, b := delayOf(old, profile), delayOf(is, profile)
		one := Crossing{
			From: is.From, To: is.To, Kind: is.Kind, Old: strings.Join(old.Transports, ", "), New: strings.Join(is.Transports, ", "),
			Known: a.Known && b.Known, PerS: rates[of],
		}
		if one.Known {
			one.Us = (b.Value - a.Value) * 1e6
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b Crossing) int {
		return cmp.Or(cmp.Compare(b.Us*b.PerS, a.Us*a.PerS), cmp.Compare(b.PerS, a.PerS), cmp.Compare(b.Us, a.Us))
	})
	return list
}

// delayOf returns how long messages are on their way, in seconds: a call and a
// packet there and back, an event there; the longest of several transports.
func delayOf(w plan.Way, profile *plan.Profile) plan.Figure {
	longest := plan.Measured(0)
	for _, t := range w.Transports {
		if t == plan.Inproc {
			continue
		}
		d := profile.DelayOf(t).Local
		if w.Apart {
			d = profile.DelayOf(t).Remote
		}
		if w.Kind == plan.EventWay {
			d.Value /= 2
		}
		longest = plan.Figure{Value: max(longest.Value, d.Value), Known: longest.Known && d.Known}
	}
	return longest
}

// sizeOf returns how many processes a plan has, and what they take.
func sizeOf(p *plan.Plan, profile *plan.Profile) *Size {
	m := &Size{}
	memory := 0.0
	for _, i := range p.Instances() {
		m.Processes++
		memory += profile.Process.Memory.Value
		for _, s := range i.Services {
			memory += profile.Of(s).Memory.Value // 0 if it was not measured
		}
	}
	m.Memory = uint64(memory)
	return m
}
