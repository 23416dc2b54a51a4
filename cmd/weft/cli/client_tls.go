package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft/internal/asowner"
)

// secret returns the token: of --token, WEFT_TOKEN, --token-file or
// WEFT_TOKEN_FILE; empty if there is none.
func (r *Remote) secret() (string, error) {
	file := cmp.Or(r.TokenFile, os.Getenv("WEFT_TOKEN_FILE"))
	switch {
	case r.token != "" && r.TokenFile != "":
		return "", errors.New("--token and --token-file: give one of them")
	case r.token != "":
		return r.token, nil
	case r.TokenFile == "" && os.Getenv("WEFT_TOKEN") != "":
		return os.Getenv("WEFT_TOKEN"), nil
	case file == "":
		return "", nil
	}
	text, err := asowner.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("token: %s: want one line, the token", file)
	}
	return token, nil
}

// TLS returns how to speak TLS with the controller; nil for http.
func (r *Remote) TLS(u *url.URL) (*tls.Config, error) {
	ca := cmp.Or(r.CA, os.Getenv("WEFT_CA"))
	if u.Scheme != "https" {
		if r.Cert != "" {
			return nil, fmt.Errorf("--client-cert is for https, and the controller is %s; give --server https://%s", u, u.Host)
		}
		if r.CA != "" {
			return nil, fmt.Errorf("--ca is for https, and the controller is %s; give --server https://%s", u, u.Host)
		}
		return nil, nil
	}
	c := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	if err := r.show(c); err != nil {
		return nil, err
	}
	if ca == "" {
		return c, nil
	}
	text, err := asowner.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca %s has no certificate in PEM form (-----BEGIN CERTIFICATE-----)", ca)
	}
	return c, nil
}

// show has a connection show the client's certificate, if it has one. The files are read
// for each connection: they may be renewed meanwhile.
func (r *Remote) show(c *tls.Config) error {
	file := cmp.Or(r.Cert, os.Getenv("WEFT_CLIENT_CERT"))
	if file == "" {
		return nil
	}
	base, ok := strings.CutSuffix(file, ".crt")
	if !ok {
		return fmt.Errorf("--client-cert %s: want a file NAME.crt, whose key is in NAME.key beside it (weft certs issue)", file)
	}
	load := func() (*tls.Certificate, error) {
		pair, err := asowner.LoadKeyPair(file, base+".key")
		if err != nil {
			return nil, fmt.Errorf("--client-cert %s, with its key in %s.key: %w", file, base, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return nil
}

// credentials returns those for gRPC; why a handshake fails is noted in failed.
func (r *Remote) credentials(u *url.URL, failed *atomic.Pointer[error]) (credentials.TransportCredentials, error) {
	c, err := r.TLS(u)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return insecure.NewCredentials(), nil
	}
	return &noting{credentials.NewTLS(c), failed}, nil
}

// noting is credentials that note why a handshake failed: gRPC tells it in words
// of its own only.
type noting struct {
	credentials.TransportCredentials
	failed *atomic.Pointer[error]
}

// ClientHandshake is that of TLS (credentials.TransportCredentials).
func (n *noting) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := n.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		n.failed.Store(&err)
	}
	return conn, info, err
}

// Clone copies the credentials (credentials.TransportCredentials).
func (n *noting) Clone() credentials.TransportCredentials {
	return &noting{n.TransportCredentials.Clone(), n.failed}
}

// misunderstood says why client and server do not come to terms about TLS, or
// nothing if that is not it.
func misunderstood(u *url.URL, err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("the controller at %s shows a certificate of an authority that is not known here: give its ca.crt with --ca or WEFT_CA", u)
	case errors.As(err, &name):
		return fmt.Sprintf("the certificate of the controller at %s is not for %s: use a name that it has, or issue it again (weft certs controller --force --host %s)", u, u.Hostname(), u.Hostname())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of the controller at %s is valid from %s until %s only: renew it there with weft certs renew, or set the clock", u,
			invalid.Cert.NotBefore.Local().Format(time.DateTime), invalid.Cert.NotAfter.Local().Format(time.DateTime))
	case errors.As(err, &record):
		return fmt.Sprintf("the controller at %s does not speak TLS: use http://%s", u, u.Host)
	}
	return ""
}

// Denied reports whether the controller does not let a client do what it asks.
func Denied(err error) bool {
	e := (*RemoteError)(nil)
	return errors.As(err, &e) && e.Kind == codes.PermissionDenied
}
