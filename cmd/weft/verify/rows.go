package verify

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// Report is what weft plan verify prints.
type Report struct {
	Plan    string  `json:"plan"`
	Profile string  `json:"profile"` // a file, or built-in
	Seconds float64 `json:"seconds"`
	// The load under which both are, predictions and measurements.
	Switches  int     `json:"switches"`
	PacketIns float64 `json:"packet_ins"` // per second
	Changes   float64 `json:"changes"`    // per second
	Differ    int     `json:"differ"`     // rows
	Compared  int     `json:"compared"`   // rows; the others were not predicted, or too few events were seen
	Rows      []Row   `json:"rows"`
}

// Row is one quantity. Predicted is null if the profile lacks what it needs,
// Measured if nothing was seen.
type Row struct {
	What      string   `json:"what"`
	Unit      string   `json:"unit"`
	Predicted *float64 `json:"predicted"`
	Measured  *float64 `json:"measured"`
	CI95      *float64 `json:"ci95"`
	// Verdict is within, differs, not predicted, or too few: 3 of 30.
	Verdict string `json:"verdict"`
	// Figure is the key of the profile that is wrong, where one is.
	Figure string `json:"figure,omitempty"`
	Why    string `json:"why,omitempty"`
}

// The verdicts, besides "too few".
const (
	within       = "within"
	differs      = "differs"
	notPredicted = "not predicted"
)

// comparison makes the rows of a report.
type comparison struct {
	specs   []weft.Spec
	profile *plan.Profile
	found   *measured
	load    plan.NetworkLoad
	says    *plan.Prediction
	margin  float64 // share of what was measured by which a prediction may be off at least
	rows    []Row
}

// reason says why a prediction is wrong: the key of the profile, and a sentence.
type reason struct{ figure, why string }

// add adds a row; scale makes of seconds and octets what is printed. why is asked
// if the prediction is wrong.
func (c *comparison) add(what, unit string, scale float64, predicted plan.Figure, e estimate, missing []string, why func() reason) {
	r := Row{What: what, Unit: unit}
	printed := func(v float64) *float64 {
		v = significant(v * scale)
		return &v
	}
	if predicted.Known {
		r.Predicted = printed(predicted.Value)
	}
	if e.seen > 0 {
		r.Measured, r.CI95 = printed(e.value), printed(e.ci)
	}
	switch {
	case !predicted.Known:
		r.Verdict = notPredicted
		if len(missing) > 0 {
			r.Figure, r.Why = missing[0], "the profile does not say "+joined(missing)
		}
	case !e.enough():
		r.Verdict = fmt.Sprintf("too few: %d of %d", e.seen, e.needs)
	case math.Abs(predicted.Value-e.value) <= max(e.ci, c.margin*math.Abs(e.value))+rounding*math.Abs(e.value):
		r.Verdict = within
	default:
		r.Verdict = differs
		of := why()
		r.Figure, r.Why = of.figure, of.why
	}
	c.rows = append(c.rows, r)
}

// rounding is the share by which sums of what is equal may differ.
const rounding = 1e-9

// significant returns a number with five digits.
func significant(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// The units of rows, and what makes them of seconds and octets.
const (
	percent, ofPercent = "% of a processor", 100
	mebibytes, ofMiB   = "MiB", 1.0 / (1 << 20)
	micros, ofMicros   = "us", 1e6
)

// workers compares what processes take.
func (c *comparison) workers() {
	for _, d := range c.says.Processes {
		at := c.found.processes[d.Name]
		if at == nil {
			at = &process{}
		}
		cpu, octets := ofSlices(at.cpu), ofSlices(at.resident)
		c.add("worker "+d.Name+": processor", percent, ofPercent, d.CPU(), cpu, timesOf(d), func() reason { return c.whyCPU(d, at) })
		c.add("worker "+d.Name+": memory", mebibytes, ofMiB, d.Memory(), octets, memoriesOf(d), func() reason { return c.whyMemory(d, at) })
	}
}

// timesOf returns the missing figures of times, memoriesOf those of memory.
func timesOf(d plan.ProcessDemand) (keys []string) {
	for _, part := range d.Parts {
		if !part.CPU.Known {
			keys = append(keys, part.Missing...)
		}
	}
	return keys
}

func memoriesOf(d plan.ProcessDemand) (keys []string) {
	for _, part := range d.Parts {
		if !part.Memory.Known {
			keys = append(keys, keyOf(part.Service, "memory"))
		}
	}
	return keys
}

// stages compares what the stages of packet-ins take.
func (c *comparison) stages() {
	for _, d := range c.says.Processes {
		at := c.found.processes[d.Name]
		if at == nil || d.Standby > 0 {
			continue
		}
		for _, part := range d.Parts {
			if !slices.ContainsFunc(c.says.Hops, func(h plan.Hop) bool { return h.To == part.Service }) {
				continue
			}
			what := "stage " + part.Service + " in " + d.Name
			share := ofSlices(at.by[part.Service])
			if share.enough() { // samples count, too
				share.seen, share.needs = at.samples[part.Service], needed
			}
			c.add(what+": processor", percent, ofPercent, part.CPU, share, part.Missing, func() reason { return c.whyService(part, share.value) })
			t, figure := at.stages[part.Service], c.profile.Of(part.Service).PerPacket
			took := ofSums(t.n, t.sum, t.squares)
			key := keyOf(part.Service, "per_packet")
			c.add(what+": latency", micros, ofMicros, figure, took, []string{key}, func() reason {
				return reason{key, fmt.Sprintf("%s is %s in the profile; the stage alone takes %s for a packet, waits for a processor included", key, inMicros(figure.Value), inMicros(took.value))}
			})
		}
	}
}

// report compares everything.
func (c *comparison) report(about Report) *Report {
	c.workers()
	c.stages()
	c.crossings()
	about.Seconds, about.Rows = significant(c.found.seconds), c.rows
	about.PacketIns, about.Changes = significant(c.load.PacketIns()), significant(c.load.Changes)
	for _, name := range slices.Sorted(maps.Keys(c.load.Parts)) {
		about.Switches += c.load.Parts[name].Switches
	}
	for _, r := range c.rows {
		if r.Verdict == within || r.Verdict == differs {
			about.Compared++
		}
		if r.Verdict == differs {
			about.Differ++
		}
	}
	return &about
}
