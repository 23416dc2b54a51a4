package get

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getHeartbeats(r *cli.Remote) *cobra.Command {
	var only cli.DPIDFlag
	return switchFlag(cli.Query(r, &cobra.Command{
		Use:   "heartbeats",
		Short: "Show how the switches answer heartbeats",
		Long: `Show how the switches have answered heartbeats since they connected. STATE is
alive, late (the last beat was not answered before its deadline), lost (several
in a row were not) or waiting (not asked yet). Latencies are from when a beat was
due to when the answer was there; the rate and the deadline are those of
heartbeat.rate and heartbeat.deadline in the configuration.`,
		Example: `  weft get heartbeats
  weft get heartbeats --switch 1 -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListHeartbeats(c.Ctx, &api.ListHeartbeatsRequest{Dpid: only.Text})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("SWITCH", "STATE", "BEATS", "MISSED", "LAST ms", "P50 ms", "P99 ms", "MAX ms", "SINCE")
			for _, s := range m.GetSwitches() {
				t.Row(s.Dpid, s.State, s.Beats, s.Missed, cli.Millis(s.LastUs), cli.Millis(s.P50Us), cli.Millis(s.P99Us), cli.Millis(s.MaxUs), cli.When(s.Since))
			}
			fmt.Fprintf(t, "\n%v beats per second and switch, deadline %v\n", m.GetRate(), time.Duration(m.GetDeadlineUs())*time.Microsecond)
		}}, err
	}), &only)
}

func heartbeatSentence(e *api.HeartbeatChanged) string {
	text := fmt.Sprintf("switch %s is %s to heartbeats", e.GetDpid(), e.GetState())
	if e.GetMissedInRow() > 0 {
		text += fmt.Sprintf(", %d missed", e.GetMissedInRow())
	}
	return text + because(e.GetReason())
}
