package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// certificate writes a certificate for 127.0.0.1 of its own authority.
func certificate(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "controller"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "c.crt"), filepath.Join(dir, "c.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return cert, key, pool
}

// All that the port does, it does over TLS, and nothing without; a certificate
// that is exchanged is used from then on.
func TestNorthboundTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, pool := certificate(t, dir)
	s := serve(t, func(c *Config) { c.Certificate, c.Key, c.OpenLoopback = cert, key, false })
	token := s.made(t, "ci", "operate")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	get := func(path string) (int, error) {
		req, _ := http.NewRequest("GET", "https://"+s.address+path, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	for _, path := range []string{"/v1/hosts", "/metrics", "/", "/openapi.json"} {
		if code, err := get(path); code != 200 {
			t.Errorf("%s: %d %v", path, code, err)
		}
	}
	conn, err := grpc.NewClient("passthrough:///"+s.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := api.NewHostsClient(conn).ListHosts(bearing(t.Context(), token), &api.ListHostsRequest{}); err != nil {
		t.Errorf("gRPC: %v", err)
	}
	ws, _, err := websocket.Dial(t.Context(), "wss://"+s.address+eventsPath, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		t.Fatalf("WebSocket: %v", err)
	}
	defer ws.CloseNow()
	// In the clear.
	resp, err := http.Get("http://" + s.address + "/v1/hosts")
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", resp.Status)
		}
	}
	if _, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	// Another certificate.
	_, _, next := certificate(t, dir)
	wait(t, func() bool {
		c, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: next})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if code, err := get("/v1/hosts"); code != 200 {
		t.Errorf("the connection that was there: %d %v", code, err)
	}
	if _, err := net.Dial("tcp", s.address); err != nil {
		t.Error(err)
	}
	bad := defaults()
	bad.Certificate = cert
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("without a key: %v", err)
	}
	os.Chmod(key, 0o644)
	open := &server{config: Config{Listen: "127.0.0.1:0", Certificate: cert, Key: key, MaxConnections: 1}}
	if _, err := open.listen(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
}

// CVE-2017-1000079, denial of service at ONOS's northbound: many connections
// that never finish their request, or their handshake, end by themselves and
// keep nobody out for longer than that; what is sent is bounded, as
// TestCVE_2017_1000079_LargeAndEndlessRequests shows.
func TestCVE_2017_1000079_SlowConnections(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("tls=", secure), func(t *testing.T) {
			cert, key, pool := certificate(t, t.TempDir())
			s := serve(t, func(c *Config) {
				c.MaxConnections = 50
				if secure {
					c.Certificate, c.Key = cert, key
				}
			})
			begin := []byte("GET /v1/hosts HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
			if secure {
				begin = []byte{22, 3, 1, 2, 0, 1}
			}
			var slow []net.Conn
			for range 50 {
				c, err := net.Dial("tcp", s.address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.Write(begin)
				slow = append(slow, c)
			}
			client := &http.Client{Timeout: testwait.Limit, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			url := "http://" + s.address + "/v1/hosts"
			if secure {
				url = "https://" + s.address + "/v1/hosts"
			}
			resp, err := client.Get(url)
			if err != nil {
				t.Fatalf("somebody else: %v", err)
			}
			resp.Body.Close()
			for i, c := range slow {
				c.SetReadDeadline(time.Now().Add(testwait.Limit))
				if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
					t.Fatalf("slow connection %d is still open", i)
				}
			}
			// A token that is enormous is refused before it is looked at.
			req, _ := http.NewRequest("GET", url, nil)
			req.Header.Set("Authorization", "Bearer "+string(bytes.Repeat([]byte("x"), 1<<20)))
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
				if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("an enormous header: %s", resp.Status)
				}
			}
		})
	}
}

// CVE-2017-1000079 once more: one client's connections do not keep out others,
// and end where the limit is.
func TestCVE_2017_1000079_ManyConnections(t *testing.T) {
	s := serve(t, func(c *Config) { c.MaxConnectionsPerAddress = 10 })
	var open []net.Conn
	for range 15 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	wait(t, func() bool { return s.refuse.Load() == 5 })
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: other.DialContext}}
	resp, err := client.Get("http://" + s.address + "/v1/hosts")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("another address: %v %v", resp, err)
	}
	resp.Body.Close()
	for _, c := range open {
		c.Close()
	}
	wait(t, func() bool {
		resp, err := http.Get("http://" + s.address + "/v1/hosts")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
}
