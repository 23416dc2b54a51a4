package verify

import (
	"fmt"
	"math"
	"strings"

	"github.com/weft-sdn/weft/plan"
)

// crossings compares how often packet-ins cross to another process, and how long
// requests between workers and packet-ins take.
func (c *comparison) crossings() {
	predicted, crossed, fewest := 0.0, 0.0, needed
	for _, h := range c.says.Hops {
		n := c.counted(h)
		e := estimate{seen: int(n.all), needs: needed}
		if n.all > 0 {
			e.value = float64(n.crossed) / float64(n.all)
		}
		predicted, crossed, fewest = predicted+h.Crossings, crossed+e.value, min(fewest, e.seen)
		c.add("crossing "+h.From+" > "+h.To+": per packet", "crossings", 1, plan.Measured(h.Crossings), e, nil, func() reason {
			return reason{why: fmt.Sprintf("of %d packets %d crossed to another process: the plan in force is not carried out, or was changed meanwhile (weft get workers)", n.all, n.crossed)}
		})
	}
	if len(c.says.Hops) > 0 {
		c.add("packet-in: crossings", "crossings", 1, plan.Measured(predicted), estimate{value: crossed, seen: fewest, needs: needed}, nil, func() reason {
			return reason{why: "a crossing above says which"}
		})
		c.packetIn()
	}
	c.connections()
	c.messages()
}

// counted returns how many packets went from a service to a stage.
func (c *comparison) counted(h plan.Hop) (sum count) {
	for at, n := range c.found.crossings {
		if at.from == h.From && at.to == h.To {
			sum.all += n.all
			sum.crossed += n.crossed
		}
	}
	return sum
}

// packetIn compares how long a packet-in is with the stages: those before the
// first crossing, and from there until the decision is back.
func (c *comparison) packetIn() {
	predicted, before, spread := plan.Measured(0), 0.0, 0.0
	var across *estimate
	var missing []string
	fewest := estimate{seen: needed, needs: needed}
	for _, h := range c.says.Hops {
		predicted = plan.Figure{Value: predicted.Value + h.Delay.Value + h.Stage.Value, Known: predicted.Known && h.Delay.Known && h.Stage.Known}
		if !h.Stage.Known {
			missing = append(missing, keyOf(h.To, "per_packet"))
		}
		switch {
		case across != nil: // what follows is within it
		case h.Crossings > 0:
			e := ofBuckets(c.found.latency[wayOf{h.From, h.To, plan.PacketWay}])
			e.value, e.ci = e.value/ofMicros, e.ci/ofMicros
			across = &e
			fewest.seen = min(fewest.seen, e.seen)
		default:
			all := times{}
			for _, p := range c.found.processes {
				t := p.stages[h.To]
				all = times{all.n + t.n, all.sum + t.sum, all.squares + t.squares}
			}
			e := ofSums(all.n, all.sum, all.squares)
			before += e.value
			spread += e.ci * e.ci
			fewest.seen = min(fewest.seen, e.seen)
		}
	}
	e := estimate{value: before, ci: math.Sqrt(spread), seen: fewest.seen, needs: fewest.needs}
	if across != nil {
		e.value += across.value
		e.ci = math.Sqrt(spread + across.ci*across.ci)
	}
	c.add("packet-in: latency", micros, ofMicros, predicted, e, missing, func() reason { return c.whyLatency(predicted.Value, e.value) })
}

// connections compares the delays of empty requests between workers.
func (c *comparison) connections() {
	for _, x := range c.says.Connections {
		var list []float64 // there and back is as far from either end
		for name, at := range c.found.processes {
			for to, delays := range at.delays {
				a, _ := c.found.plan.Of(name)
				b, _ := c.found.plan.Of(to.to)
				if to.transport == x.Transport && (a.Worker == x.From && b.Worker == x.To || a.Worker == x.To && b.Worker == x.From) {
					list = append(list, delays...)
				}
			}
		}
		e := ofSlices(list)
		key := "delays." + x.Transport + ".local"
		if c.found.plan.Worker(x.From).Machine != c.found.plan.Worker(x.To).Machine {
			key = "delays." + x.Transport + ".remote"
		}
		c.add(fmt.Sprintf("crossing %s > %s over %s: latency", x.From, x.To, x.Transport), micros, ofMicros, x.Delay, e, []string{key}, func() reason {
			return reason{key, fmt.Sprintf("%s is %s in the profile; an empty request takes %s here", key, inMicros(x.Delay.Value), inMicros(e.value))}
		})
	}
}

// messages compares how many messages a second cross between services.
func (c *comparison) messages() {
	for _, r := range c.says.Rates {
		for _, kind := range []struct {
			name string
			rate float64
		}{{plan.CallWay, r.Calls}, {plan.EventWay, r.Events}} {
			if kind.rate == 0 {
				continue
			}
			way := wayOf{r.From, r.To, kind.name}
			e := ofSlices(c.found.rates[way])
			if e.enough() || len(c.found.rates[way]) == 0 {
				e.seen, e.needs = int(c.found.seen[way]), needed
			}
			key := fmt.Sprintf("rates.%s.%s.%ss", r.From, r.To, kind.name)
			c.add(fmt.Sprintf("crossing %s > %s: %ss", r.From, r.To, kind.name), "per second", 1, plan.Measured(kind.rate), e, nil, func() reason {
				return reason{key, fmt.Sprintf("%s foretells %.4g a second at this load, and there are %.4g; plan make takes all of them to grow with the packet-ins", key, kind.rate, e.value)}
			})
		}
	}
}

// whyLatency says whether crossings, stages or waiting make a packet-in's time
// another than predicted.
func (c *comparison) whyLatency(predicted, took float64) reason {
	known := 0.0 // by what empty requests and stages alone take
	worst := reason{}
	most := 0.0
	for _, h := range c.says.Hops {
		for _, r := range c.rows {
			if r.Measured == nil {
				continue
			}
			if strings.HasPrefix(r.What, "stage "+h.To+" in ") && strings.HasSuffix(r.What, ": latency") {
				known += *r.Measured / ofMicros
				if off := math.Abs(*r.Measured/ofMicros - h.Stage.Value); off > most {
					most, worst = off, reason{keyOf(h.To, "per_packet"), fmt.Sprintf("stage %s takes %.4g us, not %s", h.To, *r.Measured, inMicros(h.Stage.Value))}
				}
				break // of replicas the first stands for all
			}
		}
		known += h.Delay.Value
	}
	if off := took - known; off > most {
		return reason{why: fmt.Sprintf("stages and empty requests make up %s of it; in the other %s packets wait for processors and for each other, which the model does not have", inMicros(known), inMicros(off))}
	}
	if worst.why == "" {
		worst.why = fmt.Sprintf("%s were predicted", inMicros(predicted))
	}
	return worst
}
