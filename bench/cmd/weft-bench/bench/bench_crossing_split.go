package bench

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/test/testbed"
)

// benchSplit is a controller of learning switches in several processes,
// southbound and one or more of forwarding, and its figures.
type benchSplit struct {
	Transport string  `json:"transport"`
	Replicas  int     `json:"replicas"`               // of routing
	Ratio     float64 `json:"single_ratio,omitempty"` // of answers/s to the single process's, median over the rounds
	benchFigures
}

// parseBenchSplit reads TRANSPORT or TRANSPORT:REPLICAS.
func parseBenchSplit(text string) (benchSplit, error) {
	transport, replicas, many := strings.Cut(text, ":")
	s := benchSplit{Transport: transport, Replicas: 1}
	if err := experiments.CheckTransports([]string{transport}); err != nil {
		return s, fmt.Errorf("--split %q: %w", text, err)
	}
	if many {
		n, err := strconv.Atoi(replicas)
		if err != nil || n < 1 || n > 16 {
			return s, fmt.Errorf("--split %q: want 1 to 16 replicas of routing after the colon", text)
		}
		s.Replicas = n
	}
	return s, nil
}

func (s benchSplit) String() string {
	if s.Replicas > 1 {
		return fmt.Sprintf("%s:%d", s.Transport, s.Replicas)
	}
	return s.Transport
}

// benchSplitStart starts one; without a transport, all of it as one process.
func benchSplitStart(ctx context.Context, s benchSplit, cpus benchCPUs) (*benchSubject, error) {
	plan := testbed.Learning("bench-"+cmp.Or(s.Transport, "single"), s.Transport, s.Replicas)
	c, err := testbed.Start(ctx, testbed.Config{Plan: plan, CPU: cpus.subject})
	if err != nil {
		return nil, err
	}
	return &benchSubject{name: cmp.Or(s.String(), "single"), address: c.OpenFlow[0], split: c}, nil
}

// failed returns err with what the subject said last.
func (s *benchSubject) failed(err error) error {
	if s.split != nil {
		return s.split.Failed(err)
	}
	return s.child.Failed(err)
}
