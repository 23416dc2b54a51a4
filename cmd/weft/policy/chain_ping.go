package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func checkChainPing(cmd *cobra.Command, _ []string, request proto.Message) error {
	us, err := pingInterval(cmd)
	request.(*api.PingChainRequest).IntervalUs = us
	return err
}

func writeChainPing(t *cli.Table, _, answer proto.Message) {
	t.Row("FUNCTION", "COPY", "IN", "OUT", "SENT", "RECEIVED", "LEAST", "MEDIAN", "MOST")
	for _, w := range answer.(*api.PingChainResponse).Ways {
		t.Row(append([]any{w.Function, w.Copy, cli.Place(w.In), cli.Place(w.Out), w.Sent, w.Received}, delays(w.DelaysUs)...)...)
	}
}

// failChainPing fails if probes are lost.
func failChainPing(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	if slices.ContainsFunc(answer.(*api.PingChainResponse).Ways, func(w *api.ChainPing) bool { return w.Received < w.Sent }) {
		failed = errors.New("probes have not come back: a function is dead, or sends on IP packets only; weft chain list -o json says by what each is known to be alive")
	}
	return failed, nil
}

func writeChainTrace(t *cli.Table, _, answer proto.Message) {
	trace := answer.(*api.ChainTrace)
	t.Row("HOP", "AT", "TO", "TAG", "NOTE")
	for i, h := range trace.Hops {
		what, to, tag := "switch "+h.GetAt().GetDpid(), "port "+cli.Port(h.GetAt().GetPort()), ""
		if h.Tag != 0 {
			tag = fmt.Sprint(h.Tag)
		}
		if h.Function > 0 {
			what, to = fmt.Sprintf("function %d", h.Function), ""
			if h.At != nil {
				what, to = fmt.Sprintf("%s, copy %d: in %s", what, h.Copy, cli.Place(h.At)), "out "+cli.Place(h.Out)
			}
		}
		t.Row(i+1, what, to, tag, h.Note)
	}
	t.Row()
	t.Row("verdict", trace.Verdict)
}

// failChainTrace fails if the packets do not arrive.
func failChainTrace(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	if trace := answer.(*api.ChainTrace); !trace.Arrives {
		failed = errors.New("the packets do not arrive: " + trace.Verdict)
	}
	return failed, nil
}
