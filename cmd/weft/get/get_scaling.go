package get

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getScaling(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "scaling",
		Short: "Show the autoscaled workers, and what was decided about them",
		Long: `Show the workers whose number of replicas follows the load (autoscale in the
plan): how many there are, are ready, and are wanted by the model; the figures
that it goes by; and why the number stays or changes. Below are the last changes,
the latest first. UTILISATION is of the busiest replica; TIME is what the model
predicts for the replicas that are wanted. NOW is what it predicts for those that
there are, MEASURED what packets took in the last minute, and ERROR the median
difference of the two in the last hour.`,
		Example: `  weft get scaling
  weft get scaling -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.GetScaling(c.Ctx, &api.GetScalingRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) { scalingTable(t, m) }}, err
	})
}

func scalingTable(t *cli.Table, m *api.GetScalingResponse) {
	t.Row("WORKER", "REPLICAS", "READY", "WANTED", "BOUNDS", "RATE /s", "SERVICE us", "UTILISATION", "TIME ms", "TARGET ms", "NOW ms", "MEASURED ms", "ERROR", "WHY")
	for _, w := range m.GetWorkers() {
		t.Row(w.Worker, w.Replicas, w.Ready, w.Wanted, fmt.Sprintf("%d-%d", w.Min, w.Max), fmt.Sprintf("%.0f", w.Rate), fmt.Sprintf("%.1f", w.ServiceUs),
			fmt.Sprintf("%.0f %%", 100*w.Utilisation), fmt.Sprintf("%.2f", w.PredictedUs/1000), fmt.Sprintf("%g", w.TargetUs/1000),
			scalingTime(w.PredictedNowUs), scalingTime(w.MeasuredUs), scalingError(w), w.Reason)
	}
	list := m.GetDecisions()
	for i := range list {
		if i == 0 {
			fmt.Fprintln(t)
		}
		d := list[len(list)-1-i]
		fmt.Fprintf(t, "%s  %s\n", cli.When(d.Time), scalingSentence(d))
	}
}

// scalingTime writes a time in milliseconds, unless it is not known.
func scalingTime(us float64) string {
	if us == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", us/1000)
}

func scalingError(w *api.ScaledWorker) string {
	if w.ErrorMinutes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*w.Error)
}

func scalingSentence(d *api.ScalingDecision) string {
	text := fmt.Sprintf("worker %s goes from %d to %d replicas%s", d.GetWorker(), d.GetFrom(), d.GetTo(), because(d.GetReason()))
	if d.GetFrom() == d.GetTo() {
		return fmt.Sprintf("worker %s stays at %d replicas: %s", d.GetWorker(), d.GetFrom(), d.GetReason())
	}
	if d.GetError() != "" {
		text = fmt.Sprintf("worker %s stays at %d replicas, not %d: %s", d.GetWorker(), d.GetFrom(), d.GetTo(), d.GetError())
	}
	return text
}
