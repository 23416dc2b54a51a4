package freeport_test

import (
	"net"
	"testing"

	"github.com/weft-sdn/weft/internal/freeport"
)

func TestLoopback(t *testing.T) {
	for range 50 {
		address, err := freeport.Loopback()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // the next may not be the same
		if port := l.Addr().(*net.TCPAddr).Port; port >= 32768 {
			t.Errorf("port %d may be taken by any connection", port)
		}
	}
}
