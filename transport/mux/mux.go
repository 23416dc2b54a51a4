// Package mux carries the calls of a connection, each under a number, over
// one link that sends and receives messages: the part that the
// transports over gRPC streams and over WebSockets have in common.
//
// A message of the link is a sequence of frames (see frame.go). Large requests
// and responses travel in parts, so that they do not delay others.
//
// Packages transport/grpc, transport/ws and transport/port import it. It
// imports only transport.
package mux

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// assembly collects the parts of a message. Its memory grows with the received
// bytes, not with the announced ones.
type assembly struct {
	total uint64
	b     []byte
}

func (a *assembly) add(part []byte, last bool) error {
	n := uint64(len(a.b) + len(part))
	if n > a.total || last != (n == a.total) {
		return fmt.Errorf("parts of %d octets of a message of %d", n, a.total)
	}
	if need := len(a.b) + len(part); need > cap(a.b) {
		grown := make([]byte, len(a.b), min(max(2*cap(a.b), need), int(a.total)))
		copy(grown, a.b)
		a.b = grown
	}
	a.b = append(a.b, part...)
	return nil
}

// Pulse measures how long a peer is silent, in ticks of a clock of this
// process: if this process is suspended, the peer is not blamed.
type Pulse struct {
	heard  uint64
	silent int
}

// ticksPerInterval is how finely silence is measured.
const ticksPerInterval = 4

// Tick records the total number of signs of life. It says whether to ping the
// peer, and whether to give it up.
func (p *Pulse) Tick(heard uint64, underWay bool, h transport.Heartbeat) (ask, dead bool) {
	if heard != p.heard || !underWay {
		p.heard, p.silent = heard, 0
		return false, false
	}
	p.silent++
	tick := h.Interval / ticksPerInterval
	return p.silent%ticksPerInterval == 0, time.Duration(p.silent)*tick >= h.Dead
}

// Tick returns how often Pulse.Tick is to be called.
func Tick(h transport.Heartbeat) time.Duration {
	return max(h.Interval/ticksPerInterval, time.Millisecond)
}

// watch calls ping when a peer has been silent for a while, and returns true when it is
// dead; false when ended is closed.
func watch(h transport.Heartbeat, ended <-chan struct{}, signs func() (heard uint64, underWay bool), ping func()) bool {
	t := time.NewTicker(Tick(h))
	defer t.Stop()
	var p Pulse
	for {
		select {
		case <-t.C:
		case <-ended:
			return false
		}
		heard, underWay := signs()
		ask, dead := p.Tick(heard, underWay, h)
		if dead {
			return true
		}
		if ask {
			ping()
		}
	}
}

// each decodes the frames of a message.
func each(b []byte, do func(*Frame) error) error {
	if len(b) == 0 {
		return errors.New("an empty message")
	}
	var f Frame
	for len(b) > 0 {
		rest, err := f.Decode(b)
		if err != nil {
			return err
		}
		if err := do(&f); err != nil {
			return err
		}
		b = rest
	}
	return nil
}
