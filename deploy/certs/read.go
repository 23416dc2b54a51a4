package certs

import (
	"crypto/x509"
	"math"
	"strings"
	"time"
)

// Info is what a certificate says, for people.
type Info struct {
	Subject    string    `json:"subject"`
	Issuer     string    `json:"issuer"`
	Authority  bool      `json:"authority"`
	Identities []string  `json:"identities"`
	Hosts      []string  `json:"hosts"`
	Serial     string    `json:"serial"` // hexadecimal
	From       time.Time `json:"from"`
	Until      time.Time `json:"until"`
	DaysLeft   int       `json:"days_left"` // whole days; negative once it has expired
}

// Read returns what the certificates of a file say. They need not be valid.
func Read(path string) ([]Info, error) {
	list, err := readCerts(path)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(list))
	for i, c := range list {
		infos[i] = Info{
			Subject: c.Subject.CommonName, Issuer: c.Issuer.CommonName, Authority: c.IsCA, Identities: uris(c), Hosts: hostsOf(c),
			Serial: c.SerialNumber.Text(16), From: c.NotBefore, Until: c.NotAfter,
			DaysLeft: int(math.Floor(time.Until(c.NotAfter).Hours() / 24)),
		}
	}
	return infos, nil
}

// hostsOf returns the names and addresses of machines in a certificate.
func hostsOf(c *x509.Certificate) []string {
	list := []string{}
	for _, name := range c.DNSNames {
		if !strings.HasSuffix(name, ".weft.internal") {
			list = append(list, name)
		}
	}
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	return list
}

// File returns where the certificate of a name is in a folder.
func File(dir, name string) string { return filesOf(dir, name).cert }
