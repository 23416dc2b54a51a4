package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan/size"
)

// The bounds of a network of queues.
const (
	mostQueues  = 100
	mostClasses = 100
	mostServers = 256
)

// ReadQueueNetwork reads a network of queues:
//
//	queues:
//	  parse: {service: 0.2ms}
//	  match: {service: 0.5ms, scv: 2, servers: 4}
//	classes:
//	  web: {rate: 900, enter: parse, routes: {parse: {match: 0.8}}}
//	  dns: {rate: 300, scv: 4, enter: {parse: 0.5, match: 0.5}, service: {match: 0.1ms}}
func ReadQueueNetwork(file string) (size.Mesh, error) {
	var m size.Mesh
	var names []string
	var classes document.Value
	err := readKeyed(file, "network of queues", func(r *keyed) []key {
		return []key{
			{"queues", func(path string, v document.Value) {
				r.named(path, v, "a name for each queue with its keys below", func(name, path string, v document.Value) {
					m.Queues, names = append(m.Queues, r.queue(name, path, v)), append(names, name)
				})
			}},
			{"classes", func(_ string, v document.Value) { classes = v }},
		}
	}, func(r *keyed) {
		if len(m.Queues) == 0 || len(m.Queues) > mostQueues {
			r.fail(1, "queues: %d; want 1 to %d, such as {parse: {service: 0.2ms}}", len(m.Queues), mostQueues)
			return
		}
		if classes.Kind == document.Broken {
			r.fail(1, "classes: there are none; add one, such as {web: {rate: 900, enter: %s}}", names[0])
			return
		}
		r.named("classes", classes, "a name for each class with its keys below", func(name, path string, v document.Value) {
			m.Classes = append(m.Classes, r.class(m.Queues, names, name, path, v))
		})
		if n := len(m.Classes); classes.Kind == document.Mapping && (n == 0 || n > mostClasses) {
			r.fail(classes.Line, "classes: %d; want 1 to %d", n, mostClasses)
		}
	})
	return m, err
}

func (r *keyed) queue(name, path string, v document.Value) size.Queue {
	q := size.Queue{Name: name, ServiceSCV: 1, Service: -1}
	servers := int64(1)
	before := len(r.mistakes)
	r.keys(path, v, key{"service", r.span(&q.Service)}, key{"scv", r.number(&q.ServiceSCV, 0, 100)}, key{"servers", r.whole(&servers, 1, mostServers)})
	if q.Service < 0 && len(r.mistakes) == before {
		r.fail(v.Line, "%s: no service; give the time of a packet, such as service: 0.2ms", path)
	}
	q.Servers = int(servers)
	return q
}

func (r *keyed) class(queues []size.Queue, names []string, name, path string, v document.Value) size.Class {
	c := size.Class{Name: name, ArrivalSCV: 1, Enter: make([]float64, len(queues)), Route: make([][]float64, len(queues))}
	for k, q := range queues {
		c.Service, c.Route[k] = append(c.Service, q.Service), make([]float64, len(queues))
	}
	before := len(r.mistakes)
	entered := 0.0
	r.keys(path, v,
		key{"rate", r.number(&c.Rate, 0, 1e9)},
		key{"scv", r.number(&c.ArrivalSCV, 0, 100)},
		key{"enter", func(path string, v document.Value) {
			if v.Scalar() {
				if k, ok := r.index(path, v, names); ok {
					c.Enter[k], entered = 1, 1
				}
				return
			}
			if entered = r.shares(path, v, names, c.Enter); math.Abs(entered-1) > 1e-9 && len(r.mistakes) == before {
				r.fail(v.Line, "%s: probabilities with a sum of %g; want 1", path, entered)
			}
		}},
		key{"routes", func(path string, v document.Value) {
			r.named(path, v, "queues with where packets go next below", func(from, path string, v document.Value) {
				if k, ok := r.index(path, document.Value{Kind: document.Word, Text: from, Line: v.Line}, names); ok {
					if sum := r.shares(path, v, names, c.Route[k]); sum > 1+1e-9 {
						r.fail(v.Line, "%s: probabilities with a sum of %g; want at most 1, for what is left leaves", path, sum)
					}
				}
			})
		}},
		key{"service", func(path string, v document.Value) {
			r.named(path, v, "queues with the time of this class's packets", func(at, path string, v document.Value) {
				if k, ok := r.index(path, document.Value{Kind: document.Word, Text: at, Line: v.Line}, names); ok {
					r.span(&c.Service[k])(path, v)
				}
			})
		}})
	if len(r.mistakes) > before {
		return c
	}
	switch {
	case c.Rate == 0:
		r.fail(v.Line, "%s: no rate; give packets a second above 0, such as rate: 900", path)
	case entered == 0:
		r.fail(v.Line, "%s: no enter; name the queue to which packets come first, such as enter: %s", path, names[0])
	}
	return c
}

// shares reads probabilities of queues, and returns their sum.
func (r *keyed) shares(path string, v document.Value, names []string, to []float64) (sum float64) {
	r.named(path, v, "queues with probabilities, such as {"+names[0]+": 0.8}", func(name, path string, v document.Value) {
		if k, ok := r.index(path, document.Value{Kind: document.Word, Text: name, Line: v.Line}, names); ok {
			r.number(&to[k], 0, 1)(path, v)
			sum += to[k]
		}
	})
	return sum
}

