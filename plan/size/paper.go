// Package size computes how many instances of a function there should be, as
// copies that share the packets or as a chain of parts, on one processor or on
// many. It has the equations of paper 004 as printed, the better formulas of
// queueing theory, and an answer that rests on the simulator of package
// simulate, which judges them all.
//
// It is pure. Anyone who plans may import it; it imports the standard library,
// its own packages, and gonum.
package size

import "math"

// Paper has the equations of paper 004 (Sharma et al., "On Monolithic and
// Microservice Deployment of Network Functions"), exactly as printed, for a
// function that serves Rate packets in a unit of time, each in Service, of which
// it is idle for Idle. The unit of time is any one.
//
// Equations 4, 5, 8 and 9 credit (n-1)/2 idle times, without bound, so that
// service times become negative as n grows. What is misprinted stands beside the
// tests.
type Paper struct {
	Rate    float64 // λ
	Service float64 // T, Idle included
	Idle    float64 // I
}

// PaperService returns the service time T for which equation 1 gives a delay D.
func PaperService(rate, delay float64) float64 { return delay / (1 + rate*delay) }

// Delay is D, equation 1: that of one instance.
func (p Paper) Delay() float64 { return 1 / (1/p.Service - p.Rate) }

// SharedCopiesService is the service time of each of n monoliths on a single
// CPU, equation 4.
func (p Paper) SharedCopiesService(n int, overhead float64) float64 {
	f := float64(n)
	return 1/(1/p.Service-(f-1)*p.Rate/f) - (f-1)*p.Idle/2 + overhead
}

// SharedCopies is D1, equations 2 and 5: n monoliths on a single CPU.
func (p Paper) SharedCopies(n int, overhead float64) float64 {
	return 1 / (1/p.SharedCopiesService(n, overhead) - p.Rate/float64(n))
}

// OwnCopies is D2, equation 6: n monoliths on a CPU each.
func (p Paper) OwnCopies(n int, overhead float64) float64 {
	return 1 / (1/(p.Service+overhead) - p.Rate/float64(n))
}

// SharedChainService is the service time of each of n microservices on a single
// CPU, equation 8.
func (p Paper) SharedChainService(n int, overhead float64) float64 {
	f := float64(n)
	return 1/(f/p.Service-(f-1)*p.Rate) - (f-1)/f*p.Idle/2 + overhead
}

// SharedChain is D3, equations 7 and 9: n microservices on a single CPU. The
// overhead is that of each.
func (p Paper) SharedChain(n int, overhead float64) float64 {
	return float64(n) / (1/p.SharedChainService(n, overhead) - p.Rate)
}

// OwnChain is D4, equation 10: n microservices on a CPU each. The overhead is
// that of each.
func (p Paper) OwnChain(n int, overhead float64) float64 {
	f := float64(n)
	return f / (f/(p.Service+f*overhead) - p.Rate)
}

// PaperCounts are the numbers of instances that the paper tries.
func PaperCounts() []int { return []int{1, 2, 4, 8, 16} }

// PaperOverheads are those of its Fig. 5, in milliseconds, and PaperBest the
// numbers of instances that it says are best for them on a single CPU.
func PaperOverheads() []float64 { return []float64{0, 0.005, 0.01, 0.015, 0.02} }

// PaperBest are the numbers of instances that the paper says are best for
// PaperOverheads on a single CPU.
func PaperBest() []int { return []int{16, 8, 4, 2, 2} }

// The paper's figures, in milliseconds: the rate, the idle time, and the share
// of the CPU that one instance takes by Fig. 7.
const (
	PaperRate        = 0.97
	PaperIdle        = 0.248
	PaperUtilisation = 0.34
)

// PaperFunction is the function that the paper measures. It does not print T;
// Fig. 7 has λ(T-I) = 0.34.
func PaperFunction() Paper {
	return Paper{Rate: PaperRate, Service: PaperUtilisation/PaperRate + PaperIdle, Idle: PaperIdle}
}

// Least returns which of the counts has the least delay, 0 if none has any. A
// delay is one that is positive and finite.
func Least(counts []int, delay func(n int) float64) int {
	best, least := 0, math.Inf(1)
	for _, n := range counts {
		if d := delay(n); d > 0 && d < least {
			best, least = n, d
		}
	}
	return best
}
