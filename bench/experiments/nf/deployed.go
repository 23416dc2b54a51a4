package nf

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/nf/ids"
	"github.com/weft-sdn/weft/plan/size"
)

// form is how the function is made several.
type form string

const (
	copies    form = "copies"
	chain     form = "chain"     // of equal shares of the rules
	functions form = "functions" // a chain of content, protocol and anomaly
)

// deployed is one way to have n instances: on one CPU, or on one each.
type deployed struct {
	own bool
	as  form
}

func (d deployed) String() string {
	where := "one CPU, "
	if d.own {
		where = "a CPU each, "
	}
	if d.as == functions {
		return where + "chain of functions"
	}
	return where + string(d.as)
}

// ways are what is measured.
func ways() []deployed {
	return []deployed{{false, copies}, {false, chain}, {true, copies}, {true, chain}, {false, functions}}
}

// counts returns the numbers of instances that really run.
func (d deployed) counts() (list []int) {
	if d.as == functions {
		return []int{len(ids.Kinds())}
	}
	for _, n := range size.PaperCounts() {
		if !d.own || n <= len(ownCPUs()) {
			list = append(list, n)
		}
	}
	return list
}

func columns() []string {
	return []string{"n", "delay_ms", "ci_ms", "p99_ms", "rate", "service_ms", "service_scv", "idle_ms", "work_ms", "alerts", "alert_ms",
		"voluntary", "involuntary", "switching_us", "arrival_scv", "lost", "cpu_percent"}
}

// setup is what a way is measured under.
func (d deployed) setup() experiments.Setup {
	s := experiments.Setup{Services: "an intrusion detection with 200 rules", Priority: experiments.AsStarted, Processors: "one for all instances", Load: "the same packets"}
	if d.own {
		s.Processors = "one for each instance"
	}
	return s
}

// cases are the ways on a rig that they share: the first opens it, the last closes it.
func cases(quick bool) (list []experiments.Case) {
	s := &experiments.Shared[*rig]{Open: openRig}
	for _, d := range ways() {
		list = append(list, experiments.Case{Name: d.String(), Setup: d.setup(), Open: func(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
			b, err := s.Take(ctx)
			if err != nil {
				return nil, err
			}
			return &subject{s, b, d, c.Seed, quick}, nil
		}})
	}
	return list
}

// subject is a way on the rig.
type subject struct {
	from  *experiments.Shared[*rig]
	rig   *rig
	d     deployed
	seed  uint64
	quick bool
}

// Close gives the rig back.
func (s *subject) Close() error { return s.from.Leave() }

// Sample measures all numbers of instances with the same packets.
func (s *subject) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	t := stream{rate: s.rig.rate, time: 10 * time.Second, seed: s.seed + uint64(round)}
	if s.quick {
		t.time = 3 * time.Second
	}
	for _, n := range s.d.counts() {
		r, p, err := s.rig.run(ctx, s.d, n, t)
		if err != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		processors := 1
		if s.d.own {
			processors = n
		}
		row := []string{strconv.Itoa(n)}
		for _, v := range []float64{float64(r.Mean), float64(r.CI95), float64(r.P99), s.rig.rate, p.service, p.scv, p.idle, p.work, p.alerts, p.alert,
			p.voluntary, p.involuntary, p.switching * 1e3, float64(r.ArrivalSCV), float64(r.Sent - r.Received), s.rig.rate * p.work / 10 / float64(processors)} {
			cell := "" // of what is not known
			if !math.IsNaN(v) {
				cell = strconv.FormatFloat(v, 'g', 6, 64)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
