package experiment

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments"
)

// A case that fails makes the run fail, and is named; the others are measured.
func TestStatusOfFailedCase(t *testing.T) {
	status := func(failing string) (string, error) {
		e := experiments.Experiment{
			Name: "trivial", Columns: []string{"x"}, Sum: func(*experiments.Context) error { return nil },
			Cases: func(experiments.Parameters) (list []experiments.Case) {
				for _, name := range []string{"one", "two"} {
					list = append(list, experiments.Case{Name: name, Open: func(context.Context, *experiments.Context) (experiments.Subject, error) {
						if name == failing {
							return nil, errors.New("out of order")
						}
						return experiments.Once(func(context.Context, int) ([][]string, error) { return [][]string{{"1"}}, nil }), nil
					}})
				}
				return list
			},
		}
		var out strings.Builder
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		c := experimentConfig{dir: t.TempDir(), runs: 1, output: "text"}
		err := c.run(cmd, []experiments.Experiment{e})
		return out.String(), err
	}
	if out, err := status(""); err != nil || !strings.Contains(out, "2 samples, 1 round,") {
		t.Errorf("without a failure: %v, %s", err, out)
	}
	out, err := status("two")
	if err == nil || err.Error() != "trivial: two failed in round 1: out of order" || !strings.Contains(out, "1 samples, 0 to 1 of 1 rounds") || !strings.Contains(out, "Failed: two, in round 1: out of order.") {
		t.Errorf("with one: %v, %s", err, out)
	}
}
