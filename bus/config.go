package bus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"
)

// Config says where the state is kept: in Directory or at URL, one of them.
type Config struct {
	// Directory holds the files of an embedded server, which syncs every write
	// to disk before it is confirmed. The directory is made if it is not there.
	// One process at a time uses it.
	Directory string
	// Listen is the TCP address, host:port, at which other processes reach the
	// embedded server; port 0 is any that is free. "" is nowhere. An address
	// that is not loopback needs TLS.
	Listen string
	// URL is that of another process's embedded server (see Access) or of an
	// external cluster: nats://host:port or tls://host:port, several separated
	// by commas.
	URL string
	// Token is the secret that the server at URL asks for, if it does. An
	// embedded server makes its own: see Access.
	Token string
	// Credentials is the path of a NATS credentials file for URL, if it wants
	// one.
	Credentials string
	// TLS is used by the embedded server for Listen, which needs a certificate
	// in it, and by clients for URL; nil is without, unless URL says tls.
	TLS *tls.Config
	// Replicas is on how many servers of an external cluster each bucket is kept
	// at least: 1, 3 or 5; 0 is 1 for buckets that are made. See Replicate.
	Replicas int
	// Manifests is the directory in which this process keeps, for each bucket, a
	// manifest of what it holds, with which it is compared when the store is
	// opened. "" is a folder of Directory, and nowhere with URL: then another
	// process keeps them.
	Manifests string
	// CheckEvery is how often all buckets are compared with their manifests while
	// the store is open; 0 is 10 min.
	CheckEvery time.Duration
	// MonitorPort is where the servers at URL answer monitoring requests, over
	// HTTP; 0 is 8222.
	MonitorPort int
	// Rebuilt says of a bucket that what it holds is learnt again, so that it can
	// be written to although it is damaged; nil for none.
	Rebuilt func(bucket string) bool
	// Log gets what the embedded server says, at debug; nil for nowhere.
	Log *slog.Logger
}

// Validate says which field is wrong.
func (c Config) Validate() error {
	switch {
	case c.Directory == "" && c.URL == "":
		return errors.New("store: neither Directory nor URL is given; give the data directory or the cluster")
	case c.Directory != "" && c.URL != "":
		return fmt.Errorf("store: both directory %s and URL %s are given; give one of them", c.Directory, c.URL)
	case c.Directory != "" && (c.Credentials != "" || c.Replicas > 1):
		return errors.New("store: Credentials and Replicas are for an external cluster (URL); leave them out with Directory")
	case c.Directory != "" && c.Token != "":
		return errors.New("store: the embedded server makes its own token; leave Token out with Directory, and ask Access for it")
	case c.URL != "" && c.Listen != "":
		return fmt.Errorf("store: Listen %s is for an embedded server (Directory); leave it out with URL", c.Listen)
	case c.Token != "" && c.Credentials != "":
		return errors.New("store: both Token and Credentials are given; give the one that the server wants")
	case c.Replicas < 0 || c.Replicas > 5 || c.Replicas > 0 && c.Replicas%2 == 0:
		return fmt.Errorf("store: %d replicas: want 1, 3 or 5", c.Replicas)
	}
	if c.Listen == "" {
		return nil
	}
	_, _, err := c.listen()
	return err
}

// rebuilt reports whether what a bucket holds is learnt again.
func (c Config) rebuilt(bucket string) bool { return c.Rebuilt != nil && c.Rebuilt(bucket) }

// manifests returns the directory of the manifests, "" if another process keeps
// them.
func (c Config) manifests() string {
	if c.Manifests == "" && c.Directory != "" {
		return filepath.Join(c.Directory, "manifests")
	}
	return c.Manifests
}

// listen takes Listen apart.
func (c Config) listen() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("store: Listen %q: %w; want host:port, for example 127.0.0.1:0", c.Listen, err)
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("store: Listen %q: the port is not a number from 0 to 65535", c.Listen)
	}
	ip := net.ParseIP(host)
	switch loopback := host == "localhost" || ip != nil && ip.IsLoopback(); {
	case c.TLS == nil && !loopback:
		return "", 0, fmt.Errorf("store: Listen %q is not a loopback address: others on the network could read the token and the state; give TLS as well, or listen at 127.0.0.1", c.Listen)
	case c.TLS != nil && len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil:
		return "", 0, fmt.Errorf("store: Listen %q: TLS holds no certificate to show to clients; add one", c.Listen)
	}
	return host, port, nil
}

// Access is what another process needs to open the store of this one: the
// fields of its Config of the same names. Token is secret: hand it over in a
// file or the environment, not on a command line. Printed, Access hides it.
type Access struct {
	URL   string
	Token string
}

// String returns the URL alone.
func (a Access) String() string { return a.URL }

// GoString returns the URL alone.
func (a Access) GoString() string { return fmt.Sprintf("bus.Access{URL: %q}", a.URL) }

// LogValue returns the URL alone.
func (a Access) LogValue() slog.Value { return slog.StringValue(a.URL) }
