package pce

import (
	"fmt"
	"strings"
)

// Infeasible is the error that no path meets a demand.
type Infeasible struct {
	Demand Demand
	Reason Reason
	// Cut is the links that lead from what can be reached to the rest, none of which can
	// carry the demand, and why: with ReasonCut only.
	Cut []Blocked
	// Least is the least delay, or number of links, of a path that is otherwise right: with
	// ReasonDelay and ReasonHops.
	Least uint64
}

// Reason is why no path meets a demand.
type Reason uint8

// The reasons.
const (
	ReasonApart  Reason = iota // no links at all lead to the destination
	ReasonCut                  // none of those that do can carry the demand
	ReasonDelay                // every path takes too long
	ReasonHops                 // every path has too many links
	ReasonBounds               // none is short and fast enough at once
	ReasonVia                  // what is to be passed lies on no such path
	ReasonPair                 // there is one path, but no second one apart from it
	ReasonEffort               // the search gave up
)

// Blocked is a link of a cut.
type Blocked struct {
	Link int
	Why  string // drained, excluded, risk group, shared, colour or bandwidth
	Free uint64 // kbit/s at the demand's priority
}

var obstacleNames = [obstacles]string{drained: "drained", excluded: "excluded", risky: "risk group", shared: "shared", coloured: "colour", booked: "bandwidth"}

// Error says why, with the numbers of nodes and links.
func (e *Infeasible) Error() string {
	number := func(n int) string { return fmt.Sprint(n) }
	return e.Text(number, number)
}

// shownMax bounds the links that Text names.
const shownMax = 5

// Text says why, with names of nodes and links.
func (e *Infeasible) Text(node, link func(int) string) string {
	d := &e.Demand
	head := fmt.Sprintf("no path from %s to %s: ", node(d.From), node(d.To))
	switch e.Reason {
	case ReasonApart:
		return head + "no links lead there"
	case ReasonDelay:
		return head + fmt.Sprintf("the least delay is %d µs, at most %d is asked for", e.Least, d.MaxDelay)
	case ReasonHops:
		return head + fmt.Sprintf("the shortest has %d hops, at most %d is asked for", e.Least, d.MaxHops)
	case ReasonBounds:
		return head + fmt.Sprintf("none has at most %d µs and at most %d hops at once", d.MaxDelay, d.MaxHops)
	case ReasonVia:
		return head + "what it is to pass lies on no path that visits no node twice and meets the other conditions"
	case ReasonPair:
		return head + "there is one, but no second one apart from it"
	case ReasonEffort:
		return head + fmt.Sprintf("none found among %d partial ones; ask for less to be passed", labelsMax)
	}
	groups := map[string][]string{}
	var order []string
	for _, b := range e.Cut {
		if groups[b.Why] == nil {
			order = append(order, b.Why)
		}
		text := link(b.Link)
		if b.Why == obstacleNames[booked] {
			text += fmt.Sprintf(" (%d kbit/s free)", b.Free)
		}
		groups[b.Why] = append(groups[b.Why], text)
	}
	var parts []string
	for _, why := range order {
		list := groups[why]
		n := len(list)
		if n > shownMax {
			list = append(list[:shownMax:shownMax], fmt.Sprintf("and %d more", n-shownMax))
		}
		parts = append(parts, fmt.Sprintf(obstacleTexts[why], n, plural(n), strings.Join(list, ", ")))
	}
	text := strings.Join(parts, "; ")
	return head + strings.ReplaceAll(text, "BANDWIDTH", fmt.Sprintf("%d kbit/s", d.Bandwidth))
}

var obstacleTexts = map[string]string{
	"drained":    "%d link%s of the cut drained: %s",
	"excluded":   "%d link%s of the cut excluded: %s",
	"risk group": "%d link%s of the cut of a risk group to be avoided: %s",
	"shared":     "%d link%s of the cut shared with the path to be apart from: %s",
	"colour":     "%d link%s of the cut without the colours that are asked for: %s",
	"bandwidth":  "bandwidth BANDWIDTH is not free on %d link%s of the cut: %s",
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// why says why a search has found nothing.
func (g *Graph) why(d *Demand, s *search) error {
	e := &Infeasible{Demand: *d}
	if s.gaveUp {
		e.Reason = ReasonEffort
		return e
	}
	plain := *d
	plain.MaxDelay, plain.MaxHops, plain.Via = 0, 0, nil
	if t := newSearch(g, &plain); t.best() == nil {
		e.Reason = ReasonApart
		if e.Cut = g.cut(d, t.why); len(e.Cut) > 0 {
			e.Reason = ReasonCut
		}
		return e
	}
	plain.Via = d.Via
	if newSearch(g, &plain).best() == nil {
		e.Reason = ReasonVia
		return e
	}
	for _, bound := range []struct {
		reason Reason
		metric int
	}{{ReasonDelay, byDelay}, {ReasonHops, byHops}} {
		if s.bound(bound.metric) == far {
			continue
		}
		alone := plain
		if bound.metric == byDelay {
			alone.MaxDelay = d.MaxDelay
		} else {
			alone.MaxHops = d.MaxHops
		}
		t := newSearch(g, &alone)
		if t.best() != nil {
			continue
		}
		e.Reason = bound.reason
		e.Least = t.remains[t.pass(0, int32(d.From), -1)][bound.metric][d.From]
		return e
	}
	e.Reason = ReasonBounds
	return e
}

// cut returns the links that leave what the demand can reach.
func (g *Graph) cut(d *Demand, why []obstacle) (list []Blocked) {
	reached := make([]bool, g.Nodes)
	reached[d.From] = true
	queue := []int{d.From}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, i := range g.out[n] {
			if to := g.Links[i].To; why[i] == usable && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	useful := g.leadTo(d.To)
	for i := range g.Links {
		if l := &g.Links[i]; reached[l.From] && !reached[l.To] && useful[l.To] {
			list = append(list, Blocked{i, obstacleNames[why[i]], l.Free(d.Setup)})
		}
	}
	return list
}

// leadTo reports of each node whether any links lead from it to another.
func (g *Graph) leadTo(to int) []bool {
	reached := make([]bool, g.Nodes)
	reached[to] = true
	queue := []int{to}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, i := range g.in[n] {
			if from := g.Links[i].From; !reached[from] {
				reached[from] = true
				queue = append(queue, from)
			}
		}
	}
	return reached
}
