package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
)

// Autoscale says how many replicas of a worker there may be, and what they are
// to reach.
type Autoscale struct {
	// Min is the least number of replicas.
	Min int
	// Max is the largest number of replicas.
	Max int
	// Target is what the time of a packet or call in the worker may be, waiting
	// included.
	Target time.Duration
	// Percentile of the time that Target bounds; 0 means the mean.
	Percentile float64
	// Cooldown is how long the load must want fewer replicas before one is
	// removed.
	Cooldown time.Duration
	// Season is the period of the load, such as 24h. With one, the load is
	// forecast over the time that a replica takes to start; 0 means no forecast.
	Season time.Duration
}

// The defaults and bounds of Autoscale.
const (
	defaultTarget     = 5 * time.Millisecond
	defaultPercentile = 99
	defaultCooldown   = 30 * time.Second
	minTarget         = 10 * time.Microsecond
	maxTarget         = time.Hour
	minCooldown       = time.Second
	maxCooldown       = 24 * time.Hour
	minSeason         = time.Minute
	maxSeason         = 8 * 24 * time.Hour
)

// The bounds of Worker.CPUQuota.
const (
	minCPUQuota = 0.01
	maxCPUQuota = 4096
)

// mostReplicas is the largest number of replicas that a worker may come to have
// under the plan.
func (w *Worker) mostReplicas() int {
	if w.Autoscale != nil {
		return max(w.Replicas, w.Autoscale.Max)
	}
	return w.Replicas
}

func (r *reader) autoscale(to **Autoscale) func(string, document.Value) {
	return func(path string, v document.Value) {
		a := &Autoscale{Target: defaultTarget, Percentile: defaultPercentile, Cooldown: defaultCooldown}
		r.keys(path, v,
			field{"min", r.number(&a.Min)},
			field{"max", r.number(&a.Max)},
			field{"target", r.duration(&a.Target)},
			field{"percentile", r.fraction(&a.Percentile)},
			field{"cooldown", r.duration(&a.Cooldown)},
			field{"season", r.duration(&a.Season)})
		if _, set := r.plan.lines[path+".min"]; !set {
			a.Min = 1
		}
		*to = a
	}
}

func (r *reader) duration(to *time.Duration) func(string, document.Value) {
	return func(path string, v document.Value) {
		d, err := time.ParseDuration(v.Text)
		if (v.Kind != document.Word && v.Kind != document.Plain) || err != nil {
			r.refuse(path, v.Line, "%s: want a time, such as 500ms or 30s, not %s", path, v.Short())
			return
		}
		*to = d
	}
}

func (r *reader) fraction(to *float64) func(string, document.Value) {
	return func(path string, v document.Value) {
		n, err := strconv.ParseFloat(v.Text, 64)
		if v.Kind != document.Plain || err != nil {
			r.refuse(path, v.Line, "%s: want a number, such as 0.25 or 99, not %s", path, v.Short())
			return
		}
		*to = n
	}
}

