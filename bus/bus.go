// Package bus is durable state over NATS JetStream: a server embedded in the
// process by default, or an external cluster. It is the only importer of NATS.
//
// cmd/weft and tests import it. It imports weft, api and NATS.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"

	"weft"
	"weft/api"
)

// Config says where the state is kept: in Directory or at URL, one of them.
type Config struct {
	// Directory holds the files of an embedded server, which listens nowhere
	// and syncs every write to disk before it is confirmed. The directory is
	// made if it is not there. One process at a time uses it.
	Directory string
	// URL is that of an external cluster: nats://host:port or tls://host:port,
	// several separated by commas.
	URL string
	// Credentials is the path of a NATS credentials file for URL, if it wants
	// one.
	Credentials string
	// Replicas is how many servers of an external cluster keep each bucket
	// that is made: 1, 3 or 5; 0 is 1.
	Replicas int
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
	case c.Replicas < 0 || c.Replicas > 5:
		return fmt.Errorf("store: %d replicas: want 1 to 5, an odd number", c.Replicas)
	}
	return nil
}

// Store is an open store; it implements deploy.Store.
type Store struct {
	config Config
	server *server.Server // nil if external
	lock   *os.File       // of the directory; nil if external
	conn   *nats.Conn
	js     jetstream.JetStream

	mu      sync.Mutex // guards buckets
	buckets map[string]*bucket

	closing sync.Once
	closed  error // of closing

	lossMu      sync.Mutex    // guards reconnected
	reconnected chan struct{} // closed at the next reconnect
}

// Open opens the store. Its errors say what to do about them.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: c, buckets: map[string]*bucket{}, reconnected: make(chan struct{})}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	options := []nats.Option{
		nats.Name("weft"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.config.Log.Debug("nats", "err", err) }),
		nats.ReconnectHandler(func(*nats.Conn) {
			s.lossMu.Lock()
			defer s.lossMu.Unlock()
			close(s.reconnected)
			s.reconnected = make(chan struct{})
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.config.Log.Warn("the connection to the store is lost; trying again", "err", err)
			}
		}),
	}
	if s.config.Directory != "" {
		if err := s.serve(ctx); err != nil {
			return err
		}
		options = append(options, nats.InProcessServer(s.server))
	}
	if s.config.Credentials != "" {
		options = append(options, nats.UserCredentials(s.config.Credentials))
	}
	if s.conn, err = nats.Connect(s.config.URL, options...); err != nil {
		return fmt.Errorf("connect to the store at %s: %w; check that NATS runs there and takes these credentials", s.where(), err)
	}
	if s.js, err = jetstream.New(s.conn); err != nil {
		return fmt.Errorf("open the store at %s: %w", s.where(), err)
	}
	if _, err = s.js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("open the store at %s: %w; NATS needs JetStream enabled for this account", s.where(), err)
	}
	return nil
}

// Close closes the store; buckets then fail. Closing again does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Store) close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	if s.lock != nil {
		return s.lock.Close() // which lets go of it
	}
	return nil
}

// reconnect returns what is closed when the connection has been lost and is
// there again.
func (s *Store) reconnect() <-chan struct{} {
	s.lossMu.Lock()
	defer s.lossMu.Unlock()
	return s.reconnected
}

// where names the store in errors.
func (s *Store) where() string {
	if s.config.Directory != "" {
		return s.config.Directory
	}
	return s.config.URL
}

var bucketName = regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)*$`)

// Bucket opens a bucket and makes it if it is not there yet. Names are
// lower-case letters, digits and _, in parts separated by dots.
func (s *Store) Bucket(ctx context.Context, name string) (weft.Bucket, error) {
	if !bucketName.MatchString(name) {
		return nil, api.Errorf(codes.InvalidArgument, "bucket %q: want lower-case letters, digits and _, in parts separated by dots", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[name]; b != nil {
		return b, nil
	}
	legal := "weft-" + strings.ReplaceAll(name, ".", "-") // no name holds a -, so none meets another
	kv, err := s.js.KeyValue(ctx, legal)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: legal, Description: name, History: 1, Storage: jetstream.FileStorage,
			Replicas: s.config.Replicas, LimitMarkerTTL: markerLife,
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // somebody else was first
			kv, err = s.js.KeyValue(ctx, legal)
		}
	}
	if err != nil {
		return nil, fail(ctx, "open bucket "+name, err)
	}
	b := &bucket{store: s, name: name, kv: kv}
	s.buckets[name] = b
	return b, nil
}
