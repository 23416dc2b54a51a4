package transport

import (
	"context"
	"log/slog"
	"runtime/debug"
)

// Answer calls a handler and keeps the promises of transports: it logs a panic
// and returns Unknown for it, and ResourceExhausted for a response that is too
// large. Only transports call it.
func Answer(ctx context.Context, h Handler, method string, req []byte) (resp []byte, err *Error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("transport: the handler of a call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
			resp, err = nil, Errorf(Unknown, "the handler of %s panicked: %v", method, p)
		}
	}()
	resp, e := h.Call(ctx, method, req)
	if e != nil {
		return nil, ErrorOf(e)
	}
	if len(resp) > MaxMessage {
		return nil, TooLarge("response", len(resp))
	}
	return resp, nil
}

// Sendable returns an error if the context or the message prevents a call; nil
// if it may begin.
func Sendable(ctx context.Context, name string, message []byte) *Error {
	switch {
	case ctx.Err() != nil:
		return ErrorOf(ctx.Err())
	case len(message) > MaxMessage:
		return TooLarge("message", len(message))
	case len(name) > MaxName || name == "":
		return Errorf(ResourceExhausted, "name of %d octets: 1 to %d are allowed", len(name), MaxName)
	}
	return nil
}

// TooLarge is the error for a message of more than MaxMessage octets.
func TooLarge(what string, size int) *Error {
	return Errorf(ResourceExhausted, "%s of %d octets: at most %d are allowed", what, size, MaxMessage)
}

type peerKey struct{}

// WithPeer returns a context that carries the identities of a peer.
func WithPeer(ctx context.Context, identities []string) context.Context {
	if len(identities) == 0 {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, identities)
}

// Peer returns the identities in the peer's verified certificate: its URI
// names, such as weft://service/forwarding. In a handler the peer is the
// caller. Nil without mutual TLS. Nobody modifies the result.
func Peer(ctx context.Context) []string {
	identities, _ := ctx.Value(peerKey{}).([]string)
	return identities
}
