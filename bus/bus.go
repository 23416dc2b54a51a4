// Package bus provides durable state, and a transport, over NATS: a server
// embedded in the process by default, or an external one. It is the only
// importer of NATS.
//
// cmd/weft, deploy and tests import it. It imports weft, api, transport and NATS.
package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/transport"
)

// Store is an open store; it implements deploy.Store. It survives the loss of
// its server: operations wait until the server is back, until their context
// ends; without a deadline, they wait for Patience.
type Store struct {
	config   Config
	token    string         // "" if the server wants none
	server   *server.Server // nil if elsewhere
	lock     *os.File       // of the directory; nil if elsewhere
	disk     disk           // of the server
	tended   sync.WaitGroup // the goroutines that tend the disk and the replicas
	conn     *nats.Conn
	js       jetstream.JetStream
	link     *link
	peers    *peers // behind Transport
	health   *health
	recorder *recorder // nil if another process keeps the manifests

	replicas replication
	seeker   seeker
	syncing  syncing

	following atomic.Bool   // this process learns of damage
	doubts    sync.Map      // names of buckets for which suspect is at work
	reread    chan struct{} // holds one: the server has re-read its files

	mu      sync.Mutex // guards buckets
	buckets map[string]*bucket

	closing sync.Once
	closed  error // of closing
}

// replication keeps buckets on several servers.
type replication struct {
	store  *Store
	wanted atomic.Int64 // copies of each bucket; 0 is 1 for new ones
	short  atomic.Bool  // too few servers are up for that
	begun  sync.Once
}

// seeker finds another server of the store when the present one is of no use.
type seeker struct {
	store   *Store
	failing atomic.Int64           // when operations began to fail, ns since 1970; 0: they succeed
	better  atomic.Pointer[string] // host of the server to connect to next; nil: any
}

// syncing learns which external servers confirm writes before these are on disk.
type syncing struct {
	store *Store
	lazy  atomic.Pointer[[]string] // those that do; nil: not asked yet
}

// Open opens the store. Its errors suggest a remedy. A server at URL must be
// up; Open waits for its state until ctx ends, at most for Patience.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: c, token: c.Token, buckets: map[string]*bucket{}, link: newLink(), health: newHealth(), reread: make(chan struct{}, 1)}
	s.replicas.store, s.seeker.store, s.syncing.store = s, s, s
	s.replicas.wanted.Store(int64(c.Replicas))
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connectTries is the number of attempts to connect to a server.
const connectTries = 4

func (s *Store) open(ctx context.Context) (err error) {
	s.peers = newPeers(s)
	if s.config.Directory != "" {
		if err := s.serve(ctx); err != nil {
			return err
		}
	}
	if s.conn, err = s.connect(ctx); err != nil {
		return fmt.Errorf("connect to the store at %s: %w; %s", s.where(), err, remedy(err))
	}
	if s.js, err = jetstream.New(s.conn); err != nil {
		return fmt.Errorf("open the store at %s: %w", s.where(), err)
	}
	if s.server == nil {
		s.tended.Go(s.seeker.run)
		s.tended.Go(s.syncing.watch)
	}
	err = s.retry(ctx, "open the store", func(ctx context.Context) error {
		_, err := s.js.AccountInfo(ctx)
		return err
	})
	if err == nil {
		err = s.heed(ctx)
	}
	if dir := s.config.manifests(); err == nil && dir != "" {
		err = s.record(ctx, dir)
	}
	s.following.Store(err == nil)
	return err
}

// connect makes the first connection. A server that refuses, hangs up or does
// not answer may be starting or busy, so connect retries a few times.
func (s *Store) connect(ctx context.Context) (conn *nats.Conn, err error) {
	for n := 0; n < connectTries; n++ {
		if n > 0 {
			if backoff.Sleep(ctx, maxPause) != nil {
				return nil, err
			}
		}
		conn, err = nats.Connect(s.config.URL, s.options()...)
		var late net.Error
		if !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, io.EOF) && !(errors.As(err, &late) && late.Timeout()) {
			break
		}
	}
	return conn, err
}

// options returns the options of the connection.
func (s *Store) options() []nats.Option {
	options := []nats.Option{
		nats.Name("weft"), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // fail late messages at once; retry decides
		nats.FlusherTimeout(writeTimeout), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings),
		nats.ReconnectToServer(s.seeker.choose),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.config.Log.Debug("nats", "err", err) }),
		nats.ReconnectHandler(func(*nats.Conn) {
			s.link.up()
			s.peers.mend()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			s.link.down()
			s.peers.cut()
			if err != nil {
				s.config.Log.Warn("the connection to the store is lost; trying again", "err", err)
			}
		}),
	}
	if s.server != nil {
		options = append(options, nats.InProcessServer(s.server))
	}
	return append(options, s.proof()...)
}

// proof returns the options that authenticate client and server.
func (s *Store) proof() (options []nats.Option) {
	if s.token != "" {
		options = append(options, nats.Token(s.token))
	}
	if s.config.Credentials != "" {
		options = append(options, nats.UserCredentials(s.config.Credentials))
	}
	if s.config.TLS != nil && s.server == nil {
		options = append(options, nats.Secure(s.config.TLS))
	}
	return options
}

// remedy returns advice about a connection that fails.
func remedy(err error) string {
	switch text := err.Error(); {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired):
		return "give the Token or the Credentials that it wants; an embedded server keeps its token in the data directory"
	case errors.Is(err, nats.ErrSecureConnRequired) || strings.Contains(text, "tls") || strings.Contains(text, "x509"):
		return "give the TLS configuration that fits its certificate"
	}
	return "check that NATS runs there and can be reached from here"
}

// Close closes the store; buckets and transport then fail. A second Close does
// nothing.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Store) close() error {
	if s.recorder != nil {
		s.recorder.settle()
		s.recorder.stop()
	}
	if s.conn != nil {
		s.peers.close()
		s.conn.Close()
	}
	s.link.close()
	s.tended.Wait()
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	if s.lock != nil {
		return s.lock.Close() // this releases it
	}
	return nil
}

// Access returns what other processes need to open this store; its URL is "" if
// the server is embedded and does not listen.
func (s *Store) Access() Access {
	if s.server == nil {
		return Access{s.config.URL, s.token}
	}
	addr, ok := s.server.Addr().(*net.TCPAddr)
	if s.config.Listen == "" || !ok {
		return Access{}
	}
	scheme := "nats"
	if s.config.TLS != nil {
		scheme = "tls"
	}
	host := addr.IP.String()
	if asked, _, err := s.config.listen(); err == nil && !addr.IP.IsUnspecified() {
		host = asked // the certificate may hold a name
	} else if name, err := os.Hostname(); err == nil {
		host = name
	}
	return Access{scheme + "://" + net.JoinHostPort(host, fmt.Sprint(addr.Port)), s.token}
}

// URL is that of Access.
func (s *Store) URL() string { return s.Access().URL }

// Transport returns the transport over the store's connection: see peers. All
// stores at one server or cluster reach each other's addresses.
func (s *Store) Transport() transport.Transport { return s.peers }

// where names the store in errors.
func (s *Store) where() string {
	if s.config.Directory != "" {
		return s.config.Directory
	}
	return s.config.URL
}
