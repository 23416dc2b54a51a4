package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// body is the body of a request. It is not read before it is known which
// method is called, and that the caller may call it.
type body struct {
	from io.ReadCloser // bounded by maxBody
	err  error         // why it is not read, or not read further
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
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case errors.As(err, &tooLarge):
		b.err = status.Error(codes.ResourceExhausted, fmt.Sprintf("the request is larger than %d octets; send it in parts", maxBody))
		err = b.err
	case err != nil && !errors.Is(err, io.EOF):
		b.err = status.Error(codes.InvalidArgument, fmt.Sprintf("read the request: %v", err))
		err = b.err
	}
	return n, err
}

// Close closes the body (io.Closer).
func (b *body) Close() error { return b.from.Close() }

// tooLarge reports whether the body was larger than maxBody.
func (b *body) tooLarge() bool { return b != nil && status.Code(b.err) == codes.ResourceExhausted }
