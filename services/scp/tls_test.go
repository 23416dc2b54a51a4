package scp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// secured is what a core that speaks TLS needs: an authority, and one certificate for all.
type secured struct {
	tls                         *tls.Config
	certificate, key, authority string // files
}

// newSecured makes it, with a certificate that names some addresses.
func newSecured(t testing.TB, names ...string) *secured {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "core"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(name))
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s := &secured{certificate: filepath.Join(t.TempDir(), "core.crt"), key: filepath.Join(t.TempDir(), "core.key")}
	s.authority = s.certificate
	for file, block := range map[string]*pem.Block{s.certificate: {Type: "CERTIFICATE", Bytes: der}, s.key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
	if err != nil {
		t.Fatal(err)
	}
	s.tls = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: x509.NewCertPool()}
	s.tls.RootCAs.AddCert(pair.Leaf)
	return s
}

// newRig returns a rig all of which speaks TLS.
func (s *secured) newRig(t testing.TB, change ...func(*Config)) *rig {
	start := func(web *httptest.Server) {
		web.Config.Protocols.SetHTTP2(true)
		web.TLS = &tls.Config{Certificates: s.tls.Certificates, NextProtos: []string{"h2"}}
		web.EnableHTTP2 = true
		web.StartTLS()
	}
	return newRigBy(t, start, s.tls, append([]func(*Config){func(c *Config) { c.Certificate, c.Key, c.Authority = s.certificate, s.key, s.authority }}, change...)...)
}

// tlsProfile is of a function that speaks TLS.
func tlsProfile(p *sbi.NFProfile) { p.NFServices[0].Scheme = "https" }

// In a core that speaks TLS, who has subscribed at the NRF learns of end points, too, and
// requests that are left to the front reach a producer; if the certificate does not name the
// front's own address, to which the NRF would have to connect, subscriptions stay as they are.
func TestTLS(t *testing.T) {
	for _, named := range []bool{true, false} {
		names := []string{"127.0.0.1", at(1), at(5)}
		if named {
			names = append(names, "127.0.0.2")
		}
		s := newSecured(t, names...)
		g := s.newRig(t)
		g.tls = s.tls.Clone()
		g.tls.ServerName = "127.0.0.1" // consumers know the front as the NRF
		amf := g.function(1, sbi.AMF, tlsProfile)
		udm := g.function(5, sbi.UDM, tlsProfile)
		own := "https://" + amf.at.String() + "/callback"
		uri := g.subscribe(1, own, "")
		if strings.HasPrefix(uri, g.url+callbacks) != named {
			t.Fatalf("named %v: the NRF has %s", named, uri)
		}
		if !named {
			continue
		}
		text, _ := json.Marshal(sbi.NotificationData{Event: sbi.NFRegistered, NFInstanceURI: "https://nrf/nnrf-nfm/v1/nf-instances/" + id(5)})
		if resp := g.notifyAs("127.0.0.1", uri, string(text)); resp.StatusCode != http.StatusOK {
			t.Errorf("notified: %s", resp.Status)
		}
		if got := notified(amf).NFProfile; got == nil || got.NFInstanceID == id(5) || got.NFServices[0].Scheme != "https" || !strings.HasPrefix(got.IPv4Addresses[0], "127.0.9.") {
			t.Errorf("told of %+v", got)
		}
		if resp, body := g.do(1, "POST", "/nudm-main/v1/x", "{}", forUDM...); resp.StatusCode != http.StatusOK || udm.last().TLS == nil {
			t.Errorf("left to the front: %s %s", resp.Status, body)
		}
	}
}

// Clients need a certificate of the authority, unless scp.mutual is off.
func TestMutual(t *testing.T) {
	s := newSecured(t, "127.0.0.1", "127.0.0.2")
	for _, mutual := range []bool{true, false} {
		g := s.newRig(t, func(c *Config) { c.Mutual = mutual })
		g.tls = &tls.Config{RootCAs: s.tls.RootCAs}
		client := g.transport(at(5))
		r, err := http.NewRequest(http.MethodGet, g.url+"/nnrf-nfm/v1/nf-instances", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.RoundTrip(r)
		if (err == nil) == mutual {
			t.Errorf("mutual %v: without a certificate: %v", mutual, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		client.CloseIdleConnections()
	}
}
