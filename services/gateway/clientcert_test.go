package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/weft-sdn/weft/api"
)

// shownBy returns a certificate with identities that the authority of files has issued.
func shownBy(t *testing.T, cert, key string, until time.Time, uris ...string) tls.Certificate {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "somebody"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.Leaf, k.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}
}

// TestClientCertificates: a certificate of the authority lets in a client with its role, over
// HTTP and gRPC; a token beside it counts; others are refused, with the reason.
func TestClientCertificates(t *testing.T) {
	dir, others := t.TempDir(), t.TempDir()
	cert, key, pool := certificate(t, dir)
	wrongCert, wrongKey, _ := certificate(t, others)
	s := serve(t, func(c *Config) { c.Certificate, c.Key, c.ClientAuthority, c.OpenLoopback = cert, key, cert, false })
	admin := s.made(t, "ci", "admin")
	ask := func(method, path, token string, shows ...tls.Certificate) (int, string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(shows) == 0 {
				return &tls.Certificate{}, nil
			}
			return &shows[0], nil
		}}}}
		defer client.CloseIdleConnections()
		req, _ := http.NewRequest(method, "https://"+s.address+path, strings.NewReader("{}"))
		if ended, is := strings.CutPrefix(token, "cookie "); is {
			c := cookie(req, ended)
			c.Name = "__Host-" + cookieName // as over TLS
			req.AddCookie(c)
		} else if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		var e struct{ Message string }
		if json.Unmarshal(text, &e) == nil && e.Message != "" {
			return resp.StatusCode, e.Message
		}
		return resp.StatusCode, string(text)
	}
	soon := time.Now().Add(time.Minute)
	read := shownBy(t, cert, key, soon, clientURI+"ann", roleURI+"read")
	for what, x := range map[string]struct {
		method, path, token string
		shows               []tls.Certificate
		want                int
		text                string
	}{
		"nothing":                {"GET", "/v1/hosts", "", nil, 401, "a token is needed"},
		"a certificate":          {"GET", "/v1/hosts", "", []tls.Certificate{read}, 200, ""},
		"too low a role":         {"DELETE", "/v1/tokens/ci", "", []tls.Certificate{read}, 403, "the certificate ann has read"},
		"a token beside it":      {"GET", "/v1/hosts", admin, []tls.Certificate{read}, 200, ""},
		"a wrong token beside":   {"GET", "/v1/hosts", "weft_wrong", []tls.Certificate{read}, 401, "the token is wrong"},
		"an ended cookie beside": {"GET", "/v1/hosts", "cookie weft_ended", []tls.Certificate{read}, 200, ""},
		"an ended cookie":        {"GET", "/v1/hosts", "cookie weft_ended", nil, 401, "the token is wrong"},
		"a node's":               {"GET", "/metrics", "", []tls.Certificate{shownBy(t, cert, key, soon, clientURI+"n", roleURI+"node")}, 403, "the certificate n has the role node"},
		"a worker's":             {"GET", "/v1/hosts", "", []tls.Certificate{shownBy(t, cert, key, soon, "weft://worker/north", "weft://service/gateway")}, 401, "is no client's"},
		"a role without a name":  {"GET", "/v1/hosts", "", []tls.Certificate{shownBy(t, cert, key, soon, roleURI+"admin")}, 401, "is no client's"},
		"an unknown role":        {"GET", "/v1/hosts", "", []tls.Certificate{shownBy(t, cert, key, soon, clientURI+"ann", roleURI+"god")}, 401, "names the role"},
		"two roles":              {"GET", "/v1/hosts", "", []tls.Certificate{shownBy(t, cert, key, soon, clientURI+"ann", roleURI+"read", roleURI+"admin")}, 401, "or two"},
		"an expired one":         {"GET", "/v1/hosts", "", []tls.Certificate{shownBy(t, cert, key, time.Now().Add(-time.Minute), clientURI+"ann", roleURI+"read")}, 0, ""},
		"of another authority":   {"GET", "/v1/hosts", "", []tls.Certificate{shownBy(t, wrongCert, wrongKey, soon, clientURI+"ann", roleURI+"admin")}, 0, ""},
		"what is open to nobody": {"GET", "/healthz", "", nil, 200, ""},
	} {
		if code, text := ask(x.method, x.path, x.token, x.shows...); code != x.want || !strings.Contains(text, x.text) {
			t.Errorf("%s: %d %q, want %d %q", what, code, text, x.want, x.text)
		}
	}
	// A browser shows a certificate for whatever page asks it to.
	for _, foreign := range [][2]string{{"Origin", "https://elsewhere.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{read}}}}
		req, _ := http.NewRequest("GET", "https://"+s.address+"/v1/hosts", nil)
		req.Header.Set(foreign[0], foreign[1])
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if client.CloseIdleConnections(); resp.StatusCode != http.StatusForbidden {
			t.Errorf("a certificate, by a page of %v: %s", foreign, resp.Status)
		}
	}
	conn, err := grpc.NewClient("passthrough:///"+s.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{read}})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := api.NewHostsClient(conn).ListHosts(t.Context(), &api.ListHostsRequest{}); err != nil {
		t.Errorf("gRPC: %v", err)
	}
	if _, err := api.NewGatewayClient(conn).RevokeToken(t.Context(), &api.RevokeTokenRequest{Name: "ci"}); api.KindOf(err) != codes.PermissionDenied {
		t.Errorf("gRPC with too low a role: %v", err)
	}
	who, no := bearer(mustParse(t, read), time.Now())
	if no != nil || !s.guard.holds(who) {
		t.Errorf("what a certificate holds open ends before it does: %v %v", who, no)
	}
	if who.until = time.Now().Add(-time.Second); s.guard.holds(who) {
		t.Error("what a certificate holds open outlasts it")
	}
	bad := defaults()
	bad.ClientAuthority = cert
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "client_authority") {
		t.Errorf("an authority of clients without TLS: %v", err)
	}
}

func mustParse(t *testing.T, c tls.Certificate) *x509.Certificate {
	t.Helper()
	p, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}
