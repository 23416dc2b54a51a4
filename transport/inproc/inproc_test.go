package inproc_test

import (
	"context"
	"testing"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/inproc"
	"github.com/weft-sdn/weft/transport/transporttest"
)

func TestTransport(t *testing.T) {
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) { return inproc.New(), "hosts" })
}

type echo struct{}

func (echo) Call(_ context.Context, _ string, req []byte) ([]byte, error) { return req, nil }

func BenchmarkCall(b *testing.B) {
	n := inproc.New()
	if _, err := n.Listen("a", echo{}); err != nil {
		b.Fatal(err)
	}
	c, err := n.Dial(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	req := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(b.Context(), "m", req); err != nil {
			b.Fatal(err)
		}
	}
}
