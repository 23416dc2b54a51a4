package shm_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/shm"
	"github.com/weft-sdn/weft/transport/transporttest"
)

func TestTransport(t *testing.T) {
	transporttest.Test(t, func(t *testing.T) (transport.Transport, string) { return shm.New(nil), "unix:" + t.TempDir() + "/s" })
}

// TestAbstract listens at a name that no file stands for.
func TestAbstract(t *testing.T) {
	n := 0
	transporttest.Test(t, func(*testing.T) (transport.Transport, string) {
		n++
		return shm.New(nil), fmt.Sprintf("unix:@weft-shm-test-%d-%d", os.Getpid(), n)
	})
}

func TestTLS(t *testing.T) {
	c := transporttest.TLS(t)
	transporttest.Test(t, func(t *testing.T) (transport.Transport, string) { return shm.New(c), "unix:" + t.TempDir() + "/s" })
}

func Benchmark(b *testing.B) {
	transporttest.Bench(b, func(b testing.TB) (transport.Transport, string) { return shm.New(nil), "unix:" + b.TempDir() + "/s" })
}
