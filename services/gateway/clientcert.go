package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// The identities in the certificate of a client (weft certs issue --role).
const (
	clientURI = "weft://client/"
	roleURI   = "weft://role/"
)

// certificatePrefix begins the names of clients that have shown a certificate.
const certificatePrefix = "certificate "

// certified returns the certificate that a client has shown and TLS has verified; nil if
// there is none.
func certified(state *tls.ConnectionState) *x509.Certificate {
	if state == nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	return state.PeerCertificates[0]
}

// bearer returns the caller that a certificate names. One with another identity, such as
// that of a worker or a switch, is nobody's here.
func bearer(c *x509.Certificate, now time.Time) (caller, *denied) {
	no := func(format string, args ...any) (caller, *denied) {
		return caller{}, &denied{kind: codes.Unauthenticated, why: refusedCertificate, text: fmt.Sprintf("the certificate of %.80q ", c.Subject.CommonName) + fmt.Sprintf(format, args...)}
	}
	who := caller{until: c.NotAfter}
	for _, u := range c.URIs {
		uri := u.String()
		if name, is := strings.CutPrefix(uri, clientURI); is {
			who.name = certificatePrefix + name
		}
		if name, is := strings.CutPrefix(uri, roleURI); is {
			r, err := parseRole(name)
			if err != nil || who.role != roleNone {
				return no("names the role %.80q, or two: issue it again with weft certs issue --role", name)
			}
			who.role = r
		}
	}
	switch {
	case who.name == "" || who.role == roleNone:
		return no("is no client's: issue one with weft certs issue NAME --role ROLE, or send a token")
	case now.After(who.until):
		return no("expired on %s: renew it with weft certs renew", who.until.UTC().Format(time.DateTime))
	}
	return who, nil
}

// ended says why what a caller holds open ends.
func (c caller) ended() string {
	if !c.until.IsZero() {
		return "the certificate has ended"
	}
	return "the token has ended"
}

// credential names what a caller has shown, for messages.
func (c caller) credential() string {
	if strings.HasPrefix(c.name, certificatePrefix) {
		return "the " + c.name
	}
	return "the token " + c.name
}
