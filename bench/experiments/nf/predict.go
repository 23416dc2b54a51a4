package nf

import (
	"math"

	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// instance is what was measured of a way with n instances, in ms: the delay, and the parts of
// which it is made.
type instance struct {
	delay      float64
	work, idle float64 // for a packet, in all instances that it passes
	scv        float64 // of the times of an instance
	switching  float64 // of Open vSwitch, for a packet
}

// prediction computes delays from what was measured with one and with two instances.
type prediction struct {
	d        deployed
	rate     float64 // packets a second
	one, two instance
}

// parts returns what n instances are expected to take. Each part of a chain costs as much
// more as the second did. Alerts of a packet are spread over the parts of a chain at random,
// so that the times of each vary the more, the fewer it has. On a shared CPU the idle time is
// that of one instance: the wait for the CPU is not in it.
func (p prediction) parts(n int) (q instance) {
	if n == 1 {
		return p.one
	}
	further := float64(n - 1)
	q = instance{work: max(p.one.work, p.two.work), idle: p.one.idle, scv: p.one.scv}
	if p.d.own {
		q.idle = p.two.idle
	}
	if p.d.as == chain {
		q.work = p.one.work + further*max(0, p.two.work-p.one.work)
		q.scv = p.one.scv + further*max(0, p.two.scv-p.one.scv)
	}
	return q
}

// model returns the time in n instances by package size, NaN if they are overloaded.
func (p prediction) model(n int) float64 {
	of := p.parts(n)
	q := size.Question{
		Rate: p.rate, ArrivalSCV: 1, Service: (of.work + of.idle) / 1e3, Idle: of.idle / 1e3, ServiceSCV: of.scv,
		Counts: []int{n}, Forms: []size.Form{size.Copies}, Processors: []int{1}, Dispatch: simulate.Random, Simulate: true, Seed: 1,
	}
	if p.d.as == chain {
		q.Forms = []size.Form{size.InChain}
	}
	if p.d.own {
		q.Processors = []int{0}
	}
	a, err := size.Solve(q)
	if err != nil || math.IsInf(a.Best.Time().Time, 0) {
		return math.NaN()
	}
	return a.Best.Time().Time * 1e3
}

// delays returns the delays that these numbers of instances are expected to give. What the
// model lacks (the switch, wake-ups, the kernel) is what it lacked for one and for two; a chain has
// it for each part more.
func (p prediction) delays(counts []int) (list []float64) {
	first, second := p.one.delay-p.model(1), p.two.delay-p.model(2)
	for _, n := range counts {
		lacks := second
		if p.d.as == chain {
			lacks = first + float64(n-1)*(second-first)
		}
		switch n {
		case 1:
			list = append(list, p.one.delay)
		case 2:
			list = append(list, p.two.delay)
		default:
			list = append(list, p.model(n)+lacks)
		}
	}
	return list
}
