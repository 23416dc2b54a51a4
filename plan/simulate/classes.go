package simulate

import (
	"errors"
	"fmt"
	"math"
)

// Mesh is stages between which packets of several classes go.
type Mesh struct {
	Stages  []Stage // their Service is that of the classes
	Classes []Class
}

// Class is packets that come, go and are served alike.
type Class struct {
	Arrivals Law
	Enter    []float64   // the probability of each stage to be the first
	Route    [][]float64 // as System has it
	Service  []Law       // by stage
}

// visits returns how often a packet of the class visits each stage.
func (c Class) visits() []float64 { return visitsOf(c.Enter, c.Route) }

// check says what is wrong with a mesh.
func (m Mesh) check() error {
	if len(m.Classes) == 0 {
		return errors.New("no classes: want packets of at least one")
	}
	for i, c := range m.Classes {
		s := System{Arrivals: c.Arrivals, Stages: append([]Stage{}, m.Stages...), Route: c.Route}
		if len(c.Service) != len(m.Stages) || len(c.Enter) != len(m.Stages) || c.Route == nil {
			return fmt.Errorf("class %d: want a route, and for each of %d stages a time and a probability to enter there", i, len(m.Stages))
		}
		sum := 0.0
		for k := range s.Stages {
			s.Stages[k].Service = c.Service[k]
			if sum += c.Enter[k]; !(c.Enter[k] >= 0) {
				return fmt.Errorf("class %d: enters stage %d with %v: want a probability", i, k, c.Enter[k])
			}
		}
		if math.Abs(sum-1) > exact {
			return fmt.Errorf("class %d: probabilities to enter with a sum of %v: want 1", i, sum)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("class %d: %w", i, err)
		}
	}
	return nil
}

// load is that of System: how many stages a packet visits on average, and the
// highest utilisation of a copy.
func (m Mesh) load() (mean, load float64) {
	work, rate := make([]float64, len(m.Stages)), 0.0
	for _, c := range m.Classes {
		rate += 1 / c.Arrivals.Mean
		for k, v := range c.visits() {
			mean += v / c.Arrivals.Mean
			work[k] += v * c.Service[k].Mean / c.Arrivals.Mean
		}
	}
	for k, st := range m.Stages {
		if st.Room == 0 {
			load = max(load, work[k]/float64(st.Copies))
		}
	}
	return mean / rate, load
}

// RunMesh simulates a mesh. It returns what was seen of all packets, and of each
// class; it ends when the intervals of all are as narrow as the options ask.
func RunMesh(m Mesh, o Options) (all Result, each []Result, err error) {
	if err := m.check(); err != nil {
		return Result{}, nil, err
	}
	mean, load := m.load()
	if load >= 1 {
		return Result{}, nil, fmt.Errorf("%w: %.3g of what there is", ErrOverload, load)
	}
	source := sources(o.Seed)
	e := newStages(System{Stages: m.Stages}, source())
	var classes []traffic
	vary, rate := 0.5, 0.0
	for _, c := range m.Classes {
		t := traffic{arrivals: newArrivals(c.Arrivals, nil, source()), enter: c.Enter, route: c.Route}
		for _, l := range c.Service {
			t.services = append(t.services, newSampler(l, source()))
			vary = max(vary, c.Arrivals.SCV+l.SCV)
		}
		classes = append(classes, t)
		rate += 1 / c.Arrivals.Mean
	}
	e.begun(classes...)
	relaxation := vary / ((1 - load) * (1 - load)) * max(1, mean)
	most := max(1, int(float64(o.Visits)/max(mean, 1)))
	for range min(int(20*relaxation)+1000, most/5) {
		e.next()
	}
	size := func(share float64) int {
		return max(20, int(share*float64(max(200, min(int(5*relaxation), most/batchesFew)))))
	}
	total, by := newBatches(size(1), o.Percentile, nil), make([]*batches, len(m.Classes))
	for i, c := range m.Classes {
		by[i] = newBatches(size(1/c.Arrivals.Mean/rate), o.Percentile, nil)
	}
	for packets, look := 0, batchesFew/2*total.size; ; look = packets + packets/8 {
		for ; packets < look; packets++ {
			sojourn, lost := e.next()
			for _, b := range []*batches{total, by[e.gone]} {
				if b.add(sojourn, lost); b.full() {
					b.close(nil)
				}
			}
		}
		all, each = total.result(), each[:0]
		done := o.Precision > 0 && narrow(total, all, o)
		for _, b := range by {
			r := b.result()
			each, done = append(each, r), done && narrow(b, r, o)
		}
		if done || packets >= most {
			return all, each, nil
		}
	}
}

// narrow reports whether an interval is as narrow as the options ask.
func narrow(b *batches, r Result, o Options) bool {
	value, ci := r.Value(o)
	return len(b.closed) >= batchesFew && ci <= o.Precision*value
}
