package certs

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Kind is what a certificate is for.
type Kind string

// The kinds of certificates.
const (
	Worker Kind = "worker" // a process of the controller
	App    Kind = "app"    // a program outside that works with it

	Controller Kind = "controller" // the server that switches and clients of the northbound connect to
	Switch     Kind = "switch"     // one or more switches
	Client     Kind = "client"     // a client of the northbound
)

// Roles are those that a client may have (api/options.proto).
var Roles = []string{"node", "read", "operate", "admin"}

// serverName is the DNS name that all certificates of a kind have besides the
// names of machines: workers move, so that a client checks what a server is,
// not where. The domain internal is reserved for private use.
func (k Kind) serverName() string { return string(k) + ".weft.internal" }

// URI returns the identity of the worker or app of a name.
func (k Kind) URI(name string) string { return "weft://" + string(k) + "/" + name }

// ServiceURI returns the identity of who may speak for a service.
func ServiceURI(service string) string { return "weft://service/" + service }

// Request says what a certificate is to be like.
type Request struct {
	Name     string
	Kind     Kind          // default Worker
	Switches []flow.DPID   // of Kind Switch: the datapaths that it is for
	Services []string      // for which it may speak
	Role     string        // of Kind Client
	Hosts    []string      // names and addresses of its machines; nil means DefaultHosts
	Validity time.Duration // default one year; never beyond that of the authority
	Force    Force         // to replace files
}

// DefaultHosts are the names and addresses of this machine for itself, and its
// host name.
func DefaultHosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil && hostName.MatchString(name) && !slices.Contains(hosts, name) {
		hosts = append(hosts, name)
	}
	return hosts
}

var hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// Validate reports what is wrong with a request.
func (r *Request) Validate() error {
	var errs []error
	errs = append(errs, checkName("name", r.Name))
	if r.Name == authority {
		errs = append(errs, fmt.Errorf("name %q is that of the authority's files; choose another", r.Name))
	}
	if kinds := []Kind{Worker, App, Controller, Switch, Client}; r.Kind != "" && !slices.Contains(kinds, r.Kind) {
		errs = append(errs, fmt.Errorf("kind %q; allowed: %s, %s, %s, %s, %s", r.Kind, Worker, App, Controller, Switch, Client))
	}
	if r.Kind == Client && !slices.Contains(Roles, r.Role) {
		errs = append(errs, fmt.Errorf("role %q; allowed: %s", r.Role, strings.Join(Roles, ", ")))
	}
	if r.Kind != Client && r.Role != "" || r.Kind == Client && len(r.Services) > 0 {
		errs = append(errs, fmt.Errorf("name %s: certificates of kind %s, and no others, have a role, and they speak for no service", r.Name, Client))
	}
	if (r.Kind == Switch) != (len(r.Switches) > 0) {
		errs = append(errs, fmt.Errorf("name %s: certificates of kind %s, and no others, are for datapaths", r.Name, Switch))
	}
	for _, s := range r.Services {
		errs = append(errs, checkName("service", s))
	}
	for _, h := range r.Hosts {
		if net.ParseIP(h) == nil && !hostName.MatchString(h) {
			errs = append(errs, fmt.Errorf("host %q is neither a host name nor an IP address", h))
		}
	}
	if r.Validity < 0 {
		errs = append(errs, fmt.Errorf("validity %v; it must be positive", r.Validity))
	}
	return errors.Join(errs...)
}

// Issue issues certificates by the authority of a folder, for clients and
// servers alike, and writes them there. Nothing is written unless all can be.
func Issue(dir string, requests ...Request) error {
	return issueAt(dir, time.Now(), requests)
}

