package ws_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/transporttest"
	"github.com/weft-sdn/weft/transport/ws"
)

func TestTransport(t *testing.T) {
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) { return ws.New(nil), "127.0.0.1:0" })
}

func TestUnix(t *testing.T) {
	transporttest.Test(t, func(t *testing.T) (transport.Transport, string) { return ws.New(nil), "unix:" + t.TempDir() + "/s" })
}

// TestAbstract listens at a name that no file stands for.
func TestAbstract(t *testing.T) {
	n := 0
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) {
		n++
		return ws.New(nil), fmt.Sprintf("unix:@weft-test-%d-%d", os.Getpid(), n)
	})
}

func TestTLS(t *testing.T) {
	c := transporttest.TLS(t)
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) { return ws.New(c), "127.0.0.1:0" })
}

func TestNetwork(t *testing.T) {
	transporttest.TestNetwork(t, func(*testing.T) (transport.Transport, string) {
		tr := ws.New(nil)
		tr.Heartbeat = transporttest.Beat
		return tr, "127.0.0.1:0"
	})
}

func TestSilentCaller(t *testing.T) {
	tr := ws.New(nil)
	tr.Heartbeat = transporttest.Beat
	transporttest.TestSilentCaller(t, tr, "127.0.0.1:0")
}

func Benchmark(b *testing.B) {
	transporttest.Bench(b, func(testing.TB) (transport.Transport, string) { return ws.New(nil), "127.0.0.1:0" })
}
