package certs

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestClientKind: a client's certificate says its name and role, also when it is renewed, is
// no good as a server's, nor among workers.
func TestClientKind(t *testing.T) {
	dir := authorityIn(t)
	if err := Issue(dir, Request{Name: "ann", Kind: Client, Role: "operate", Validity: time.Hour}); err != nil {
		t.Fatal(err)
	}
	look := func() *x509.Certificate {
		t.Helper()
		list, err := readCerts(File(dir, "ann"))
		if err != nil {
			t.Fatal(err)
		}
		c := list[0]
		if got := uris(c); !slices.Equal(got, []string{"weft://client/ann", "weft://role/operate"}) {
			t.Errorf("identities %q", got)
		}
		if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || len(c.IPAddresses) > 0 {
			t.Errorf("it is good for %v at %v", c.ExtKeyUsage, c.IPAddresses)
		}
		return c
	}
	first := look()
	if _, err := Renew(dir, 2*time.Hour, "ann"); err != nil {
		t.Fatal(err)
	}
	if look().SerialNumber.Cmp(first.SerialNumber) == 0 {
		t.Error("it is not renewed")
	}
	if _, err := Load(dir, "ann"); err == nil {
		t.Error("a worker may have it")
	}
	for want, r := range map[string]Request{
		"allowed: node, read":  {Name: "x", Kind: Client},
		"and no others, have":  {Name: "x", Role: "read"},
		"speak for no service": {Name: "x", Kind: Client, Role: "read", Services: []string{"stats"}},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}