func issueAt(dir string, now time.Time, requests []Request) error {
	var errs []error
	seen := map[string]bool{}
	for i := range requests {
		r := &requests[i]
		err := r.Validate()
		if err == nil && seen[r.Name] {
			err = fmt.Errorf("name %s: given twice", r.Name)
		}
		if err == nil {
			err = mayWrite(filesOf(dir, r.Name), r.Force)
		}
		seen[r.Name] = true
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	a, err := openAuthority(dir, now)
	if err != nil {
		return err
	}
	for i := range requests {
		if err := a.issue(dir, &requests[i], now); err != nil {
			return fmt.Errorf("issue %s: %w", requests[i].Name, err)
		}
	}
	return nil
}

// signer is an authority that can issue.
type signer struct {
	cert *x509.Certificate
	key  any
}

func openAuthority(dir string, now time.Time) (signer, error) {
	list, err := readAuthority(dir, now)
	if err != nil {
		return signer{}, err
	}
	f := filesOf(dir, authority)
	key, err := readKey(f.key)
	if errors.Is(err, fs.ErrNotExist) {
		return signer{}, fmt.Errorf("%s does not exist: only where the authority's key is, certificates can be issued", f.key)
	}
	if err != nil {
		return signer{}, err
	}
	i := slices.IndexFunc(list, func(c *x509.Certificate) bool { return sameKey(c, key) })
	if i < 0 {
		return signer{}, fmt.Errorf("%s does not belong to %s: they are not of the same authority", f.key, f.cert)
	}
	return signer{list[i], key}, nil
}

func (a signer) issue(dir string, r *Request, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	kind := cmp.Or(r.Kind, Worker)
	until := now.Add(cmp.Or(r.Validity, 365*24*time.Hour))
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"Weft"}, CommonName: r.Name},
		NotBefore:    now.Add(-earlier), NotAfter: until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{kind.serverName()},
	}
	if kind == Switch || kind == Client { // with which nobody can pose as the controller
		template.ExtKeyUsage = template.ExtKeyUsage[1:]
	}
	for _, uri := range identities(r) {
		u, err := url.Parse(uri)
		if err != nil {
			return err
		}
		template.URIs = append(template.URIs, u)
	}
	hosts := r.Hosts
	if hosts == nil && kind != Switch && kind != Client {
		hosts = DefaultHosts()
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, strings.ToLower(h))
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return filesOf(dir, r.Name).write(der, key)
}

// identities are the URIs that a request asks for.
func identities(r *Request) []string {
	if r.Kind == Switch {
		var list []string
		for _, sw := range r.Switches {
			list = append(list, Switch.URI(sw.String()))
		}
		return list
	}
	list := []string{cmp.Or(r.Kind, Worker).URI(r.Name)}
	if r.Role != "" {
		list = append(list, "weft://role/"+r.Role)
	}
	for _, s := range r.Services {
		if uri := ServiceURI(s); !slices.Contains(list, uri) {
			list = append(list, uri)
		}
	}
	return list
}

// Fits reports whether the folder has the certificate that a request asks for
// already: valid for at least another tenth of its time, with all of the
// request's identities and hosts and no other identities. An error says why
// not; it is fs.ErrNotExist if there is none.
func Fits(dir string, r Request) error {
	f := filesOf(dir, r.Name)
	if _, err := os.Stat(f.cert); err != nil {
		return err
	}
	id, err := load(dir, r.Name, time.Now)
	if err != nil {
		return err
	}
	c := id.Certificate()
	if left := time.Until(c.NotAfter); left < c.NotAfter.Sub(c.NotBefore)/10 {
		return fmt.Errorf("%s expires on %s", f.cert, c.NotAfter.Local().Format(time.DateTime))
	}
	has, wants := uris(c), identities(&r)
	slices.Sort(has)
	slices.Sort(wants)
	if !slices.Equal(has, wants) {
		return fmt.Errorf("%s has the identities %s, wanted are %s", f.cert, strings.Join(has, " "), strings.Join(wants, " "))
	}
	for _, h := range r.Hosts {
		if !slices.Contains(hostsOf(c), strings.ToLower(h)) && c.VerifyHostname(h) != nil {
			return fmt.Errorf("%s is not for host %s", f.cert, h)
		}
	}
	return nil
}
