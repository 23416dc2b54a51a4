// Package keypair keeps the certificate, key and authorities of a TLS server up
// to date with their files: after the files change, new connections use the new
// content, and existing ones continue.
//
// The services that listen with TLS import it; it imports the standard library
// only.
package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
)

// Files are the paths of a server's certificate (with intermediate
// certificates, if any), its key, and the authorities that must have issued the
// clients' certificates. All are PEM.
type Files struct {
	Certificate string
	Key         string
	Authority   string // empty: clients are asked for no certificate
	Optional    bool   // clients may come without one
}

// lookEvery is the shortest interval between two checks of the files.
const lookEvery = time.Second

// Pair is the content of the files. Its methods may be called from any
// goroutine.
type Pair struct {
	files Files
	now   func() time.Time

	mu     sync.Mutex // guards what follows
	config *tls.Config
	stamps [3]stamp
	looked time.Time
	err    error
}

// stamp changes when a file is replaced.
type stamp struct {
	mtime time.Time
	size  int64
}

// Open reads the files. The errors say what is wrong with which: it is missing,
// others can read the key, the key is another certificate's, the certificate
// has expired or is not valid yet.
func Open(f Files, now func() time.Time) (*Pair, error) {
	p := &Pair{files: f, now: now, looked: now()}
	var err error
	if p.stamps, err = p.look(); err != nil {
		return nil, err
	}
	if p.config, err = p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// Server returns a configuration for servers: TLS 1.2 and later and, if there
// are authorities, a certificate of theirs from each client.
func (p *Pair) Server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.current(), nil },
		// For callers that check whether there is a certificate at all.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &p.current().Certificates[0], nil },
	}
}

// Expires returns when the certificate in use ends.
func (p *Pair) Expires() time.Time { return p.current().Certificates[0].Leaf.NotAfter }

// Err returns what is wrong with the files now; the last good ones remain in
// use.
func (p *Pair) Err() error {
	c := p.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	return valid(p.files.Certificate, c.Certificates[0].Leaf, p.now())
}

// current returns the configuration of the present files. While they are
// invalid, perhaps half written, the last good ones remain in use.
func (p *Pair) current() *tls.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.looked).Abs() < lookEvery {
		return p.config
	}
	p.looked = now
	stamps, err := p.look()
	if err == nil && (stamps != p.stamps || p.err != nil) {
		var config *tls.Config
		if config, err = p.read(); err == nil {
			p.config, p.stamps = config, stamps
		}
	}
	p.err = err
	return p.config
}

// look returns the stamps of the files.
func (p *Pair) look() (s [3]stamp, err error) {
	for i, name := range []string{p.files.Certificate, p.files.Key, p.files.Authority} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		if name == p.files.Key && info.Mode().Perm()&0o077 != 0 {
			return s, fmt.Errorf("%s: its mode is %04o, so others on this machine can read the key; run chmod 600 %s", name, info.Mode().Perm(), name)
		}
		s[i] = stamp{info.ModTime(), info.Size()}
	}
	return s, nil
}

// read reads the files, and checks them.
func (p *Pair) read() (*tls.Config, error) {
	pair, err := asowner.LoadKeyPair(p.files.Certificate, p.files.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", p.files.Certificate, p.files.Key, err)
	}
	if err := valid(p.files.Certificate, pair.Leaf, p.now()); err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, Time: p.now, NextProtos: []string{"h2", "http/1.1"},
	}
	if p.files.Authority != "" {
		// Every connection authenticates anew: no session is resumed.
		c.ClientAuth, c.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true
		if p.files.Optional {
			c.ClientAuth = tls.VerifyClientCertIfGiven
		} else {
			c.NextProtos = nil
		}
		if c.ClientCAs, err = authorities(p.files.Authority, p.now()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// authorities reads the certificates of the authorities in a file; there are
// several while one replaces another.
func authorities(path string, now time.Time) (*x509.CertPool, error) {
	text, err := asowner.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool, some := x509.NewCertPool(), false
	var failed error
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case !c.IsCA:
			return nil, fmt.Errorf("%s: the certificate of %q is not that of an authority", path, c.Subject.CommonName)
		}
		if err := valid(path, c, now); err != nil {
			failed = err
			continue
		}
		pool.AddCert(c)
		some = true
	}
	switch {
	case some:
		return pool, nil
	case failed != nil:
		return nil, failed
	}
	return nil, errors.New(path + " has no certificate in PEM form (-----BEGIN CERTIFICATE-----)")
}

// valid returns an error for a certificate that is not valid now.
func valid(path string, c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("%s expired on %s; renew it with weft certs renew", path, c.NotAfter.Local().Format(time.DateTime))
	case now.Before(c.NotBefore):
		return fmt.Errorf("%s is not valid before %s, and here it is %s; is the clock right?", path,
			c.NotBefore.Local().Format(time.DateTime), now.Local().Format(time.DateTime))
	}
	return nil
}