// scaling checks the bounds of a worker's processor time and replicas.
func (j *judge) scaling(path string, w *Worker) {
	// Not a comparison with both bounds: NaN must fail, too.
	if _, set := j.plan.lines[path+".cpu_quota"]; set && !(w.CPUQuota >= minCPUQuota && w.CPUQuota <= maxCPUQuota) {
		j.fail(path+".cpu_quota", "%s.cpu_quota: want a share of a processor, %v to %v, not %v", path, minCPUQuota, maxCPUQuota, w.CPUQuota)
	}
	if w.CPUQuota > 0 && w.Class == weft.RealTime.String() {
		j.fail(path+".cpu_quota", "%s.cpu_quota: real-time work has no quota; take cpu_quota or class out", path)
	}
	a := w.Autoscale
	if a == nil || j.plan.unread[path+".autoscale"] {
		return
	}
	path += ".autoscale"
	_, set := j.plan.lines[path+".max"]
	switch {
	case a.Min < 1 || a.Min > maxReplicas:
		j.fail(path+".min", "%s.min: want 1 to %d, not %d", path, maxReplicas, a.Min)
	case !set:
		j.fail(path, "%s: no max; say how many replicas there may be, such as {min: 1, max: 4}", path)
	case a.Max < a.Min || a.Max > maxReplicas:
		j.fail(path+".max", "%s.max: want min, %d, to %d, not %d", path, a.Min, maxReplicas, a.Max)
	case w.Replicas < a.Min || w.Replicas > a.Max:
		j.fail(path, "%s: the worker starts with %d replicas; set replicas to %d to %d", path, w.Replicas, a.Min, a.Max)
	}
	between := func(key string, d, least, most time.Duration) {
		if d < least || d > most {
			j.fail(path+"."+key, "%s.%s: want %v to %v, not %v", path, key, least, most, d)
		}
	}
	between("target", a.Target, minTarget, maxTarget)
	between("cooldown", a.Cooldown, minCooldown, maxCooldown)
	if a.Season != 0 {
		between("season", a.Season, minSeason, maxSeason)
	}
	if a.Percentile != 0 && !(a.Percentile >= 1 && a.Percentile <= 99.99) {
		j.fail(path+".percentile", "%s.percentile: want 1 to 99.99, or 0 for the mean, not %v", path, a.Percentile)
	}
	if w.Standby > 0 {
		j.fail(path, "%s: the worker has a standby, of which one works at a time; take standby or autoscale out", path)
	}
}

// autoscaled checks that all services of autoscaled workers may run in any
// number.
func (f *fit) autoscaled() {
	for i := range f.plan.Workers {
		w := &f.plan.Workers[i]
		if w.Autoscale == nil {
			continue
		}
		var cannot []string
		for _, name := range w.Services {
			if s := specOf(f.specs, name); s != nil && s.Scale != weft.Any {
				cannot = append(cannot, name)
			}
		}
		if len(cannot) > 0 {
			f.fail("workers."+w.Name+".autoscale", "workers.%s.autoscale: %s cannot run in any number; move what cannot to another worker, or take autoscale out", w.Name, strings.Join(cannot, ", "))
		}
	}
}

// tree returns the value as YAML writes it; an empty one for nil.
func (a *Autoscale) tree() document.Value {
	b := newBuilder()
	if a == nil {
		return b.Value
	}
	plain := func(key, text string) { b.add(key, document.Value{Kind: document.Plain, Text: text}) }
	plain("min", strconv.Itoa(a.Min))
	plain("max", strconv.Itoa(a.Max))
	b.text("target", a.Target.String())
	plain("percentile", strconv.FormatFloat(a.Percentile, 'g', -1, 64))
	b.text("cooldown", a.Cooldown.String())
	if a.Season > 0 {
		b.text("season", a.Season.String())
	}
	return b.Value
}

// String returns the value as differences show it; empty for nil.
func (a *Autoscale) String() string {
	if a == nil {
		return ""
	}
	of := "mean"
	if a.Percentile > 0 {
		of = fmt.Sprintf("%v %%", a.Percentile)
	}
	s := fmt.Sprintf("%d to %d for %v (%s), cooldown %v", a.Min, a.Max, a.Target, of, a.Cooldown)
	if a.Season > 0 {
		s += fmt.Sprintf(", season %v", a.Season)
	}
	return s
}

// quota returns a share of a processor as text; empty for none.
func quota(share float64) string {
	if share == 0 {
		return ""
	}
	return strconv.FormatFloat(share, 'g', -1, 64)
}

// WithReplicas returns the plan with another number of replicas of a worker.
func (p *Plan) WithReplicas(worker string, n int) *Plan {
	next := *p
	next.Workers = slices.Clone(p.Workers)
	if w := next.Worker(worker); w != nil {
		w.Replicas = n
	}
	return &next
}

// KeepScale returns the plan with the replicas that autoscaled workers have
// under the plan in force, within the bounds of p.
func (p *Plan) KeepScale(inForce *Plan) *Plan {
	for i := range p.Workers {
		w := &p.Workers[i]
		before := inForce.Worker(w.Name)
		if w.Autoscale != nil && before != nil && before.Autoscale != nil {
			p = p.WithReplicas(w.Name, min(max(before.Replicas, w.Autoscale.Min), w.Autoscale.Max))
		}
	}
	return p
}
