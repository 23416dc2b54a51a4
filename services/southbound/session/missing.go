package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/weft-sdn/weft/openflow"
)

// HandshakeError is why a connection did not become a switch.
type HandshakeError struct {
	Remedy string // what would mend it
	Silent bool   // the peer has hung up without a word: nobody has tried to be a switch
	err    error
}

func (e *HandshakeError) Error() string { return e.err.Error() }

func (e *HandshakeError) Unwrap() error { return e.err }

// Remedies of failed handshakes.
const (
	remedyNoSwitch = "is that an OpenFlow switch? It has to speak TLS exactly where southbound.listen says tls:"
	remedySilence  = "the switch leaves a request unanswered that OpenFlow demands an answer to: newer firmware, or another mode of its OpenFlow agent; if it is far away or busy, raise southbound.handshake_timeout"
	remedyHangUp   = "the switch hangs up by itself: its own log says why; is it set to OpenFlow 1.3 or 1.0?"
	remedyVersion  = "set the switch to OpenFlow 1.3 (Open vSwitch: protocols=OpenFlow13 on the bridge)"
	remedyTables   = "give the switch a pipeline with table 0 (a table profile or type pattern of its maker's)"
)

// What a switch is asked for in its handshake, as people call it.
func asked(t openflow.MultipartType) string {
	if t == openflow.MultipartDesc {
		return "description"
	}
	return "port description"
}

// handshakeError returns why a handshake ends while the switch has not sent something.
func (hs *handshake) handshakeError(what string, err error) error {
	within := hs.shared.Config.Load().HandshakeTimeout
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &HandshakeError{Remedy: remedySilence, err: fmt.Errorf("no %s: the switch did not send it within %v (southbound.handshake_timeout)", what, within)}
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return &HandshakeError{Remedy: remedyHangUp, err: fmt.Errorf("no %s: the switch closed the connection instead", what)}
	}
	return fmt.Errorf("no %s: %w", what, err)
}

// helloError is missing for the first message, before which it is not known whether
// the peer is a switch.
func (hs *handshake) helloError(err error) error {
	err = hs.handshakeError("hello", err)
	if e := (*HandshakeError)(nil); errors.As(err, &e) {
		e.Silent = e.Remedy == remedyHangUp && hs.secrets.Plain()
		e.Remedy = remedyNoSwitch
	}
	return err
}
