package scp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"time"

	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/sbi"
)

// Bounds of what is passed on.
const (
	mostRelayed  = 16 << 20 // octets of a body, in either direction
	mostKept     = 64 << 10 // octets of a body that can be sent again
	relayTime    = 10 * time.Second
	relayLongest = 25 * time.Second
	reachTime    = time.Second // for a connection to a producer
)

// relay passes on the requests of indirect communication (TS 29.500, 6.10): to the
// producer that a request names, or to one that the relay chooses.
type relay struct {
	front   *front
	name    string // in Via and Server
	chooser *chooser
	finder  *finder
	places  *shares.Places // requests that are under way
	client  http.RoundTripper
	pass    *httputil.ReverseProxy
}

// indirectRequest is a request of indirect communication (TS 29.500, 6.10), with the
// producers that may serve it.
type indirectRequest struct {
	tries    []candidate
	named    bool // the client has named the producer
	from, of sbi.NFType
	who      consumer
	client   netip.Addr // that has sent it; invalid if the front itself has
	used     candidate
	identify bool // the answer names its producer, which the client did not choose
}

type indirectKey struct{}

func newRelay(f *front, most int) *relay {
	cfg := f.proxy.cfg.Load()
	r := &relay{
		front: f, name: "SCP-" + cmp.Or(cfg.Listen, cfg.own().String()), chooser: newChooser(), finder: newFinder(f),
		places: shares.New(shares.Limits{What: "requests", Places: most, PerClient: max(1, most/portPart)}),
	}
	r.client = newRelayClient(f)
	r.pass = &httputil.ReverseProxy{
		Transport: r, ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			sbi.WithoutDelegation(p.Out.Header)
			keepForwarded(p)
		},
		ModifyResponse: r.answered,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			r.refuse(w, unreached(err))
		},
	}
	return r
}

// newRelayClient returns the client that connects to producers.
func newRelayClient(f *front) http.RoundTripper {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, at string) (net.Conn, error) {
			to, err := netip.ParseAddrPort(at)
			if err != nil {
				return nil, &notReached{err}
			}
			ctx, cancel := context.WithTimeout(ctx, reachTime)
			defer cancel()
			c, err := f.at.dial(ctx, to)
			if err != nil {
				return nil, &notReached{err}
			}
			return c, nil
		},
		Protocols: new(http.Protocols), MaxResponseHeaderBytes: longestHeader, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	t.Protocols.SetHTTP2(true)
	if f.nrf.tls != nil {
		t.TLSClientConfig = f.nrf.tls.Clone()
	} else {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return t
}

// notReached is the error of a request that no producer has received.
type notReached struct{ err error }

func (e *notReached) Error() string { return e.err.Error() }
func (e *notReached) Unwrap() error { return e.err }

// refuse answers a request that is not passed on.
func (r *relay) refuse(w http.ResponseWriter, problem *sbi.ProblemDetails) {
	switch {
	case problem.Status == http.StatusForbidden: // has been counted
	case problem.Status < 500:
		r.front.proxy.count.malformed.Add(1)
	default:
		r.front.proxy.count.unrelayed.Add(1)
	}
	w.Header().Set("Server", r.name)
	sbi.WriteProblem(w, problem)
}

// unreached returns the problem for an error of sending to a producer.
func unreached(err error) *sbi.ProblemDetails {
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return sbi.Problem(http.StatusRequestEntityTooLarge, sbi.ContentTooLarge, "the body is too large")
	case errors.As(err, new(*notReached)):
		return sbi.Problem(http.StatusGatewayTimeout, sbi.TargetNotReachable, "no producer that may serve the request can be reached")
	case errors.Is(err, context.DeadlineExceeded):
		return sbi.Problem(http.StatusGatewayTimeout, sbi.TimedOutRequest, "the producer does not answer in time")
	}
	return sbi.Problem(http.StatusGatewayTimeout, sbi.TargetNotReachable, "the producer does not answer")
}

// send passes a request on to an address, with the URI to.
func (r *relay) send(w http.ResponseWriter, req *http.Request, to *url.URL, at netip.AddrPort) {
	ctx, cancel := context.WithTimeout(req.Context(), relayTime)
	defer cancel()
	e := &indirectRequest{named: true, tries: []candidate{{at: sbi.EndPoint{Scheme: to.Scheme, Addr: at}}}}
	out := req.WithContext(context.WithValue(ctx, indirectKey{}, e))
	out.URL = to
	r.pass.ServeHTTP(w, out)
}