// networkFlags are the flags of weft size that go with --network.
var networkFlags = []string{"network", "percentile", "target", "formula", "seed", "output"}

// QueueReport is what weft size --network prints. Times are of the mean or the
// percentile that is asked for.
type QueueReport struct {
	Of       string       `json:"of"`
	TargetMS *float64     `json:"target_ms,omitempty"`
	Met      *bool        `json:"met,omitempty"` // of each class
	All      QueueClass   `json:"all"`
	Classes  []QueueClass `json:"classes"`
	Queues   []QueueLoad  `json:"queues"`
	Seed     uint64       `json:"seed"`
}

// QueueClass is the time of the packets of one class, or of all.
type QueueClass struct {
	Class       string   `json:"class"`
	Rate        float64  `json:"rate"`
	Visits      float64  `json:"visits"`
	FormulaMS   *float64 `json:"formula_ms"`
	SimulatedMS *float64 `json:"simulated_ms"`
	CIMS        *float64 `json:"ci_ms"`
}

// QueueLoad is one queue at work.
type QueueLoad struct {
	Queue       string   `json:"queue"`
	Servers     int      `json:"servers"`
	Rate        float64  `json:"rate"`
	Utilisation float64  `json:"utilisation"`
	WaitMS      *float64 `json:"wait_ms"` // by the formula, for each visit
}

// printQueues answers for the network of queues of a file, and prints that.
func printQueues(cmd *cobra.Command, out *cli.Output, file string, o size.MeshOptions, target time.Duration) error {
	var other []string
	remote := map[string]bool{}
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { remote[f.Name] = true })
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(networkFlags, f.Name) && !remote[f.Name] {
			other = append(other, "--"+f.Name)
		}
	})
	switch {
	case len(other) > 0:
		return cli.Usagef(cmd, "--network: the file has what %s would say; leave it out", strings.Join(other, ", "))
	case o.Percentile != 0 && !(o.Percentile >= 1 && o.Percentile <= 99.99):
		return cli.Usagef(cmd, "--percentile %v: want 1 to 99.99, such as 99", o.Percentile)
	case cmd.Flags().Changed("target") && target <= 0:
		return cli.Usagef(cmd, "--target %v: want a time above 0, or leave it out", target)
	}
	m, err := ReadQueueNetwork(file)
	if err != nil {
		return err
	}
	a, err := m.Solve(o)
	if err != nil {
		return err
	}
	r := newQueueReport(m, a, o)
	if target > 0 {
		met := true
		for _, t := range a.Classes {
			met = met && t.Time().Time <= target.Seconds()
		}
		r.TargetMS, r.Met = milliseconds(target.Seconds()), &met
	}
	return out.Print(cmd, r, r.table)
}

func newQueueReport(m size.Mesh, a size.MeshAnswer, o size.MeshOptions) *QueueReport {
	r := &QueueReport{Of: "mean", Seed: o.Seed, All: newQueueClass("all", a.All)}
	if o.Percentile > 0 {
		r.Of = fmt.Sprintf("p%g", o.Percentile)
	}
	for i, t := range a.Classes {
		r.Classes = append(r.Classes, newQueueClass(m.Classes[i].Name, t))
	}
	for i, k := range a.Queues {
		r.Queues = append(r.Queues, QueueLoad{m.Queues[i].Name, m.Queues[i].Servers, rounded(k.Rate), rounded(k.Utilisation), milliseconds(k.Wait)})
	}
	return r
}

func newQueueClass(name string, t size.MeshTime) QueueClass {
	c := QueueClass{Class: name, Rate: rounded(t.Rate), Visits: rounded(t.Visits), FormulaMS: milliseconds(t.Formula.Time), SimulatedMS: milliseconds(t.Simulated.Time)}
	if c.SimulatedMS != nil {
		c.CIMS = milliseconds(t.Simulated.CI)
	}
	return c
}

// table writes the report for people.
func (r *QueueReport) table(t *cli.Table) {
	written := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4g", *v)
	}
	t.Row("CLASS", "PER SECOND", "VISITS", "FORMULA MS", "SIMULATED MS", "+-")
	for _, c := range append(slices.Clone(r.Classes), r.All) {
		t.Row(c.Class, fmt.Sprintf("%.6g", c.Rate), fmt.Sprintf("%.4g", c.Visits), written(c.FormulaMS), written(c.SimulatedMS), written(c.CIMS))
	}
	t.Row()
	t.Row("QUEUE", "SERVERS", "PER SECOND", "BUSY", "WAIT MS")
	for _, q := range r.Queues {
		t.Row(q.Queue, q.Servers, fmt.Sprintf("%.6g", q.Rate), fmt.Sprintf("%.0f %%", 100*q.Utilisation), written(q.WaitMS))
	}
	t.Row()
	t.Row("times", r.Of)
	if r.Met != nil {
		t.Row("target", fmt.Sprintf("%g ms, met: %s", *r.TargetMS, cli.Yes(*r.Met)))
	}
}
