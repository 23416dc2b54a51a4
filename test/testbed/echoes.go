package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// Echo is one ping of a flow: when it was sent, and its round trip, 0 if it was
// not answered.
type Echo struct {
	Sent time.Time
	RTT  time.Duration
}

// Echoes pings one host of a lab from another at an interval for a while, over
// a flow that is established or not, and returns every packet.
func Echoes(ctx context.Context, l *lab.Lab, from, to string, every, duration time.Duration) ([]Echo, error) {
	list := make([]Echo, int(duration/every))
	began := time.Now()
	for i := range list {
		list[i].Sent = began.Add(time.Duration(i) * every)
	}
	_, err := l.Ping(ctx, from, to, traffic.PingOptions{
		Count: len(list), Interval: every, Timeout: 5 * time.Second,
		Reply: func(_, _ string, seq int, rtt time.Duration) {
			if seq >= 0 && seq < len(list) {
				list[seq].RTT = rtt
			}
		},
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("ping %s from %s: %w", to, from, err)
	}
	return list, nil
}
