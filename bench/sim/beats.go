package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Beats are heartbeats that the switches send: each asks the controller for an
// echo (OpenFlow 1.3.5 §7.5.2) so many times a second, whether or not those
// before have been answered. Echo requests of the controller's are always
// answered at once; how long it waits for those, the controller knows.
type Beats struct {
	Rate     float64       // of each switch, per second; the switches take turns
	Warm     time.Duration // before the measurement begins
	Duration time.Duration // of the measurement
	Patience time.Duration // for the last answers; 0 is DefaultPatience
}

// maxBeatRate is the most beats per second of one switch.
const maxBeatRate = 10_000

// BeatResult is what became of the heartbeats that were due in the measured
// time. Each of them has a latency: from when the switch was to send it, whether
// or not the controller reads, to when its answer has arrived at the switch's
// socket, or to the end if there was none. By how much the simulation itself,
// which has a processor to share among all switches, was late is told apart.
type BeatResult struct {
	Due      uint64                  // heartbeats
	Answered uint64                  // of them
	Lost     uint64                  // of them; no answer came
	Wrong    uint64                  // answers to none of them, or not in their order
	Elapsed  time.Duration           // measured time
	Latency  *hdrhistogram.Histogram // nanoseconds
	Behind   *hdrhistogram.Histogram // nanoseconds from when each was due to when the simulation got to it; not part of Latency
	Asked    *hdrhistogram.Histogram // nanoseconds from when an echo request of the controller's was at the switch's socket to when the simulation answered it
}

// Add adds another result to this one.
func (r *BeatResult) Add(o *BeatResult) {
	r.Due += o.Due
	r.Answered += o.Answered
	r.Lost += o.Lost
	r.Wrong += o.Wrong
	r.Elapsed += o.Elapsed
	r.Latency.Merge(o.Latency)
	r.Behind.Merge(o.Behind)
	r.Asked.Merge(o.Asked)
}

// beating is heartbeats at work; the loop owns it.
type beating struct {
	net      *Network
	conf     Beats
	every    int64
	from, to int64 // measured time
	deadline int64
	result   BeatResult
	done     chan struct{}
}

// beat is the heartbeats of one switch.
type beat struct {
	due  int64   // the next to be sent
	want int64   // the next to be answered, by when it was due
	sent []int64 // when those from want on were sent; each carries that
}

// beatLen is what a heartbeat carries: when it was sent.
const beatLen = 8

// MeasureBeats has all switches send heartbeats and measures how long the
// controller takes to answer; a load may run at the same time. The switches must
// be up; see WaitUp.
func (n *Network) MeasureBeats(ctx context.Context, conf Beats) (*BeatResult, error) {
	switch {
	case !(conf.Rate > 0 && conf.Rate <= maxBeatRate):
		return nil, fmt.Errorf("heartbeats: %v per second: want more than 0, at most %d", conf.Rate, maxBeatRate)
	case conf.Duration <= 0 || conf.Warm < 0 || conf.Patience < 0:
		return nil, errors.New("heartbeats: warm-up and patience must not be negative, and the duration must be more than zero")
	}
	if conf.Patience == 0 {
		conf.Patience = DefaultPatience
	}
	b := &beating{net: n, conf: conf, every: int64(1e9 / conf.Rate), done: make(chan struct{})}
	b.result.Latency, b.result.Behind, b.result.Asked = NewHistogram(), NewHistogram(), NewHistogram()
	busy := false
	err := n.call(ctx, func() {
		if busy = n.beats != nil; !busy {
			b.begin()
		}
	})
	switch {
	case err != nil:
		return nil, err
	case busy:
		return nil, errors.New("simulated network: heartbeats are being measured already")
	}
	select {
	case <-b.done:
		return &b.result, nil
	case <-n.done:
		return nil, ErrStopped
	case <-ctx.Done():
		_ = n.call(context.WithoutCancel(ctx), func() { n.beats = nil })
		return nil, ctx.Err()
	}
}

// begin starts them; call on the loop.
func (b *beating) begin() {
	n := b.net
	n.beats = b
	b.from = n.now + int64(b.conf.Warm)
	b.to = b.from + int64(b.conf.Duration)
	b.deadline = b.to + int64(b.conf.Patience)
	b.result.Elapsed = b.conf.Duration
	b.stamp(1)
	for i, nd := range n.nodes {
		nd.beat.due = n.now + b.every*int64(i)/int64(len(n.nodes))
		nd.beat.want, nd.beat.sent = nd.beat.due, nil
	}
}

// stamp has the sockets tell, or no longer, when what is read has arrived.
func (b *beating) stamp(on int) {
	for _, nd := range b.net.nodes {
		if nd.fd >= 0 {
			_ = unix.SetsockoptInt(nd.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, on)
		}
	}
}

// step sends what is due, and ends the measurement when all is answered.
func (b *beating) step() {
	now, open := b.net.now, false
	for _, nd := range b.net.nodes {
		for nd.phase == phaseUp && nd.beat.due <= now && nd.beat.due < b.to {
			payload := binary.BigEndian.AppendUint64(nil, uint64(now))
			nd.beat.sent = append(nd.beat.sent, now)
			nd.queue(nd.version.AppendEchoRequest(nd.pending, nd.newXid(), payload))
			if nd.beat.due >= b.from {
				_ = b.result.Behind.RecordValue(max(now-nd.beat.due, 1))
			}
			nd.beat.due += b.every
		}
		open = open || nd.beat.want < b.to
	}
	if !open || now >= b.deadline {
		b.finish()
	}
}

// answered takes an echo reply that has arrived at a time.
func (b *beating) answered(nd *node, payload []byte, at int64) {
	if len(payload) == 0 {
		return // to the switch's own question whether the controller is there
	}
	if len(payload) != beatLen || len(nd.beat.sent) == 0 || int64(binary.BigEndian.Uint64(payload)) != nd.beat.sent[0] {
		b.result.Wrong++
		return
	}
	due, sent := nd.beat.want, nd.beat.sent[0]
	nd.beat.sent = nd.beat.sent[1:]
	nd.beat.want += b.every
	if due >= b.from && due < b.to {
		b.result.Due++
		b.result.Answered++
		b.record(at - sent)
	}
}

// asked takes an echo request of the controller's that arrived at a time and is
// answered now.
func (b *beating) asked(at int64) {
	if now := b.net.clock(); now >= b.from && now < b.to {
		_ = b.result.Asked.RecordValue(max(now-at, 1))
	}
}

// lost counts the heartbeats of a switch that will not be answered: those that
// were due before a time.
func (b *beating) lost(nd *node, before int64) {
	for ; nd.beat.want < min(before, b.to); nd.beat.want += b.every {
		if nd.beat.want >= b.from {
			b.result.Due++
			b.result.Lost++
			b.record(b.net.now - nd.beat.want)
		}
	}
	nd.beat.due = max(nd.beat.due, nd.beat.want)
	nd.beat.sent = nil
}

func (b *beating) record(ns int64) {
	_ = b.result.Latency.RecordValue(min(max(ns, 1), b.result.Latency.HighestTrackableValue()))
}

// finish ends the measurement.
func (b *beating) finish() {
	for _, nd := range b.net.nodes {
		b.lost(nd, b.to)
	}
	b.stamp(0)
	b.net.beats = nil
	close(b.done)
}
