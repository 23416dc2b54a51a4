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

type echo struct{ events chan struct{} }

func (echo) Call(_ context.Context, _ string, req []byte) ([]byte, error) { return req, nil }
func (e echo) Event(context.Context, string, []byte)                      { e.events <- struct{}{} }

func benchConn(b *testing.B) (transport.Conn, echo) {
	n, h := inproc.New(), echo{make(chan struct{}, 1)}
	if _, err := n.Listen("a", h); err != nil {
		b.Fatal(err)
	}
	c, err := n.Dial(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	return c, h
}

func BenchmarkCall(b *testing.B) {
	c, _ := benchConn(b)
	req := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(b.Context(), "m", req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	c, h := benchConn(b)
	event := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(b.Context(), "s", event); err != nil {
			b.Fatal(err)
		}
		<-h.events
	}
}
