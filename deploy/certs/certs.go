// Package certs is a small public key infrastructure for the workers of one
// controller: a certificate authority in a folder, certificates that say who a
// worker or an app outside is, and the TLS configurations made of them.
//
// Package deploy and cmd/weft may import it. It imports flow, for datapath ids,
// and the standard library.
//
// A folder has ca.crt and ca.key, and for each name NAME.crt and NAME.key. A
// machine that runs workers needs ca.crt and the files of its workers; ca.key
// stays where certificates are issued. Identities are URIs in certificates:
//
//	weft://worker/NAME       the worker of that name
//	weft://app/NAME          the app outside of that name
//	weft://service/SERVICE   who may speak for that service
//	weft://controller/NAME   the server for switches and for clients of the northbound
//	weft://switch/DPID       the switch with that datapath id
//	weft://client/NAME       the client of the northbound of that name
//	weft://role/ROLE         that client's role
//
// The last four are for services/southbound and services/gateway, and no good
// among workers.
package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
)

const (
	authority    = "ca" // the name of the authority's files
	authorityFor = 10 * 365 * 24 * time.Hour
	// earlier is by how much certificates begin before they are issued: clocks
	// of other machines may be slow.
	earlier = 24 * time.Hour
)

// properName is what names of workers, apps and services look like.
var properName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func checkName(what, name string) error {
	if !properName.MatchString(name) {
		return fmt.Errorf("%s %q: up to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit", what, name)
	}
	return nil
}

// files are where a certificate and its key are.
type files struct{ cert, key string }

func filesOf(dir, name string) files {
	return files{filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")}
}

// Init makes a certificate authority in a folder, which is made if it does not
// exist: ECDSA P-256, for 10 years. Only force replaces one, and with it all
// that it has issued.
func Init(dir string, force Force) error {
	return initAt(dir, force, time.Now())
}

// Force is whether existing files are replaced.
type Force bool

// The two of them.
const (
	Keep    Force = false
	Replace Force = true
)

func initAt(dir string, force Force, now time.Time) error {
	f := filesOf(dir, authority)
	if err := mayWrite(f, force); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"Weft"}, CommonName: fmt.Sprintf("Weft CA %x", serial.Bytes()[:4])},
		NotBefore:    now.Add(-earlier), NotAfter: now.Add(authorityFor),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make the authority's certificate: %w", err)
	}
	if err := asowner.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return f.write(der, key)
}

// newSerial returns a serial number of 128 random bits.
func newSerial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	b[0] = b[0]&0x7f | 0x40 // positive, and always as long
	return new(big.Int).SetBytes(b), nil
}

// mayWrite refuses to replace files without force.
func mayWrite(f files, force Force) error {
	if force {
		return nil
	}
	for _, path := range []string{f.cert, f.key} {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s exists; only --force replaces it", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// write writes a certificate and its key, each at once, readable by the owner
// only.
func (f files) write(der []byte, key crypto.Signer) error {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	if err := writeFile(f.key, &pem.Block{Type: "PRIVATE KEY", Bytes: k}); err != nil {
		return err
	}
	return writeFile(f.cert, &pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func writeFile(path string, block *pem.Block) error {
	if err := asowner.WriteWhole(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readCerts reads the certificates of a file.
func readCerts(path string) ([]*x509.Certificate, error) {
	text, err := asowner.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	var others []string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			others = append(others, block.Type)
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, c)
	}
	switch {
	case len(list) > 0:
		return list, nil
	case len(others) > 0:
		return nil, fmt.Errorf("%s has no certificate, but: %q; the certificate is in the .crt file", path, others)
	}
	return nil, fmt.Errorf("%s has no certificate in PEM form (-----BEGIN CERTIFICATE-----)", path)
}

// readKey reads the private key of a file.
func readKey(path string) (crypto.Signer, error) {
	text, err := asowner.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s has no private key in PEM form (-----BEGIN PRIVATE KEY-----)", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a key of type %T cannot sign", path, key)
	}
	return signer, nil
}

// readAuthority reads the certificates of the authority: the newest first, if
// there are several because one is being replaced by the next.
func readAuthority(dir string, now time.Time) ([]*x509.Certificate, error) {
	path := filesOf(dir, authority).cert
	list, err := readCerts(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: make an authority with weft certs init --dir %s, or copy its ca.crt there", path, dir)
	}
	if err != nil {
		return nil, err
	}
	var failed error
	valid := list[:0:0]
	for _, c := range list {
		if !c.IsCA {
			return nil, fmt.Errorf("%s: the certificate of %q is not that of an authority", path, c.Subject.CommonName)
		}
		if err := checkTime(path, c, now); err != nil {
			failed = err
			continue
		}
		valid = append(valid, c)
	}
	if len(valid) == 0 {
		return nil, failed
	}
	return valid, nil
}

// checkTime reports a certificate that is not valid now.
func checkTime(path string, c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		again := "issue it again with --force"
		if c.IsCA {
			again = "make another authority with weft certs init --force, and issue all certificates again"
		}
		return fmt.Errorf("%s expired on %s; %s", path, c.NotAfter.Local().Format(time.DateTime), again)
	case now.Before(c.NotBefore):
		return fmt.Errorf("%s is not valid before %s, and here it is %s; is the clock right?", path,
			c.NotBefore.Local().Format(time.DateTime), now.Local().Format(time.DateTime))
	}
	return nil
}

// sameKey reports whether a certificate is of a key.
func sameKey(c *x509.Certificate, key crypto.Signer) bool {
	a, err := x509.MarshalPKIXPublicKey(c.PublicKey)
	b, err2 := x509.MarshalPKIXPublicKey(key.Public())
	return err == nil && err2 == nil && bytes.Equal(a, b)
}

// Ensure makes an authority in a folder that has none; it reports whether it
// has.
func Ensure(dir string) (made bool, err error) {
	f := filesOf(dir, authority)
	_, errCert := os.Lstat(f.cert)
	_, errKey := os.Lstat(f.key)
	if errors.Is(errCert, fs.ErrNotExist) && errors.Is(errKey, fs.ErrNotExist) {
		return true, Init(dir, Keep)
	}
	return false, nil
}
