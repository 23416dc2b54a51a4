package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Identity is who a process is: its certificate and key, and the authority by
// which it knows the others. The files may be replaced while it is in use:
// connections made from then on have the new certificate. The authority is
// that of Load. Its methods may be called from any goroutine.
type Identity struct {
	dir, name string
	pool      *x509.CertPool
	now       func() time.Time

	mu      sync.Mutex // guards what follows
	pair    *tls.Certificate
	stamp   stamp
	looked  time.Time
	problem error
}

// lookEvery is how often the files are looked at, at most.
const lookEvery = time.Second

// stamp tells whether files have been replaced.
type stamp struct {
	cert, key         time.Time
	certSize, keySize int64
}

// Load reads the certificate of a name from a folder, and its authority. The
// errors say what is wrong: a missing file, a key that is another's, a
// certificate that is not valid now, of another authority, or of another name.
func Load(dir, name string) (*Identity, error) { return load(dir, name, time.Now) }

func load(dir, name string, now func() time.Time) (*Identity, error) {
	if err := checkName("name", name); err != nil {
		return nil, err
	}
	list, err := readAuthority(dir, now())
	if err != nil {
		return nil, err
	}
	id := &Identity{dir: dir, name: name, now: now, pool: x509.NewCertPool()}
	for _, c := range list {
		id.pool.AddCert(c)
	}
	if id.stamp, err = id.look(); err != nil {
		return nil, err
	}
	id.looked = now()
	if id.pair, err = id.read(); err != nil {
		return nil, err
	}
	return id, nil
}

// look returns the stamp of the files.
func (id *Identity) look() (s stamp, err error) {
	f := filesOf(id.dir, id.name)
	cert, err := os.Stat(f.cert)
	key, err2 := os.Stat(f.key)
	if err := errors.Join(err, err2); errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s and %s are needed; issue them with weft certs issue --dir %s %s", f.cert, f.key, id.dir, id.name)
	} else if err != nil {
		return s, err
	}
	return stamp{cert.ModTime(), key.ModTime(), cert.Size(), key.Size()}, nil
}

// read reads the files, and checks them.
func (id *Identity) read() (*tls.Certificate, error) {
	f := filesOf(id.dir, id.name)
	chain, err := readCerts(f.cert)
	if err != nil {
		return nil, err
	}
	key, err := readKey(f.key)
	if err != nil {
		return nil, err
	}
	leaf := chain[0]
	if !sameKey(leaf, key) {
		return nil, fmt.Errorf("%s does not belong to %s: the key is another's; issue both again with --force", f.key, f.cert)
	}
	if err := checkTime(f.cert, leaf, id.now()); err != nil {
		return nil, err
	}
	pair := &tls.Certificate{PrivateKey: key, Leaf: leaf}
	between := x509.NewCertPool()
	for i, c := range chain {
		pair.Certificate = append(pair.Certificate, c.Raw)
		if i > 0 {
			between.AddCert(c)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: id.pool, Intermediates: between, CurrentTime: id.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return nil, fmt.Errorf("%s was issued by %q, which is not the authority of %s: %w", f.cert, leaf.Issuer.CommonName, filesOf(id.dir, authority).cert, err)
	}
	if has := uris(leaf); !slices.Contains(has, Worker.URI(id.name)) && !slices.Contains(has, App.URI(id.name)) {
		return nil, fmt.Errorf("%s is not the certificate of %s, but of %q", f.cert, id.name, has)
	}
	return pair, nil
}

// current returns the certificate to show now. New files that are not right
// leave the last good ones in use; they may be half written.
func (id *Identity) current() *tls.Certificate {
	id.mu.Lock()
	defer id.mu.Unlock()
	now := id.now()
	if now.Sub(id.looked).Abs() < lookEvery {
		return id.pair
	}
	id.looked = now
	s, err := id.look()
	if err == nil && (s != id.stamp || id.problem != nil) {
		var pair *tls.Certificate
		if pair, err = id.read(); err == nil {
			id.pair, id.stamp = pair, s
		}
	}
	id.problem = err
	return id.pair
}

// Err returns what is wrong with the files now, as far as they have been
// looked at; the last good ones stay in use.
func (id *Identity) Err() error {
	id.current()
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.problem == nil {
		return checkTime(filesOf(id.dir, id.name).cert, id.pair.Leaf, id.now())
	}
	return id.problem
}

// Name returns the name of the worker or app.
func (id *Identity) Name() string { return id.name }

// Certificate returns the certificate now in use.
func (id *Identity) Certificate() *x509.Certificate { return id.current().Leaf }

// Config returns a configuration for a process that is server and client of
// workers with one configuration: Server and Client in one.
func (id *Identity) Config() *tls.Config {
	c := id.Server()
	c.ServerName = Worker.serverName()
	return c
}

// Server returns a configuration for servers: TLS 1.3, and clients must have a
// certificate of our authority with an identity.
func (id *Identity) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    id.pool, ClientCAs: id.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return id.current(), nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return id.current(), nil },
		VerifyConnection: func(state tls.ConnectionState) error {
			has := Identities(&state)
			if len(has) == 0 {
				return errors.New("the peer's certificate has no identity (weft://…); issue it with weft certs")
			}
			if !slices.ContainsFunc(has, among) {
				return fmt.Errorf("the peer is %q, which is no worker and no app: use a certificate of weft certs issue", has)
			}
			return nil
		},
		Time: id.now,
	}
}

// among reports whether an identity is one of those that deal with workers.
func among(uri string) bool {
	return strings.HasPrefix(uri, Worker.URI("")) || strings.HasPrefix(uri, App.URI("")) || strings.HasPrefix(uri, ServiceURI(""))
}

// Client returns a configuration for clients: the server must be a worker of
// our authority, whichever, wherever it runs.
func (id *Identity) Client() *tls.Config { return id.client(Worker, "") }

// ClientOf is Client for the worker of one name only.
func (id *Identity) ClientOf(worker string) *tls.Config { return id.client(Worker, worker) }

// ClientOfApp is ClientOf for an app outside; "" is any app.
func (id *Identity) ClientOfApp(app string) *tls.Config { return id.client(App, app) }

func (id *Identity) client(kind Kind, name string) *tls.Config {
	c := id.Server()
	c.ClientCAs, c.ClientAuth, c.GetCertificate = nil, tls.NoClientCert, nil
	c.ServerName = kind.serverName()
	prefix := kind.URI("")
	c.VerifyConnection = func(state tls.ConnectionState) error {
		has := Identities(&state)
		switch {
		case name != "" && !slices.Contains(has, kind.URI(name)):
			return fmt.Errorf("the server is %q, not %s", has, kind.URI(name))
		case !slices.ContainsFunc(has, func(uri string) bool { return strings.HasPrefix(uri, prefix) }):
			return fmt.Errorf("the server is %q, not a %s", has, kind)
		}
		return nil
	}
	return c
}

// Identities returns the identities in the verified certificate of a
// connection's peer; nil if there is none.
func Identities(state *tls.ConnectionState) []string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return nil
	}
	return slices.DeleteFunc(uris(state.PeerCertificates[0]), func(uri string) bool { return !strings.HasPrefix(uri, "weft://") })
}

func uris(c *x509.Certificate) []string {
	list := make([]string, len(c.URIs))
	for i, u := range c.URIs {
		list[i] = u.String()
	}
	return list
}
