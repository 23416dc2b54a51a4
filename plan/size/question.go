package size

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/plan/simulate"
)

// Form is how a function is made several.
type Form string

// The forms.
const (
	Copies  Form = "copies" // each does all for a share of the packets
	InChain Form = "chain"  // each does a part for every packet
)

// Question is a function and what is asked of it. Times are in seconds.
type Question struct {
	Rate       float64 // packets per second
	ArrivalSCV float64 // of the times between packets; 1 is Poisson
	// Between are measured times between packets, in place of ArrivalSCV; nil: none.
	Between *simulate.Shape
	// Batch is how many packets come together; Rate counts each.
	Batch simulate.Batch
	// Dispersion was measured, if there is any; ArrivalSCV does not count then.
	Dispersion []MeasuredDispersion

	Service    float64 // of a packet, Idle included
	ServiceSCV float64
	// Times are measured service times, in place of ServiceSCV; nil: none. Service is
	// their mean unless it is given.
	Times *simulate.Shape
	Idle  float64 // that part of Service in which no processor is needed

	// Overhead is what several instances cost, by their number, rising: a copy has
	// it for each of its packets, and the parts of a chain share it.
	Overhead []MeasuredOverhead

	// Target is what the time in the function may be: its mean, or a percentile. 0:
	// as little as possible.
	Target     float64
	Percentile float64 // 0: the mean
	// Room is how many packets there may be at an instance, 0 any number; Loss is
	// the share that may be lost.
	Room int
	Loss float64

	Counts     []int // numbers of instances to look at; nil: up to 16, and more if need be
	Forms      []Form
	Processors []int // 0: one for each instance
	Dispatch   simulate.Dispatch

	Simulate bool
	Seed     uint64

	arrives arriving // in simulations; Check sets it
}

// Most is the largest number of instances that are looked at.
const Most = 256

// counts are the numbers of instances that are looked at unless told otherwise.
func counts() []int { return []int{1, 2, 3, 4, 6, 8, 12, 16} }

// Check says what is wrong with a question, and fills in what was left out.
func (q *Question) Check() error {
	number := func(name string, v, least, most float64) error {
		if !(v >= least && v <= most) {
			return fmt.Errorf("%s %v: want %v to %v", name, v, least, most)
		}
		return nil
	}
	duration := func(name string, v float64) error {
		if !(v >= 0 && v <= 3600) {
			return fmt.Errorf("%s %vs: want 0s to 1h", name, v)
		}
		return nil
	}
	q.histograms()
	for _, err := range []error{
		number("rate", q.Rate, 0, 1e9), number("arrival-scv", q.ArrivalSCV, 0, 100), number("service-scv", q.ServiceSCV, 0, 100),
		duration("service", q.Service), duration("idle", q.Idle), duration("target", q.Target),
		number("percentile", q.Percentile, 0, 99.99), number("room", float64(q.Room), 0, 1e6), number("loss", q.Loss, 0, 1),
		number("batch", cmp.Or(q.Batch.Mean, 1), 1, 10_000), checkOverhead(q.Overhead),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case q.Rate == 0:
		return fmt.Errorf("rate 0: want packets per second, above 0")
	case q.Service < 1e-9:
		return fmt.Errorf("service %vs: want the time that a packet takes, at least 1ns", q.Service)
	case q.Idle > q.Service:
		return fmt.Errorf("idle %vs: want at most service, %vs, of which it is a part", q.Idle, q.Service)
	case q.Percentile > 0 && q.Percentile < 1:
		return fmt.Errorf("percentile %v: want 1 to 99.99, such as 99", q.Percentile)
	case q.Loss > 0 && q.Room == 0:
		return fmt.Errorf("loss %v: without room, nothing is lost: say how many packets there may be at an instance", q.Loss)
	}
	if err := q.checkChoices(); err != nil {
		return err
	}
	if q.Simulate {
		q.arrives = q.arriving()
	}
	return nil
}

// histograms takes moments from what was measured.
func (q *Question) histograms() {
	if q.Times != nil {
		q.ServiceSCV = q.Times.SCV()
		if q.Service == 0 {
			q.Service = q.Times.Mean()
		}
	}
	if q.Between != nil {
		q.ArrivalSCV = q.Between.SCV()
	}
}

