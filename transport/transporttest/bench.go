package transporttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/transport"
)

// Bench measures calls one after the other and at once, with a handler in the
// same process. open is as for Test.
func Bench(b *testing.B, open func(testing.TB) (transport.Transport, string)) {
	tr, address := open(b)
	l, err := tr.Listen(address, handler(func(_ context.Context, _ string, req []byte) ([]byte, error) { return req, nil }))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	BenchConn(b, tr, l.Address())
}

// BenchConn measures against a handler that echoes calls.
func BenchConn(b *testing.B, tr transport.Transport, address string) {
	c, err := tr.Dial(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, size := range []int{500, 64 << 10} {
		req := make([]byte, size)
		b.Run(fmt.Sprintf("Call/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Call(b.Context(), "m.Echo", req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("CallsAtOnce/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Call(b.Context(), "m.Echo", req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
