package rest_test

import (
	"testing"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/transporttest"
)

func TestTransport(t *testing.T) {
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) { return rest.New(nil), "127.0.0.1:0" })
}

func TestUnix(t *testing.T) {
	transporttest.Test(t, func(t *testing.T) (transport.Transport, string) { return rest.New(nil), "unix:" + t.TempDir() + "/s" })
}

func TestTLS(t *testing.T) {
	c := transporttest.TLS(t)
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) { return rest.New(c), "127.0.0.1:0" })
}

func TestNetwork(t *testing.T) {
	transporttest.TestNetwork(t, func(*testing.T) (transport.Transport, string) {
		tr := rest.New(nil)
		tr.Heartbeat = transporttest.Beat
		return tr, "127.0.0.1:0"
	})
}

func Benchmark(b *testing.B) {
	transporttest.Bench(b, func(testing.TB) (transport.Transport, string) { return rest.New(nil), "127.0.0.1:0" })
}
