package policy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// writeOptimised writes which tunnels have moved, or would, and what that gains.
func writeOptimised(t *cli.Table, _, answer proto.Message) {
	m := answer.(*api.OptimiseTunnelsResponse)
	if len(m.Moves) > 0 {
		t.Row("TUNNEL", "PATH", "FROM", "TO", "GAIN", "STATE")
	}
	for _, move := range m.Moves {
		state := move.State
		if move.Reason != "" {
			state += ": " + move.Reason
		}
		t.Row(move.Tunnel, move.Which, strings.Join(move.From, " "), strings.Join(move.To, " "), percent(move.Gain), state)
	}
	if m.Reason != "" {
		t.Row(m.Reason)
	}
	t.Row("tunnels with bandwidth", fmt.Sprintf("%d, %d of them stay in any case", m.Tunnels, m.Fixed))
	t.Row("mean delay", fmt.Sprintf("%s, before %s, bound %s", micros(m.MeanDelayAfter), micros(m.MeanDelay), micros(m.Bound)))
	worst := fmt.Sprintf("%s, before %s", percent(100*m.WorstLoadAfter), percent(100*m.WorstLoad))
	if at := m.WorstLink; at != nil {
		worst += fmt.Sprintf(", at switch %s port %d", at.Dpid, at.Port)
	}
	t.Row("worst load", worst)
	t.Row("gain", percent(m.Gain))
}

// failOptimised fails if a tunnel that was to move has not.
func failOptimised(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	n := 0
	for _, move := range answer.(*api.OptimiseTunnelsResponse).Moves {
		if move.State == "failed" {
			n++
		}
	}
	if n > 0 {
		failed = fmt.Errorf("%d tunnels have not moved", n)
	}
	return failed, nil
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", x) }
func micros(us float64) string { return fmt.Sprintf("%.1f µs", us) }
