package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// Traffic sends packets from one host to another and measures how long each took,
// by the kernel's clock. Lost packets are no error. The threads of source and sink
// use the CPUs of their hosts.
func (l Meter) Traffic(ctx context.Context, from, to string, o Options) (Result, error) {
	r := Result{From: from, To: to}
	if err := o.check(); err != nil {
		return r, err
	}
	a, err := l.state.FindHost(from)
	if err != nil {
		return r, err
	}
	z, err := l.state.FindHost(to)
	if err != nil {
		return r, err
	}
	for _, h := range []*topology.Host{&a, &z} {
		if !h.HasIPv4() {
			return r, fmt.Errorf("host %s has no IPv4 address", h.Name)
		}
	}
	in, err := openSink(machine.HostNetns(l.state.Name, to), z.CPUs, o)
	if err != nil {
		return r, fmt.Errorf("take packets in at host %s: %w", to, err)
	}
	go in.run()
	out, err := openSource(machine.HostNetns(l.state.Name, from), a, z.IPv4.Addr(), o)
	if err != nil {
		in.close()
		return r, fmt.Errorf("send from host %s: %w", from, err)
	}
	defer out.close()
	err = out.run(ctx, in)
	in.settle(out.sent)
	in.close()
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		return r, fmt.Errorf("send from host %s: %w", from, err)
	case in.err != nil:
		return r, fmt.Errorf("take packets in at host %s: %w", to, in.err)
	}
	r.Sent, r.Received, r.Twice = out.sent, in.received, in.twice
	r.sum(out.at[:out.sent], in.at[:out.sent])
	r.SourceCPU, r.SinkCPU = perPacket(out.used, r.Sent), perPacket(in.used, r.Received)
	return r, nil
}

func perPacket(d time.Duration, n int) Figure { return Figure(d.Seconds() * 1e6 / float64(n)) }
