package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// TestPathTraversal: no path leads to a file, however it is written; it is sent
// as it is here, as clients tidy paths up. (CVE-2017-1000081 wrote files.)
func TestPathTraversal(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{
		"/../etc/passwd", "/v1/../../etc/passwd", "/v1/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/v1/switches/..%2f..%2f..%2fetc%2fpasswd/flows",
		"/v1/hosts/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/v1/config/..%2f..%2fetc%2fpasswd", `/v1/..\..\etc\passwd`, "/v1/audit?method=../../etc/passwd", "/metrics/../../etc/passwd", "/%00", "/v1/tokens/..%2f..%2fx",
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(testwait.Limit))
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", method, path)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			conn.Close()
			if resp.StatusCode == 500 || strings.Contains(string(body), "root:") {
				t.Errorf("%s %s: %s %.100s", method, path, resp.Status, body)
			}
			if resp.StatusCode == 200 && method != "DELETE" && !strings.Contains(path, "/v1/audit") {
				t.Errorf("%s %s: %s %.100s", method, path, resp.Status, body)
			}
		}
	}
}
