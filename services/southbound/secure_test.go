package southbound

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/services/southbound/secure"
	"github.com/weft-sdn/weft/wefttest"
)

// authority is one that issues certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) make(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		a.t.Fatal(err)
	}
	return c, key
}

// ofSwitch issues a certificate; uris are what it says.
func (a *authority) ofSwitch(name string, until time.Time, uris ...string) tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			a.t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	cert, key := a.make(c)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// files writes the authority and a server's certificate of it.
func (a *authority) files(dir string) (certificate, key, ca string) {
	a.t.Helper()
	cert, k := a.make(&x509.Certificate{Subject: pkix.Name{CommonName: "controller"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			a.t.Fatal(err)
		}
		return path
	}
	return write("c.crt", "CERTIFICATE", cert.Raw), write("c.key", "PRIVATE KEY", der), write("ca.crt", "CERTIFICATE", a.cert.Raw)
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// secureWorld is a world whose service listens with TLS.
type secureWorld struct {
	*world
	ca  *authority
	dir string
}

func inAllModesSecure(t *testing.T, config string, body func(*testing.T, *secureWorld)) {
	t.Helper()
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		address, err := freeport.Loopback()
		if err != nil {
			t.Fatal(err)
		}
		w := &secureWorld{&world{t, h, "tcp", address}, newAuthority(t), t.TempDir()}
		cert, key, ca := w.ca.files(w.dir)
		h.Configure(fmt.Sprintf("listen: [\"tls:%s\"]\ncertificate: %s\nkey: %s\nauthority: %s\n%s", w.address, cert, key, ca, endless(config)))
		h.Start()
		body(t, w)
	})
}

// secure connects a fake switch with a certificate; the channel tells when the
// connection ends.
func (w *secureWorld) secure(d *oftest.Device, c *tls.Config) <-chan error {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() {
		conn, err := tls.Dial("tcp", w.address, c)
		if err != nil {
			ended <- err
			return
		}
		ended <- d.Serve(ctx, conn)
	}()
	return ended
}

func (w *secureWorld) client(c ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: w.ca.pool(), Certificates: c, ServerName: "127.0.0.1"}
}

// refused waits until connections have been refused for a reason.
func (w *secureWorld) refused(reason string, n float64) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%v refused for %s", n, reason), func() bool {
		return w.h.Metric("connections_refused_total", "reason", reason) == n
	})
}

const identity1 = "weft://switch/0000000000000001"

// CVE-2018-1000155, OpenFlow takes a switch at its word who it is: with TLS,
// only who has a certificate of that switch is it. Others are refused, each
// counted by its reason, and those that are connected go on.
func TestCVE_2018_1000155_IdentityIsTheCertificates(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	inAllModesSecure(t, "identities: {named: [\"7-8\"], other: [\"9\"]}", func(t *testing.T, w *secureWorld) {
		good := w.client(w.ca.ofSwitch("one", soon, identity1))
		one := w.secure(oftest.NewDevice(oftest.Config{DPID: 1}, nil), good)
		w.up(1)
		stranger := newAuthority(t)
		for _, c := range []struct {
			name, reason string
			dpid         flow.DPID
			tls          *tls.Config
		}{
			{"another's certificate", "wrong_switch", 2, good},
			{"a certificate of no switch", "wrong_switch", 1, w.client(w.ca.ofSwitch("worker", soon, "weft://worker/edge"))},
			{"named, but not for this switch", "wrong_switch", 9, w.client(w.ca.ofSwitch("named", soon))},
			{"digits that are none", "wrong_switch", 1, w.client(w.ca.ofSwitch("bad", soon, "weft://switch/xyz"))},
			{"another authority", "unknown_authority", 1, w.client(stranger.ofSwitch("one", soon, identity1))},
			{"expired", "expired", 1, w.client(w.ca.ofSwitch("one", time.Now().Add(-time.Minute), identity1))},
			{"none", "no_certificate", 1, w.client()},
		} {
			before := w.h.Metric("connections_refused_total", "reason", c.reason)
			select {
			case <-w.secure(oftest.NewDevice(oftest.Config{DPID: c.dpid}, nil), c.tls):
			case <-time.After(testwait.Limit):
				t.Fatalf("%s: not refused", c.name)
			}
			w.refused(c.reason, before+1)
		}
		if n := w.h.Metric("connections_refused_total", "reason", "handshake"); n != 0 {
			t.Errorf("%v counted a second time", n)
		}
		// In the clear, there is nothing to be had.
		raw, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		raw.Write([]byte{4, 0, 0, 8, 0, 0, 0, 1})
		w.refused("tls", 1)
		// One that the configuration names, and one with several switches.
		w.secure(oftest.NewDevice(oftest.Config{DPID: 8}, nil), w.client(w.ca.ofSwitch("named", soon)))
		w.up(8)
		both := w.client(w.ca.ofSwitch("both", soon, "weft://switch/21", "weft://switch/22"))
		for _, sw := range []flow.DPID{0x21, 0x22} {
			w.secure(oftest.NewDevice(oftest.Config{DPID: sw}, nil), both)
			w.up(sw)
			w.works(sw)
		}
		select {
		case err := <-one:
			t.Errorf("the first switch has been disturbed: %v", err)
		default:
		}
		w.works(1)
	})
}

