// Package simulate is a discrete-event simulator of queues: stages of copies
// that serve packets in order, on processors of their own or on shared ones, one
// stage after the other or as a mesh. A seed determines the result. It shares no
// formula with package size, which it judges.
//
// Package size and those who check it import it; it imports the standard library
// and gonum.
package simulate

import (
	"errors"
	"fmt"
	"math"
)

// Dispatch is how a stage gives packets to its copies.
type Dispatch string

// The ways to dispatch.
const (
	Random     Dispatch = "random" // as a hash of flows does
	RoundRobin Dispatch = "round-robin"
	Shortest   Dispatch = "shortest" // of the queues, the first of several
	Central    Dispatch = "central"  // one queue for all copies
)

// Dispatches returns the ways to dispatch.
func Dispatches() []Dispatch { return []Dispatch{Random, RoundRobin, Shortest, Central} }

// System is what is simulated. Times are in any one unit.
type System struct {
	Arrivals Law // times between packets
	Bursts   *Bursts
	Stages   []Stage
	// Route has the probabilities of a packet that leaves a stage to go to each
	// stage next; the rest leave. nil: one stage after the other.
	Route [][]float64
	// Processors are shared by all copies, each of which takes at most one; what
	// works shares them equally. 0: each copy has one of its own.
	Processors int
}

// Stage is a number of copies that do the same.
type Stage struct {
	Copies   int
	Dispatch Dispatch // Random if empty
	Service  Law      // the time of a copy for a packet
	// Idle is the share of Service that needs no processor, at its end.
	Idle float64
	// Room is how many packets there may be at a copy, the one in service
	// included, or at all copies together if Dispatch is Central. Further ones
	// are lost. 0: any number.
	Room int
}

// check says what is wrong with a system.
func (s System) check() error {
	law := func(what string, l Law) error {
		if !(l.Mean >= 0 && l.SCV >= 0) || math.IsInf(l.Mean+l.SCV, 0) {
			return fmt.Errorf("%s: mean %v and squared coefficient of variation %v: want numbers of at least 0", what, l.Mean, l.SCV)
		}
		return nil
	}
	if err := law("arrivals", s.Arrivals); err != nil {
		return err
	}
	if s.Arrivals.Mean == 0 || len(s.Stages) == 0 {
		return errors.New("want a time between packets above 0, and at least one stage")
	}
	if err := s.Bursts.check(); err != nil {
		return fmt.Errorf("bursts: %w", err)
	}
	for i, st := range s.Stages {
		if err := law(fmt.Sprintf("stage %d", i), st.Service); err != nil {
			return err
		}
		if st.Copies < 1 || st.Room < 0 || !(st.Idle >= 0 && st.Idle <= 1) {
			return fmt.Errorf("stage %d: %d copies, room for %d, a share of %v idle: want at least 1, at least 0, and 0 to 1", i, st.Copies, st.Room, st.Idle)
		}
	}
	if s.Processors < 0 {
		return fmt.Errorf("%d processors: want at least 0", s.Processors)
	}
	return s.checkRoute()
}

func (s System) checkRoute() error {
	if s.Route == nil {
		return nil
	}
	if len(s.Route) != len(s.Stages) {
		return fmt.Errorf("route: %d rows for %d stages", len(s.Route), len(s.Stages))
	}
	for i, row := range s.Route {
		sum := 0.0
		for _, p := range row {
			if !(p >= 0) {
				return fmt.Errorf("route: row %d has %v: want probabilities", i, p)
			}
			sum += p
		}
		if len(row) != len(s.Stages) || sum > 1+exact {
			return fmt.Errorf("route: row %d has %d probabilities with a sum of %v: want one for each stage and at most 1", i, len(row), sum)
		}
	}
	return nil
}

// load returns how many stages a packet visits on average, and the highest
// utilisation of a copy or of the shared processors; without stages that lose
// packets, which cannot be overloaded.
func (s System) load() (visits, load float64) {
	each := make([]float64, len(s.Stages))
	each[0] = 1
	if s.Route != nil {
		each = visitsOf(each, s.Route)
	} else {
		for i := range each {
			each[i] = 1
		}
	}
	work := 0.0
	for i, st := range s.Stages {
		visits += each[i]
		if st.Room > 0 {
			continue
		}
		of := each[i] * st.Service.Mean / s.Arrivals.Mean
		load = max(load, of/float64(st.Copies))
		work += of * (1 - st.Idle)
	}
	if s.Processors > 0 {
		load = max(load, work/float64(s.Processors))
	}
	return visits, load
}

// visitsOf returns how often a packet visits each stage that enters with these
// probabilities: the power series of the traffic equations.
func visitsOf(enter []float64, route [][]float64) []float64 {
	each := append([]float64{}, enter...)
	for range 10_000 {
		next, change := append([]float64{}, enter...), 0.0
		for i, row := range route {
			for j, p := range row {
				next[j] += each[i] * p
			}
		}
		for i := range next {
			change += math.Abs(next[i] - each[i])
		}
		if each = next; change < exact {
			break
		}
	}
	return each
}
