package gateway

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// A caller that may not make a call is refused before it has sent the body.
func TestRightsBeforeReading(t *testing.T) {
	s := serve(t, nil)
	reader := s.made(t, "reader", "read")
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/flows HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", reader, maxBody)
	conn.SetReadDeadline(time.Now().Add(testwait.Limit))
	buf := make([]byte, 4096)
	n, err := io.ReadAtLeast(conn, buf, 12)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 403") {
		t.Errorf("%v: %s", err, buf[:n])
	}
	if resp, body := s.request(t, "POST", "/v1/flows", strings.Repeat(" ", maxBody+1)); resp.StatusCode != 413 {
		t.Errorf("too large: %v %s", resp.Status, body)
	}
}