// RoundTrip sends a request to the first candidate that can be reached
// (http.RoundTripper).
func (r *relay) RoundTrip(req *http.Request) (*http.Response, error) {
	e := req.Context().Value(indirectKey{}).(*indirectRequest)
	body := req.Body
	var err error
	for i, x := range e.tries {
		out := req.WithContext(req.Context()) // a copy
		u := *req.URL
		u.Scheme, u.Host = x.at.Scheme, x.at.Addr.String()
		if u.Path = x.at.Prefix + u.Path; u.RawPath != "" {
			u.RawPath = x.at.Prefix + u.RawPath
		}
		if out.URL, out.Host = &u, u.Host; body != nil {
			out.Body = io.NopCloser(body)
		}
		if req.GetBody != nil {
			out.Body, _ = req.GetBody() // of keepBody
		}
		start := time.Now()
		ended := r.chooser.begin(x.at.Addr)
		var resp *http.Response
		if resp, err = r.client.RoundTrip(out); err == nil {
			e.used, e.identify = x, !e.named || i > 0
			took := time.Since(start)
			r.front.proxy.strain.observe(x.at.Addr, sbi.Congested(resp.StatusCode), took)
			r.count(e, x, resultOf(resp.StatusCode), took)
			resp.Body = &relayedBody{ReadCloser: resp.Body, left: mostRelayed, ended: func() { ended(took) }}
			return resp, nil
		}
		took := time.Since(start)
		if ended(took); req.Context().Err() != nil {
			if errors.Is(req.Context().Err(), context.DeadlineExceeded) && took >= lateAnswer {
				r.front.proxy.strain.observe(x.at.Addr, true, took)
			}
			break
		}
		r.chooser.rest(x.at.Addr, r.front.now())
		if missed := (*notReached)(nil); !errors.As(err, &missed) && (body != nil || req.Method != http.MethodGet && req.Method != http.MethodHead) {
			break // it may have done what was asked
		}
	}
	if len(e.tries) > 0 {
		if req.Context().Err() != nil {
			err = req.Context().Err()
		}
		r.count(e, e.tries[0], failureOf(err), 0)
	}
	return nil, err
}

// count counts a request by the types of its consumer and its producer.
func (r *relay) count(e *indirectRequest, x candidate, result string, took time.Duration) {
	index, of := r.front.proxy.index.Load(), e.of
	if list := index.doors[x.at.Addr]; len(list) > 0 && of == "" {
		of = list[0].profile.NFType
	}
	p := r.front.proxy
	p.traffic.requested(e.from, of, index.types, result, took)
	if e.client.IsValid() {
		p.single.requested(pairKey{e.client, x.at.Addr}, outcome{e.who.at, typePair{knownType(e.from, index.types), knownType(of, index.types)}, result, took}, r.front.now())
	}
}

// relayedBody is the body of an answer.
type relayedBody struct {
	io.ReadCloser
	left  int64
	ended func()
}

// Read reads at most mostRelayed octets in all (io.Reader).
func (b *relayedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d octets", mostRelayed)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Close ends the answer (io.Closer).
func (b *relayedBody) Close() error {
	if b.ended != nil {
		b.ended()
		b.ended = nil
	}
	return b.ReadCloser.Close()
}

// answered adds the producer to an answer whose consumer cannot know it, and records
// which producer the consumer uses.
func (r *relay) answered(resp *http.Response) error {
	e := resp.Request.Context().Value(indirectKey{}).(*indirectRequest)
	if resp.StatusCode >= 400 {
		resp.Header.Add("Via", "2.0 "+r.name)
	}
	if e.used.id == "" {
		return nil
	}
	r.front.proxy.strain.heed(&r.front.proxy.count, r.front.proxy.index.Load(), e.used, resp.Header, r.front.now())
	if e.of != "" {
		r.chooser.bind(e.who, e.of, e.used.id, resp.Header[sbi.BindingHeader] != nil, r.front.now())
	}
	if !e.identify {
		return nil
	}
	if resp.Header[sbi.ProducerID] == nil {
		id := "nfinst=" + e.used.id
		if e.used.service != "" {
			id += "; nfservinst=" + url.PathEscape(e.used.service)
		}
		resp.Header.Set(sbi.ProducerID, id)
	}
	if to, err := url.Parse(resp.Header.Get("Location")); resp.Header[sbi.TargetAPIRoot] == nil && (err != nil || !to.IsAbs()) {
		resp.Header.Set(sbi.TargetAPIRoot, e.used.at.Scheme+"://"+e.used.at.Addr.String()+e.used.at.Prefix)
	}
	return nil
}
