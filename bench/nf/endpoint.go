package nf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"

	"github.com/weft-sdn/weft/internal/asowner"
)

// InstanceHeader names the instance that answers, for whoever counts answers.
const InstanceHeader = "X-Weft-Instance"

// Product is what the headers Server and User-Agent say.
const Product = "weft-simulated"

// Bounds of what clients may have of a server.
const (
	mostConnections = 4096
	mostStreams     = 1000 // of a connection
	mostHeader      = 64 << 10
	headerTime      = 10 * time.Second // within which a request's header has come
	idleTime        = 5 * time.Minute
	stopTime        = 2 * time.Second // within which a server has answered what it has been asked
)

// TLS are the files of a network function's TLS; without a certificate there is
// none. With an authority, clients must have certificates of its, too.
type TLS struct{ Certificate, Key, Authority string }

// Scheme is http or https.
func (t TLS) Scheme() string {
	if t.Certificate != "" {
		return "https"
	}
	return "http"
}

// configs returns the configuration of a server and that of a client.
func (t TLS) configs() (server, client *tls.Config, err error) {
	client = &tls.Config{MinVersion: tls.VersionTLS12}
	if t.Authority != "" {
		text, err := asowner.ReadFile(t.Authority)
		if err != nil {
			return nil, nil, err
		}
		if client.RootCAs = x509.NewCertPool(); !client.RootCAs.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("%s has no certificate in PEM form", t.Authority)
		}
	}
	if t.Certificate == "" {
		return nil, client, nil
	}
	pair, err := asowner.LoadKeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %s with key %s: %w", t.Certificate, t.Key, err)
	}
	client.Certificates = []tls.Certificate{pair}
	server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if t.Authority != "" {
		server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, client.RootCAs
	}
	return server, client, nil
}

// An Endpoint is where a network function listens, and the client by which it
// asks others.
type Endpoint struct {
	Addr   netip.AddrPort
	Scheme string
	Client *http.Client

	listener net.Listener
	tls      *tls.Config
}

// Listen opens an address, for HTTP/2 with prior knowledge and HTTP/1.1 or, with
// TLS, for what clients choose of these. Its client speaks HTTP/2, or HTTP/1.1
// if http1 says so.
func Listen(at string, files TLS, http1 bool) (*Endpoint, error) {
	server, client, err := files.configs()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	e := &Endpoint{
		Addr: netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), Scheme: files.Scheme(), tls: server,
		listener: netutil.LimitListener(l, mostConnections), Client: &http.Client{Transport: NewTransport(client, http1), Timeout: 30 * time.Second},
	}
	e.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return e, nil
}

// NewTransport returns a transport that speaks HTTP/2, with prior knowledge
// where there is no TLS, or HTTP/1.1.
func NewTransport(config *tls.Config, http1 bool) *http.Transport {
	t := &http.Transport{
		TLSClientConfig: config, Protocols: &http.Protocols{}, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTime,
		DialContext:        (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		DisableCompression: true,
	}
	t.Protocols.SetHTTP1(http1)
	t.Protocols.SetHTTP2(!http1)
	t.Protocols.SetUnencryptedHTTP2(!http1)
	return t
}

// Root returns the address as a URI.
func (e *Endpoint) Root() string { return e.Scheme + "://" + e.Addr.String() }

// Close ends listening, of an endpoint that does not serve.
func (e *Endpoint) Close() error { return e.listener.Close() }

// Serve answers requests until ctx ends, and then what it has been asked before.
func (e *Endpoint) Serve(ctx context.Context, h http.Handler) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader, TLSConfig: e.tls,
		Protocols: &http.Protocols{}, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostStreams},
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // of clients' mistakes
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() {
		if e.tls != nil {
			served <- s.ServeTLS(e.listener, "", "")
		} else {
			served <- s.Serve(e.listener)
		}
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := s.Shutdown(last); err != nil {
		_ = s.Close() // who is still there has had its time
	}
	e.Client.CloseIdleConnections()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// named has all answers say who gives them.
func named(of, instance string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", Product+"-"+of)
		w.Header().Set(InstanceHeader, instance)
		h.ServeHTTP(w, r)
	})
}

// HostAddress returns the first address of this host that is not a loopback
// one: of its first interface, IPv4 before IPv6.
func HostAddress() (netip.Addr, error) {
	all, err := net.Interfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return netip.Addr{}, err
		}
		var six netip.Addr
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			switch {
			case err != nil, p.Addr().IsLinkLocalUnicast():
			case p.Addr().Is4():
				return p.Addr(), nil
			case !six.IsValid():
				six = p.Addr()
			}
		}
		if six.IsValid() {
			return six, nil
		}
	}
	return netip.Addr{}, errors.New("this host has no address but loopback ones; say where to listen by --listen")
}
