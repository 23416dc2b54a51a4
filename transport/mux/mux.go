// Package mux carries the calls of a connection, each under a number, over
// one link that sends and receives messages: the part that the transports over
// gRPC streams, WebSockets and shared memory have in common.
//
// A message of the link is a sequence of frames (see frame.go). Large requests
// and responses travel in parts, so that they do not delay others.
//
// Packages transport/grpc, transport/ws, transport/shm and transport/port import
// it. It imports only transport.
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

// watch calls ping when a peer has been silent for a while, and returns true when it is
// dead; false when ended is closed.
func watch(h transport.Heartbeat, ended <-chan struct{}, signs func() (heard uint64, underWay bool), ping func()) bool {
	t := time.NewTicker(h.Tick())
	defer t.Stop()
	var p transport.Pulse
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
