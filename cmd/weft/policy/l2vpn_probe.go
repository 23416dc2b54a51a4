package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/quantile"
)

// addPingInterval adds --interval, which the API has in microseconds.
func addPingInterval(cmd *cobra.Command) {
	cmd.Flags().DurationP("interval", "i", 100*time.Millisecond, "time between two of them")
}

func checkPing(cmd *cobra.Command, _ []string, request proto.Message) error {
	us, err := pingInterval(cmd)
	request.(*api.PingCircuitRequest).IntervalUs = us
	return err
}

// pingInterval returns what --interval says, in microseconds.
func pingInterval(cmd *cobra.Command) (us uint32, err error) {
	interval, err := cmd.Flags().GetDuration("interval")
	if interval < time.Millisecond || interval > 10*time.Second {
		return 0, cli.Usagef(cmd, "--interval %v: want 1ms to 10s", interval)
	}
	return uint32(interval.Microseconds()), err
}

func writePing(t *cli.Table, _, answer proto.Message) {
	t.Row("FROM", "TO", "SENT", "RECEIVED", "LEAST", "MEDIAN", "MOST")
	for _, w := range answer.(*api.PingCircuitResponse).Ways {
		t.Row(append([]any{w.From, w.To, w.Sent, w.Received}, delays(w.DelaysUs)...)...)
	}
}

// delays writes the least, the median and the most of some delays.
func delays(us []uint32) []any {
	texts := []any{"", "", ""}
	if list := slices.Sorted(slices.Values(us)); len(list) > 0 {
		for i, us := range []uint32{list[0], quantile.Nearest(list, 0.5), list[len(list)-1]} {
			texts[i] = (time.Duration(us) * time.Microsecond).String()
		}
	}
	return texts
}

// failPing fails if probes are lost.
func failPing(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	if slices.ContainsFunc(answer.(*api.PingCircuitResponse).Ways, func(w *api.CircuitPing) bool { return w.Received < w.Sent }) {
		failed = errors.New("probes have not come back: weft l2vpn validate says what else is wrong")
	}
	return failed, nil
}

func writeFaults(t *cli.Table, _, answer proto.Message) {
	if v := answer.(*api.ValidateCircuitsResponse); len(v.Faults) == 0 {
		fmt.Fprintf(t, "%d circuits are as they should be\n", v.Circuits)
		return
	}
	writeList(t, answer, "faults")
}

// failFaults fails if a circuit is not as it should be.
func failFaults(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	if n := len(answer.(*api.ValidateCircuitsResponse).Faults); n > 0 {
		failed = fmt.Errorf("%d faults", n)
	}
	return failed, nil
}

// writeMacs writes where a vpls has learnt addresses, and the ends that are blocked.
func writeMacs(t *cli.Table, _, answer proto.Message) {
	l := answer.(*api.ListCircuitMacsResponse)
	t.Row("ADDRESS", "END", "AGE", "MOVES", "NOTE")
	for _, m := range l.GetMacs() {
		note := ""
		switch {
		case m.HeldUntil != "":
			note = "stays until " + m.HeldUntil + ": it moved too often"
		case m.Asked:
			note = "asked for"
		}
		t.Row(m.Mac, m.End, (time.Duration(m.AgeS) * time.Second).String(), m.Moves, note)
	}
	for _, x := range l.GetBlocked() {
		t.Row("-", x.End, "", "", fmt.Sprintf("blocked until %s: %s", x.Until, x.Reason))
	}
}
