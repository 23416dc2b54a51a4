package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/internal/northbound"
)

// body is the body of a request. It is not read until the method is known and the
// caller may call it.
type body struct {
	from io.ReadCloser          // bounded by maxBody
	hold func(octets int) error // counts its decoded size
	err  error                  // why it is not read, or not further
}

// bodyKey is the context's key for the body of an HTTP request.
type bodyKey struct{}

func bodyOf(ctx context.Context) *body {
	b, _ := ctx.Value(bodyKey{}).(*body)
	return b
}

// Read reads from the body, unless it was refused (io.Reader).
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = unread(err)
		err = b.err
	}
	return n, err
}

// Close closes the body (io.Closer).
func (b *body) Close() error { return b.from.Close() }

// errTooLarge is the error of a request of more than maxBody octets.
var errTooLarge = status.Errorf(codes.ResourceExhausted, "the request is larger than %d octets; send it in parts", maxBody)

// unread returns the error of a request whose body could not be read.
func unread(err error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return errTooLarge
	}
	if full := room(err); full != err {
		return full
	}
	return status.Error(codes.InvalidArgument, fmt.Sprintf("read the request: %v", err))
}

// room sets the kind of errors about lack of room.
func room(err error) error {
	if full := (*northbound.Full)(nil); errors.As(err, &full) {
		return status.Error(codes.ResourceExhausted, full.Error())
	}
	return err
}

// grpcHeader is the octets of gRPC before a message.
const grpcHeader = 5

// whole reads the whole body of a gRPC call. gRPC's server would take a buffer
// for every piece, however short, and read on for as long as a call takes.
func whole(r *http.Request) error {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody+grpcHeader))
	if err != nil {
		return unread(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return nil
}
