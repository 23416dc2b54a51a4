package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
)

func getHeartbeats(r *remote) *cobra.Command {
	var only dpidFlag
	return switchFlag(getter(r, &cobra.Command{
		Use:   "heartbeats",
		Short: "Show how the switches answer heartbeats",
		Long: `Show how the switches have answered heartbeats since they connected. STATE is
alive, late (the last beat was not answered before its deadline), lost (several
in a row were not) or waiting (not asked yet). Latencies are from when a beat was
due to when the answer was there; the rate and the deadline are those of
heartbeat.rate and heartbeat.deadline in the configuration.`,
		Example: `  weft get heartbeats
  weft get heartbeats --switch 1 -o json`,
	}, func(c *controller, _ []string) (view, error) {
		m, err := c.ListHeartbeats(c.ctx, &api.ListHeartbeatsRequest{Dpid: only.text})
		return view{value: m, text: func(t *table) {
			t.row("SWITCH", "STATE", "BEATS", "MISSED", "LAST ms", "P50 ms", "P99 ms", "MAX ms", "SINCE")
			for _, s := range m.GetSwitches() {
				t.row(s.Dpid, s.State, s.Beats, s.Missed, millis(s.LastUs), millis(s.P50Us), millis(s.P99Us), millis(s.MaxUs), when(s.Since))
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
