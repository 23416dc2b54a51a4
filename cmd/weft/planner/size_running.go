package planner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// fromRunning takes what the flags leave open from the live figures of a
// controller.
func (c *sizeConfig) fromRunning(cmd *cobra.Command) error {
	if cmd.Flags().Changed("service") || c.profile != "" {
		return errors.New("--running, --service and --profile: give one of them")
	}
	client, done, err := c.remote.Dial(cmd)
	if err != nil {
		return err
	}
	defer done()
	m, err := client.GetWork(client.Ctx, &api.GetWorkRequest{})
	if err != nil {
		return err
	}
	return c.takeWork(cmd.Flags(), m)
}

// takeWork takes rate, service time, variation and dispersion of the service
// --of from live figures.
func (c *sizeConfig) takeWork(f *pflag.FlagSet, m *api.GetWorkResponse) error {
	q := &c.question
	var known []string
	var rate, measured, seconds, squares float64
	dispersion := map[float64]float64{} // by time, weighted by rate
	sources := 0.0
	var bins []simulate.Bin
	for _, p := range m.GetProcesses() {
		for _, w := range p.GetWork() {
			if w.Work != "stage" {
				continue
			}
			if w.Measured > 0 {
				known = append(known, w.Service)
			}
			if w.Service != c.of {
				continue
			}
			sources++
			rate += w.Rate
			measured += float64(w.Measured)
			seconds += w.Seconds
			squares += w.SecondsSquares
			for _, b := range w.Times {
				bins = append(bins, simulate.Bin{From: b.From, To: b.To, Count: float64(b.Count)})
			}
			for _, d := range w.Dispersion {
				dispersion[d.Seconds] += d.Index * w.Rate
			}
		}
	}
	slices.Sort(known)
	if measured == 0 {
		return fmt.Errorf("--of %q: want a service whose packets were measured since its process started: %s", c.of, strings.Join(slices.Compact(known), ", "))
	}
	mean := seconds / measured
	q.Service = mean + c.idle.Seconds()
	if !f.Changed("service-scv") && measured > 1 {
		q.ServiceSCV = min(100, max(0, squares/measured/(mean*mean)-1))
	}
	if len(bins) > 0 && !f.Changed("service-scv") && !f.Changed("service-times") {
		var err error
		if q.Times, err = simulate.NewShape(bins); err != nil {
			return fmt.Errorf("--running: the histogram of service times: %w", err)
		}
	}
	if !f.Changed("rate") {
		if q.Rate = rate; rate == 0 {
			return errors.New("--rate is missing, and no packets came in the last ten seconds")
		}
	}
	if f.Changed("arrival-scv") || f.Changed("dispersion") || rate == 0 {
		return nil
	}
	for _, over := range slices.Sorted(maps.Keys(dispersion)) {
		// Each of several processes sees a share, in which bursts are thinner.
		index := 1 + (dispersion[over]/rate-1)*sources
		q.Dispersion = append(q.Dispersion, size.MeasuredDispersion{Time: over, Index: max(index, 0.05)})
	}
	return nil
}
