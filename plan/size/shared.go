package size

import "math"

// Shared is single-threaded instances on processors that they share. A packet
// needs Work of a processor, and an instance for Idle more.
type Shared struct {
	Rate       float64
	ArrivalSCV float64
	Work       float64
	Idle       float64
	ServiceSCV float64
	Instances  int
	Processors int
	// Dealt: packets are dealt to the instances whatever their queues; else a free
	// instance takes the next packet.
	Dealt bool
	// Chain: each instance does the same part of the work for every packet.
	Chain bool
}

// throughput returns how many packets leave in a unit of time while k = 0, 1, …
// instances have one: a closed network of a queue of processors and a delay, by
// convolution.
func (s Shared) throughput() []float64 {
	// weights of j at the processors and of k-j idle, both scaled by the larger
	unit := max(s.Work, s.Idle)
	at, idle := make([]float64, s.Instances+1), make([]float64, s.Instances+1)
	at[0], idle[0] = 1, 1
	for j := 1; j <= s.Instances; j++ {
		at[j] = at[j-1] * s.Work / unit / float64(min(j, s.Processors))
		idle[j] = idle[j-1] * s.Idle / unit / float64(j)
	}
	x, before := make([]float64, s.Instances+1), 1.0
	for k := 1; k <= s.Instances; k++ {
		sum := 0.0
		for j := 0; j <= k; j++ {
			sum += at[j] * idle[k-j]
		}
		x[k] = before / sum / unit
		before = sum
	}
	return x
}

// Utilisation is the highest of those of processors and instances.
func (s Shared) Utilisation() float64 {
	if s.Work+s.Idle == 0 {
		return 0
	}
	return s.Rate / s.throughput()[s.Instances]
}

// Sojourn returns mean and variance of the time in the system, by the
// flow-equivalent server: packets come, and leave as fast as the instances that
// have one let them. The number of packets with one is that of independent queues
// where packets are dealt. Waiting is scaled by the variability of arrivals and
// service; all of it is exact for one instance and exponential times.
func (s Shared) Sojourn() (mean, variance float64) {
	own := s.Work + s.Idle
	if own == 0 {
		return 0, 0
	}
	x := s.throughput()
	n := float64(s.Instances)
	if s.Rate >= x[s.Instances]*(1-1e-9) {
		return math.Inf(1), math.Inf(1)
	}
	const most = 10_000_000
	sum, first, second, p := 1.0, 0.0, 0.0, 1.0
	for k := 1.0; k < most; k++ {
		busy := min(k, n)
		if s.Dealt || s.Chain {
			busy = n * k / (n + k - 1)
		}
		low := math.Floor(busy)
		leave := x[int(low)]
		if part := busy - low; part > 0 {
			leave += part * (x[int(low)+1] - leave)
		}
		p *= s.Rate / leave
		sum += p
		first += k * p
		second += k * k * p
		if k > n && p*k*k < 1e-13*second {
			break
		}
		if sum > 1e200 {
			sum, first, second, p = sum/1e200, first/1e200, second/1e200, p/1e200
		}
	}
	number := first / sum
	mean = number / s.Rate
	variance = max(own*own, (second/sum-number*number-number)/s.Rate/s.Rate)
	wait := mean - own
	// what a wait for instances adds: their share of all waiting
	instances := 1 / (n * n)
	if s.Dealt || s.Chain {
		instances = 1 / (1 + (n-1)*s.Work*s.Work/own/own)
	}
	scale := (s.ArrivalSCV + 1 + (s.ServiceSCV-1)*instances) / 2
	if mean = own + wait*scale; s.Chain {
		return mean, mean * mean * s.ServiceSCV / n
	}
	return mean, own*own*s.ServiceSCV + max(0, variance-own*own)*scale*scale
}
