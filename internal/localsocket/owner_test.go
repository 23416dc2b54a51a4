package localsocket

import (
	"net"
	"testing"
)

// TestDiagAnswers: what is not the answer to the question lets nobody in.
func TestDiagAnswers(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, 8), make([]byte, 16), make([]byte, 20), make([]byte, 200)} {
		if uid, err := diagOwner(b, 5); err == nil {
			t.Errorf("%d octets: user %d", len(b), uid)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there := l.Addr().(*net.TCPAddr).AddrPort()
	if uid, err := ownerOfTCP(there, there); err == nil {
		t.Errorf("a listener is taken for a connection, of user %d", uid)
	}
}
