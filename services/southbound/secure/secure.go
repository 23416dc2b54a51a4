// Package secure speaks TLS with switches and checks that a certificate is for the
// switch that shows it.
//
// Only services/southbound and the packages below it import it.
package secure

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// switchIdentity is what the URI in a switch's certificate begins with; its
// datapath id in hexadecimal digits follows.
const switchIdentity = "weft://switch/"

// insecure is the reason why a TLS connection was refused.
type insecure string

const (
	noCertificate  insecure = "no_certificate"
	unknownCA      insecure = "unknown_authority"
	expired        insecure = "expired"
	wrongSwitch    insecure = "wrong_switch"
	failedInSecret insecure = "tls"
)

func insecurities() []insecure {
	return []insecure{noCertificate, unknownCA, expired, wrongSwitch, failedInSecret}
}

// Secured is the side of a connection that speaks TLS.
type Secured struct {
	*tls.Conn
	Under *Records
}

// Close closes the connection under TLS: TLS's close message would wait for a
// peer that does not read.
func (s *Secured) Close() error { return s.Under.Close() }

// Secrets secures connections and knows which switches their certificates
// prove.
type Secrets struct {
	server *tls.Config
	names  map[string]admission.Switches // more switches, by certificate name or digest
	spaces recordSpaces
	Refuse map[insecure]*atomic.Uint64
}

func NewSecrets(server *tls.Config, names map[string]admission.Switches) *Secrets {
	s := &Secrets{server: server, names: names, Refuse: map[insecure]*atomic.Uint64{}}
	for _, why := range insecurities() {
		s.Refuse[why] = &atomic.Uint64{}
	}
	return s
}

// Plain reports whether a connection is used without TLS.
func (s *Secrets) Plain() bool { return s == nil }

// Wrap returns the connection with TLS; it sends nothing yet.
func (s *Secrets) Wrap(conn net.Conn, a *admission.Account) *Secured {
	under := newRecords(conn, &s.spaces, a)
	return &Secured{tls.Server(under, s.server), under}
}

// Handshake agrees on keys and checks the switch's certificate. The error says
// what the switch lacks.
func (s *Secrets) Handshake(conn *Secured) error {
	err := conn.HandshakeContext(context.Background()) // the session's deadline bounds it
	conn.Under.finishHandshake()
	if err == nil {
		return nil
	}
	why, text := explainTLS(err)
	s.Refuse[why].Add(1)
	return fmt.Errorf("TLS: %s", text)
}

// explainTLS explains in OpenFlow's terms why a handshake failed.
func explainTLS(err error) (insecure, string) {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		c := invalid.Cert
		return expired, fmt.Sprintf("the certificate of %q is valid from %s until %s only, or the clock here is wrong; renew it with weft certs renew", c.Subject.CommonName, c.NotBefore.UTC().Format(time.DateTime), c.NotAfter.UTC().Format(time.DateTime))
	case errors.As(err, &unknown):
		name := "?"
		if unknown.Cert != nil {
			name = unknown.Cert.Subject.CommonName + ", issued by " + unknown.Cert.Issuer.CommonName
		}
		return unknownCA, fmt.Sprintf("the certificate (of %s) is of another authority than southbound.authority; issue one with weft certs switch, and ovs-vsctl set-ssl", name)
	case errors.As(err, &invalid):
		return unknownCA, fmt.Sprintf("the certificate does not hold: %v", err)
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return noCertificate, "the switch shows no certificate; issue one with weft certs switch, and ovs-vsctl set-ssl"
	case errors.As(err, &record):
		return failedInSecret, "the peer does not speak TLS; set-controller wants ssl:HOST:PORT here"
	case errors.As(err, &alert):
		return failedInSecret, fmt.Sprintf("the switch refuses this controller (%v); is its CA certificate that of southbound.certificate?", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failedInSecret, "the switch did not finish the handshake within southbound.handshake_timeout"
	case errors.Is(err, io.EOF):
		return failedInSecret, "the peer hung up within the handshake"
	}
	return failedInSecret, err.Error()
}

// Proves returns nil if a connection's certificate belongs to a switch.
func (s *Secrets) Proves(conn *Secured, sw flow.DPID) error {
	leaf := conn.ConnectionState().PeerCertificates[0] // required, and verified
	has, err := s.SwitchesOf(leaf)
	if err == nil && has.Names(sw) {
		return nil
	}
	s.Refuse[wrongSwitch].Add(1)
	name := leaf.Subject.CommonName
	switch {
	case err != nil:
		return fmt.Errorf("the certificate of %q: %w", name, err)
	case len(has.Ranges) == 0:
		return fmt.Errorf("switch %v: the certificate of %q is not that of a switch; issue one with weft certs switch %v, or name it in southbound.identities", sw, name, sw)
	}
	return fmt.Errorf("switch %v: the certificate of %q is for switch %s; give every switch its own (weft certs switch %v), and every bridge its own other-config:datapath-id", sw, name, has.Text, sw)
}

// SwitchesOf returns the switches of a certificate: those that its URIs name,
// and those that the configuration gives its common name or its digest.
func (s *Secrets) SwitchesOf(leaf *x509.Certificate) (list admission.Switches, err error) {
	var text []string
	for _, u := range leaf.URIs {
		digits, ok := strings.CutPrefix(u.String(), switchIdentity)
		if !ok {
			continue
		}
		sw, err := flow.ParseDPID(digits)
		if err != nil {
			return list, fmt.Errorf("%s: %w", u, err)
		}
		list.Ranges = append(list.Ranges, flow.DPIDRange{First: sw, Last: sw})
		text = append(text, sw.String())
	}
	digest := sha256.Sum256(leaf.Raw)
	for _, name := range []string{leaf.Subject.CommonName, DigestPrefix + hex.EncodeToString(digest[:])} {
		if more, ok := s.names[name]; ok {
			list.Ranges = append(list.Ranges, more.Ranges...)
			text = append(text, more.Text)
		}
	}
	list.Text = strings.Join(text, ", ")
	return list, nil
}

// DigestPrefix marks the SHA-256 digest of a certificate in the configuration.
const DigestPrefix = "sha256:"
