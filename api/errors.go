package api

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is a failure of a call: what was attempted on what, the kind of
// failure, which crosses the wire and on which callers branch, and its cause.
type Error struct {
	Kind codes.Code
	Text string
	Err  error // cause; nil after crossing the wire
}

// Errorf returns an error of a kind; %w keeps the cause.
func Errorf(kind codes.Code, format string, args ...any) *Error {
	e := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Text: e.Error(), Err: errors.Unwrap(e)}
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// GRPCStatus makes the kind and the text what a gRPC or HTTP client sees.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Kind, e.Text) }

// KindOf returns the kind of err: OK for nil, Unknown for errors without one.
func KindOf(err error) codes.Code {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	return status.Code(err)
}
