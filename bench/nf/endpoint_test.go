package nf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// certified returns files of a certificate for 127.0.0.1 that is its own
// authority.
func certified(t *testing.T) TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := TLS{Certificate: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "k.pem"), Authority: filepath.Join(dir, "c.pem")}
	for name, block := range map[string]*pem.Block{files.Certificate: {Type: "CERTIFICATE", Bytes: der}, files.Key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestTLS runs a core with TLS, and asks it without the certificate that it
// wants.
func TestTLS(t *testing.T) {
	t.Parallel()
	files := certified(t)
	nrf := serve(t, files, func(e *Endpoint) http.Handler {
		return NewNRF(e.Root(), DefaultRepository(), time.Now, discard()).Handler()
	})
	secure := func(c *Config) { c.TLS = files }
	run(t, nrf, sbi.AUSF, secure)
	smf, _ := run(t, nrf, sbi.SMF, secure)
	amf, _ := run(t, nrf, sbi.AMF, secure)
	if r := attach(t, amf, 5); r.Detachments.Done != 5 || len(r.Failures) != 0 || smf.Endpoint.Scheme != "https" {
		t.Errorf("%+v", r)
	}
	_, client, err := TLS{Authority: files.Authority}.configs()
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: NewTransport(client, false)}
	if resp, err := c.Get(nrf.Root() + "/"); err == nil {
		t.Errorf("without a certificate: %v", resp)
	}
	for _, wrong := range []TLS{{Certificate: "/no/file", Key: files.Key}, {Certificate: files.Certificate, Key: files.Certificate}, {Authority: files.Key}} {
		if _, err := Listen("127.0.0.1:0", wrong, false); err == nil {
			t.Errorf("%+v is allowed", wrong)
		}
	}
}