// CVE-2024-29461 and CVE-2013-7333 with TLS: a second connection of the same
// switch, with its own certificate even, does not put out the first.
func TestCVE_2024_29461_DuplicateRefusedWithTLS(t *testing.T) {
	inAllModesSecure(t, "", func(t *testing.T, w *secureWorld) {
		good := w.client(w.ca.ofSwitch("one", time.Now().Add(time.Hour), identity1))
		one := w.secure(oftest.NewDevice(oftest.Config{DPID: 1}, nil), good)
		w.up(1)
		for range 3 {
			select {
			case <-w.secure(oftest.NewDevice(oftest.Config{DPID: 1}, nil), good):
			case <-time.After(testwait.Limit):
				t.Fatal("not refused")
			}
		}
		w.refused("duplicate", 3)
		select {
		case err := <-one:
			t.Errorf("the first switch has been put out: %v", err)
		default:
		}
		w.works(1)
	})
}

// A certificate by its digest, as for switches that cannot have another.
func TestIdentityByDigest(t *testing.T) {
	ca := newAuthority(t)
	leaf := ca.ofSwitch("x", time.Now().Add(time.Hour)).Leaf
	sum := sha256.Sum256(leaf.Raw)
	c := defaults()
	c.Identities = map[string][]string{"sha256:" + strings.ToUpper(hex.EncodeToString(sum[:])): {"5"}}
	names, err := c.certified()
	if err != nil {
		t.Fatal(err)
	}
	list, err := secure.NewSecrets(nil, names).SwitchesOf(leaf)
	if err != nil || !list.Names(5) || list.Names(6) {
		t.Errorf("%v %v", list, err)
	}
}

// beginSlowly opens connections that begin a hello and do not go on.
func (w *secureWorld) beginSlowly(many int) []net.Conn {
	w.t.Helper()
	var slow []net.Conn
	for range many {
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { c.Close() })
		c.Write([]byte{22, 3, 1, 0, 200, 1}) // a hello of 200 octets begins
		slow = append(slow, c)
	}
	return slow
}

// Slow handshakes hold up nobody: when there are too many connections, those that
// are slowest make room.
func TestSlowHandshakes(t *testing.T) {
	t.Parallel()
	inAllModesSecure(t, "handshake_timeout: 1h\nmax_sessions: 20", func(t *testing.T, w *secureWorld) {
		one := w.client(w.ca.ofSwitch("one", time.Now().Add(time.Hour), identity1, "weft://switch/2"))
		w.secure(oftest.NewDevice(oftest.Config{DPID: 1}, nil), one)
		w.up(1)
		w.beginSlowly(19)
		time.Sleep(tooLong + 200*time.Millisecond)
		w.secure(oftest.NewDevice(oftest.Config{DPID: 2}, nil), one)
		w.up(2)
		w.works(1)
		w.works(2)
	})
}

