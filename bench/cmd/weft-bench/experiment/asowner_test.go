package experiment

import (
	"context"
	"log/slog"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/runs"
	"github.com/weft-sdn/weft/internal/asowner/asownertest"
)

// TestRootFollowsNobody: experiments that root runs in a directory of another user
// leave root's own files alone.
func TestRootFollowsNobody(t *testing.T) {
	asownertest.FollowsNobody(t,
		asownertest.Case{Name: "experiment run", Run: func(_ *testing.T, dir string) error {
			e := experiments.Experiment{
				Name: "none", Columns: []string{"x"}, Cases: func(experiments.Parameters) []experiments.Case { return nil },
				Sum: func(*experiments.Context) error { return nil },
			}
			_, err := experiments.Run(context.Background(), e, experiments.Parameters{Runs: 1}, dir, 0, &experiments.Progress{})
			return err
		}},
		asownertest.Case{Name: "experiment run --fresh", Names: []string{"none"}, Run: func(_ *testing.T, dir string) error {
			return experiments.Discard(experiments.Experiment{Name: "none"}, dir)
		}},
		asownertest.Case{Name: "experiment serve", Run: func(_ *testing.T, dir string) error {
			s, err := runs.Open(runs.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			return s.Close()
		}},
	)
}
