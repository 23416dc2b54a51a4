package openflow

import (
	"errors"
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// MalformedError reports a message that breaks the format.
type MalformedError struct {
	Type   Type
	Offset int    // octets from the start of the message
	Reason string // what is wrong

	answer pair
}

// Error says what is wrong where.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed %s: %s (octet %d)", e.Type, e.Reason, e.Offset)
}

// UnsupportedError reports what a version, or this package, cannot express.
type UnsupportedError struct {
	Version Version
	Op      string // what was to be encoded or decoded, such as "flow-mod"
	Field   string // what of it cannot be expressed, such as "ipv6_src"

	answer pair
}

// Error says what cannot be expressed.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s cannot express %s", e.Op, e.Version, e.Field)
}

// TooLongError reports a message, or an element of one, of more than 65535 octets.
type TooLongError struct {
	Type   Type
	Length int
}

// Error gives the length and the limit.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s of %d octets: an OpenFlow message holds at most %d", e.Type, e.Length, MaxLen)
}

// MatchError reports a match that OpenFlow 1.3.5 §7.2.3 forbids; see CheckMatch.
type MatchError struct {
	Field  flow.Field
	Code   uint16 // BadMatch…
	Reason string
}

// Error names the field and says why it cannot stand.
func (e *MatchError) Error() string {
	return fmt.Sprintf("match field %s: %s", e.Field, e.Reason)
}

// Answer returns the error message by which a switch refuses request because
// of err, an error of this package; any other error is "bad request, wrong
// length". Data points into request.
func Answer(err error, request []byte) Error {
	a := badRequestLen
	var m *MalformedError
	var u *UnsupportedError
	var f *MatchError
	switch {
	case errors.As(err, &m):
		a = m.answer
	case errors.As(err, &u):
		a = u.answer
	case errors.As(err, &f):
		a = pair{ErrBadMatch, f.Code}
	}
	e := Error{Type: a.typ, Code: a.code, Data: request}
	if h, err := ParseHeader(request); err == nil {
		e.Xid = h.Xid
	}
	return e
}

// pair is the type and code of an error message.
type pair struct{ typ, code uint16 }

//go:noinline
func malformed(t Type, offset int, reason string, answer pair) error {
	return &MalformedError{Type: t, Offset: offset, Reason: reason, answer: answer}
}

//go:noinline
func unsupported(v Version, op, field string, answer pair) error {
	return &UnsupportedError{Version: v, Op: op, Field: field, answer: answer}
}
