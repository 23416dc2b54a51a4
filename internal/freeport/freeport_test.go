package freeport

import (
	"net"
	"testing"
)

func TestLoopback(t *testing.T) {
	found := map[string]bool{}
	for range 50 {
		address, err := Loopback()
		if err != nil {
			t.Fatal(err)
		}
		if found[address] {
			t.Errorf("%s was found twice", address)
		}
		found[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; port >= 32768 {
			t.Errorf("port %d may be taken by any connection", port)
		}
		l.Close()
	}
}

// A port that one has found and does not listen on yet is nobody else's.
func TestReserved(t *testing.T) {
	port, err := Port()
	if err != nil {
		t.Fatal(err)
	}
	if reserve(port) == nil {
		t.Errorf("port %d was found twice", port)
	}
}
