package lab

import (
	"context"

	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/traffic"
)

// Programs returns what became of the programs of the lab's hosts, in the
// order of the topology. Their state is ProgramUnknown if the lab is half made
// or broken, or if this process may not ask.
func (l *Lab) Programs(ctx context.Context) []keeper.ProgramStatus {
	return keeper.Programs(ctx, l.state)
}

// Log returns a reader of what is kept of what a program wrote.
func (l *Lab) Log(host, program string) *keeper.LogReader {
	return keeper.NewLogReader(l.state.LogFile(host, program))
}

// LastWords returns the last line that a program has written; empty if there is none.
func (l *Lab) LastWords(host, program string) string {
	r := l.Log(host, program)
	defer r.Close()
	return r.LastWords()
}

// Iperf measures the throughput from one host to another with iperf3.
func (l *Lab) Iperf(ctx context.Context, from, to string, opt traffic.IperfOptions) (traffic.IperfResult, error) {
	if err := machine.NeedTools("iperf3"); err != nil {
		return traffic.IperfResult{}, err
	}
	return traffic.Iperf(ctx, l, from, to, opt)
}
