package apps

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
)

// serverTLS is with what the tests' worker serves: its own certificate, and
// only those who show one of the same authority.
func serverTLS(c *Config) *tls.Config {
	if c.TLS == nil {
		return nil
	}
	return &tls.Config{Certificates: c.TLS.Certificates, ClientCAs: c.TLS.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2", "http/1.1"}}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	dir  string // of the files
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool(), dir: t.TempDir()}
	a.key = newKey(t)
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	a.file("ca.pem", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) file(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// config returns a TLS configuration with a certificate for an identity,
// which is also in the files NAME.pem and NAME.key.
func (a *authority) config(name, identity string) *tls.Config {
	u, err := url.Parse(identity)
	if err != nil {
		a.t.Fatal(err)
	}
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{u},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.file(name+".pem", "CERTIFICATE", der)
	a.file(name+".key", "PRIVATE KEY", text)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: a.pool}
}

// secured serves an outside with certificates.
func secured(t *testing.T) (*world, *authority) {
	a := newAuthority(t)
	return serve(t, func(c *Config) {
		c.TLS, c.Peer = a.config("worker", "weft://service/southbound"), transport.Peer
	}), a
}

// TestIdentity: with certificates, an app is who its certificate says.
func TestIdentity(t *testing.T) {
	w, a := secured(t)
	web := func(config *tls.Config) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	}
	other := a.config("other", "weft://app/other")
	nobody := a.config("nobody", "https://example.com/")

	_, err := attachStream(dial(t, w, other), hello("blocker", "stage"), each(nil))
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "weft://app/blocker") {
		t.Errorf("another, by gRPC: %v", err)
	}
	if _, err = api.NewHostsClient(dial(t, w, nobody)).FindHost(context.Background(), &api.FindHostRequest{Address: "10.0.0.1"}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call of nobody, by gRPC: %v", err)
	}
	if _, err = api.NewHostsClient(dial(t, w, other)).FindHost(context.Background(), &api.FindHostRequest{Address: "10.0.0.1"}); err != nil {
		t.Errorf("a call of an app, by gRPC: %v", err)
	}
	resp, err := web(nobody).Post("https://"+w.address+"/v1/call/southbound.ListSwitches", "application/json", nil)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a call of nobody, by REST: %v, %v", resp, err)
	}
	if _, err = web(&tls.Config{RootCAs: a.pool}).Get("https://" + w.address + "/v1/apps"); err == nil {
		t.Error("one without a certificate is let in")
	}
	conn, _, err := websocket.Dial(context.Background(), "wss://"+w.address+"/v1/apps", &websocket.DialOptions{HTTPClient: web(other)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(`{"hello":{"name":"blocker","kind":"stage"}}`)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := conn.Read(context.Background()); err != nil || !strings.Contains(string(text), "weft://app/blocker") {
		t.Errorf("another, by WebSocket: %q, %v", text, err)
	}
	for _, identity := range []string{"weft://app/blocker", "weft://service/blocker"} {
		c, err := attachStream(dial(t, w, a.config("x", identity)), hello("blocker", "stage"), each(&api.Decision{Verdict: "drop"}))
		if err != nil {
			t.Fatalf("as %s: %v", identity, err)
		}
		list := batch(1)
		if err := w.runtime.wait(t, "blocker").App.Packets(context.Background(), list); err != nil || list[0].Verdict != flow.Drop {
			t.Errorf("as %s: %d, %v", identity, list[0].Verdict, err)
		}
		c.leave()
		w.runtime.leaves(t, "blocker")
		testwait.Until(t, "the name is free", func() bool { return w.apps.find("blocker") == nil })
	}
}

// TestRESTIdentity: where packets are POSTed, the app's own certificate is asked for.
func TestRESTIdentity(t *testing.T) {
	w, a := secured(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: a.config("blocker", "weft://app/blocker")}}
	for identity, want := range map[string]codes.Code{"weft://app/blocker": codes.OK, "weft://app/other": codes.Unavailable} {
		app := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(rw, `{"id":%d,"decisions":[{"verdict":"done"}]}`, 1)
		}))
		app.TLS = a.config("app", identity)
		app.TLS.ClientCAs, app.TLS.ClientAuth = a.pool, tls.RequireAndVerifyClientCert
		app.StartTLS()
		t.Cleanup(app.Close)
		resp, err := client.Post("https://"+w.address+"/v1/apps", "application/json", strings.NewReader(fmt.Sprintf(`{"name":"blocker","kind":"stage","url":%q}`, app.URL)))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		list := batch(1)
		if err := w.runtime.wait(t, "blocker").App.Packets(context.Background(), list); api.KindOf(err) != want {
			t.Errorf("served by %s: %v; want %v", identity, err, want)
		}
		if a := w.apps.find("blocker"); a != nil {
			a.end(errLeft)
		}
		testwait.Until(t, "the name is free", func() bool { return w.apps.find("blocker") == nil })
	}
}

// TestPythonTLS: the example with certificates, over every transport.
func TestPythonTLS(t *testing.T) {
	for _, scheme := range []string{"https", "wss", "grpcs"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			w, a := secured(t)
			a.config("blocker", "weft://app/blocker")
			run(t, "tests/secured.py", scheme+"://"+w.address, filepath.Join(a.dir, "ca.pem"), filepath.Join(a.dir, "blocker.pem"), filepath.Join(a.dir, "blocker.key"))
			list := batch(1)
			if err := w.runtime.wait(t, "blocker").App.Packets(context.Background(), list); err != nil || list[0].Verdict != flow.Drop {
				t.Errorf("verdict %d, %v", list[0].Verdict, err)
			}
		})
	}
}