func (q *Question) checkChoices() error {
	if len(q.Dispersion) > 0 && (q.Batch.Mean > 1 || q.Between != nil) {
		return fmt.Errorf("dispersion: it says how packets come, and so do batches and times between packets: give one of them")
	}
	for i, p := range q.Dispersion {
		if !(p.Time > 0 && p.Time <= 86400 && p.Index > 0 && p.Index <= 1e6) || i > 0 && p.Time <= q.Dispersion[i-1].Time {
			return fmt.Errorf("dispersion %vs=%v: want rising times and indices above 0, such as 10ms=1.5,1s=8", p.Time, p.Index)
		}
	}
	for _, n := range q.Counts {
		if n < 1 || n > Most {
			return fmt.Errorf("instances %d: want 1 to %d", n, Most)
		}
	}
	if len(q.Forms) == 0 {
		q.Forms = []Form{Copies, InChain}
	}
	for _, f := range q.Forms {
		if f != Copies && f != InChain {
			return fmt.Errorf("as %q: want %s or %s", f, Copies, InChain)
		}
	}
	if len(q.Processors) == 0 {
		q.Processors = []int{1, 0}
	}
	for _, p := range q.Processors {
		if p < 0 || p > Most {
			return fmt.Errorf("cpus %d: want 1 to %d, or own", p, Most)
		}
	}
	if q.Dispatch == "" {
		q.Dispatch = simulate.Random
	}
	if !slices.Contains(simulate.Dispatches(), q.Dispatch) {
		var names []string
		for _, d := range simulate.Dispatches() {
			names = append(names, string(d))
		}
		return fmt.Errorf("dispatch %q: want one of %s", q.Dispatch, strings.Join(names, ", "))
	}
	return nil
}

// cell is one deployment that could answer a question.
type cell struct {
	q    *Question
	n    int
	form Form
	cpus int
}

// cells returns the deployments for numbers of instances, each once.
func (q *Question) cells(numbers []int) (list []cell) {
	for _, n := range numbers {
		for _, p := range q.Processors {
			for _, form := range q.Forms {
				if p == 0 || p > n {
					p = n
				}
				if n == 1 {
					form = q.Forms[0]
				}
				if c := (cell{q, n, form, p}); !slices.Contains(list, c) {
					list = append(list, c)
				}
			}
		}
	}
	return list
}

// shared reports whether instances share processors.
func (c cell) shared() bool { return c.cpus < c.n }

// perInstance is what an instance takes for a packet: the time of a processor,
// and idle.
func (c cell) perInstance() (work, idle float64) {
	work, idle = c.q.Service-c.q.Idle+overheadOf(c.q.Overhead, c.n), c.q.Idle
	if c.form == InChain {
		work /= float64(c.n)
		idle /= float64(c.n)
	}
	return work, idle
}

// load is the utilisation of the busiest: a processor, or an instance.
func (c cell) load() (busiest, processor float64) {
	work, idle := c.perInstance()
	visits := 1.0
	if c.form == InChain {
		visits = float64(c.n)
	}
	processor = c.q.Rate * visits * work / float64(c.cpus)
	if c.shared() {
		return max(processor, c.inShared().Utilisation()), processor
	}
	return c.q.Rate * visits * (work + idle) / float64(c.n), processor
}

func (c cell) inShared() Shared {
	work, idle := c.perInstance()
	s := Shared{Rate: c.q.Rate, ArrivalSCV: c.q.arrivalSCV(), Work: work, Idle: idle, ServiceSCV: c.q.ServiceSCV, Instances: c.n, Processors: c.cpus}
	s.Dealt = c.q.Dispatch == simulate.Random || c.q.Dispatch == simulate.RoundRobin
	if s.Chain = c.form == InChain; s.Chain {
		s.Work *= float64(c.n)
		s.Idle *= float64(c.n)
	}
	return s
}

// arrivalSCV is that of the question, or what the longest time measured says.
func (q *Question) arrivalSCV() float64 {
	if n := len(q.Dispersion); n > 0 {
		return q.Dispersion[n-1].Index
	}
	return q.Batch.Size() * (q.ArrivalSCV + q.Batch.Excess())
}

// dispersion is that of the question.
func (q *Question) dispersion() Dispersion {
	if len(q.Dispersion) > 0 {
		return Interpolated(q.Dispersion)
	}
	size, excess := q.Batch.Size(), q.Batch.Excess()
	between := renewal(q.Rate/size, q.ArrivalSCV)
	if size == 1 {
		return between
	}
	return func(time float64) float64 { return size * (between(time) + excess) }
}

// robust reports whether packets come in a way of which two moments say too
// little.
func (q *Question) robust() bool { return len(q.Dispersion) > 0 || q.Batch.Mean > 1 }