// Slow handshakes end by themselves.
func TestSlowHandshakesEnd(t *testing.T) {
	t.Parallel()
	inAllModesSecure(t, "handshake_timeout: 1s", func(t *testing.T, w *secureWorld) {
		for _, c := range w.beginSlowly(19) {
			c.SetReadDeadline(time.Now().Add(testwait.Limit))
			if _, err := c.Read(make([]byte, 100)); err == nil || os.IsTimeout(err) {
				t.Fatalf("a slow connection was not ended: %v", err)
			}
		}
	})
}

// Certificates are exchanged while sessions last: they go on, and the next has
// the new one, of another authority even.
func TestCertificatesAreReloaded(t *testing.T) {
	t.Parallel()
	inAllModesSecure(t, "", func(t *testing.T, w *secureWorld) {
		soon := time.Now().Add(time.Hour)
		old := w.secure(oftest.NewDevice(oftest.Config{DPID: 1}, nil), w.client(w.ca.ofSwitch("one", soon, identity1)))
		w.up(1)
		w.ca = newAuthority(t)
		w.ca.files(w.dir)
		two := w.client(w.ca.ofSwitch("two", soon, "weft://switch/2"))
		w.eventually("the new certificate is in use", func() bool {
			conn, err := tls.Dial("tcp", w.address, two)
			if err != nil {
				return false
			}
			conn.Close()
			return true
		})
		w.secure(oftest.NewDevice(oftest.Config{DPID: 2}, nil), two)
		w.up(2)
		// Files that are wrong leave the last good ones in use.
		if err := os.WriteFile(filepath.Join(w.dir, "c.crt"), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.eventually("the problem is told", func() bool { return w.h.Metric("certificate_problem") == 1 })
		w.secure(oftest.NewDevice(oftest.Config{DPID: 3}, nil), w.client(w.ca.ofSwitch("three", soon, "weft://switch/3")))
		w.up(3)
		select {
		case err := <-old:
			t.Errorf("a session was ended: %v", err)
		default:
		}
		w.works(1)
	})
}

func TestListenConfig(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string // empty: allowed
	}{
		{func(c *Config) { c.Listen = []string{"tcp:127.0.0.1:1", "tcp:[::1]:1", "tcp:localhost:1", "unix:/x"} }, ""},
		{func(c *Config) { c.Listen = []string{"tcp:0.0.0.0:1"} }, "plain: true"},
		{func(c *Config) { c.Listen = []string{"tcp::1"} }, "plain: true"},
		{func(c *Config) { c.Listen, c.Plain = []string{"tcp:0.0.0.0:1"}, true }, ""},
		{func(c *Config) { c.Listen = []string{"tls:0.0.0.0:1"} }, "all three"},
		{func(c *Config) { c.Listen, c.Certificate, c.Key = []string{"tls:0.0.0.0:1"}, "c", "k" }, "all three"},
		{func(c *Config) {
			c.Listen, c.Certificate, c.Key, c.Authority = []string{"tls:0.0.0.0:1"}, "c", "k", "a"
		}, ""},
		{func(c *Config) { c.Certificate = "c" }, "no tls:HOST:PORT"},
		{func(c *Config) { c.Listen = []string{"ssl:1.2.3.4:1"} }, "want tls:HOST:PORT"},
		{func(c *Config) { c.Identities = map[string][]string{"a": {"rest"}} }, "not possible"},
		{func(c *Config) { c.Identities = map[string][]string{"a": {}} }, "common name"},
		{func(c *Config) { c.Identities = map[string][]string{"a": {"zz"}} }, "hexadecimal"},
	} {
		cfg := defaults()
		c.change(cfg)
		err := cfg.Validate()
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", cfg.Listen, err, c.want)
		}
	}
}
