package scp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/sbi"
)

// Bounds of the front.
const (
	mostStreams    = 128              // of one connection
	vipTime        = 2 * time.Second  // for VIPs to be made of what a discovery has found
	unreadTime     = 15 * time.Second // of a client that reads none of its answers
	retryOverload  = 5 * time.Second
	retryNobody    = time.Second
	listenInterval = time.Second
)

// front answers consumers in place of the NRF, and passes on to it what is not a
// discovery.
type front struct {
	proxy    *proxy
	await    func(ctx context.Context, vips []string) error
	exit     exit
	log      *slog.Logger
	nrf      *nrf
	at       sockets
	pass     *httputil.ReverseProxy
	relay    *relay
	notifier *notifier // nil: subscriptions stay as they are
	once     singleflight.Group
	busy     atomic.Int64  // requests under way
	begun    atomic.Int64  // requests
	ready    time.Duration // vipTime
	drain    time.Duration // drainTime
	now      func() int64
}

func newFront(p *proxy, n *nrf, at sockets, past exit, await func(context.Context, []string) error, log *slog.Logger) *front {
	f := &front{proxy: p, await: await, log: log, nrf: n, at: at, exit: past, ready: vipTime, drain: drainTime, now: now}
	f.pass = &httputil.ReverseProxy{
		Transport: n.transport, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = n.scheme, n.at.String(), r.In.Host
			sbi.WithoutDelegation(r.Out.Header)
			keepForwarded(r)
		},
		ModifyResponse: f.answered,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			f.unanswered(r)
			if tooBig := (*http.MaxBytesError)(nil); !errors.As(err, &tooBig) && !errors.Is(err, context.Canceled) {
				p.failed(err) // the client has not
			}
			sbi.WriteProblem(w, unreachable(err))
		},
	}
	f.relay = newRelay(f, p.cfg.Load().Connections)
	return f
}

// keepForwarded passes on what others have said of who has passed a request on, and
// nothing that leaves HTTP.
func keepForwarded(r *httputil.ProxyRequest) {
	r.Out.Header.Del("Connection")
	r.Out.Header.Del("Upgrade")
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v := r.In.Header[name]; v != nil {
			r.Out.Header[name] = v // as it came
		}
	}
}

// discoveryPath is that of discoveries.
const discoveryPath = "/nnrf-disc/v1/nf-instances"

// instancePath is that of one instance.
var instancePath = regexp.MustCompile(`^/nnrf-nfm/v1/nf-instances/([^/]+)$`)

// nrfPaths is what the NRF serves.
var nrfPaths = regexp.MustCompile(`^/(nnrf-[a-z0-9-]+|oauth2|bootstrapping)(/|$)`)

// ServeHTTP answers a request (http.Handler).
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.begun.Add(1)
	f.busy.Add(1)
	defer f.busy.Add(-1)
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		sbi.WriteProblem(w, err)
		return
	}
	client := from.Addr().Unmap()
	if s, known := f.proxy.station(client); known {
		f.proxy.ways.note(nrfClient{client, s})
	}
	if r.URL.Path == discoveryPath && r.URL.RawPath == "" && r.Method == http.MethodGet {
		f.discovery(w, r, client)
		return
	}
	instance := instancePath.FindStringSubmatch(r.URL.Path)
	switch {
	case !nrfPaths.MatchString(r.URL.Path) && delegated(r.Header):
		f.relay.serve(w, r, client)
	case f.notifier != nil && strings.HasPrefix(r.URL.Path, callbacks):
		f.notifier.notify(w, r, client)
	case r.URL.RawPath != "" || path.Clean(r.URL.Path) != r.URL.Path:
		f.proxy.count.malformed.Add(1)
		sbi.WriteProblem(w, sbi.Problem(http.StatusBadRequest, sbi.InvalidAPI, "the path has more than one spelling"))
	case !nrfPaths.MatchString(r.URL.Path):
		f.refuse(w, r, client)
	case instance != nil && r.Method != http.MethodGet && r.Method != http.MethodHead:
		f.register(w, r, client, instance[1])
	case f.notifier != nil && r.URL.Path == instances && r.Method == http.MethodGet:
		f.notifier.list(w, r, client)
	case f.notifier != nil && instance != nil && r.Method == http.MethodGet && f.proxy.hasEndpoint(instance[1]):
		f.notifier.retrieve(w, r, client, instance[1])
	case f.notifier != nil && (r.URL.Path == subscriptions && r.Method == http.MethodPost || strings.HasPrefix(r.URL.Path, subscriptions+"/") && r.Method == http.MethodPatch):
		f.notifier.subscribe(w, r, client)
	case r.URL.Path == tokenPath && r.Method == http.MethodPost:
		f.token(w, r, client)
	default:
		f.proxy.count.passed.Add(1)
		r.Body = http.MaxBytesReader(w, r.Body, bodies.Octets)
		f.toNRF(w, r)
	}
}

// toNRF passes a request on.
func (f *front) toNRF(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), f.proxy.cfg.Load().NRFTimeout)
	defer cancel()
	f.pass.ServeHTTP(w, r.WithContext(ctx))
}

// refuse answers a request for a producer, which comes here because the switches
// may not let it through.
func (f *front) refuse(w http.ResponseWriter, r *http.Request, client netip.Addr) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	nrf, _, _ := f.proxy.cfg.Load().nrf() // Validate has seen it
	sbi.WriteProblem(w, f.proxy.refusal(name, client, r.Host == nrf.String() || r.Host == f.proxy.cfg.Load().Listen))
}

// discovery answers a discovery.
func (f *front) discovery(w http.ResponseWriter, r *http.Request, client netip.Addr) {
	values := r.URL.Query()
	q, malformed := sbi.ParseQuery(values)
	err := malformed
	if q.TargetNFType != "" && q.Requester.NFType != "" && len(values["requester-nf-type"]) == 1 { // of two, others may take the other
		err = f.proxy.admit(q, client)
	} else if err == nil {
		err = sbi.Problem(http.StatusBadRequest, sbi.MandatoryParameterIncorrect, "want one requester-nf-type")
	}
	if err != nil {
		sbi.WriteProblem(w, err)
		return
	}
	f.proxy.traffic.discovered(q, f.proxy.index.Load().types)
	narrows := malformed != nil || narrow(values, q) != ""
	if narrows || q.TargetInstanceID != "" && !f.proxy.hasEndpoint(q.TargetInstanceID) {
		noteChoice(f.proxy, client, q.TargetNFType)
	}
	if narrows {
		f.proxy.count.passed.Add(1)
		f.toNRF(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.proxy.cfg.Load().NRFTimeout+f.ready)
	defer cancel()
	who := asker{client, credentialsOf(r.Header)}
	a, err := f.proxy.discover(ctx, q, who, &asking{f, r}, f.now)
	for err == nil && len(a.vips) > 0 {
		waiting, stop := context.WithTimeout(ctx, f.ready)
		err = f.await(waiting, a.vips)
		if stop(); err == nil {
			break
		}
		if errors.Is(err, errRefused) {
			a, err = f.proxy.discover(ctx, q, who, &asking{f, r}, f.now) // without that VIP
		} else {
			err = notReady()
		}
	}
	if errors.Is(err, errAnswered) {
		f.toNRF(w, r)
		return
	}
	if err != nil {
		sbi.WriteProblem(w, err)
		return
	}
	w.Header().Set("Cache-Control", "max-age="+strconv.Itoa(a.age))
	f.write(w, r, a.body, a.etag)
}

// write answers a request with a JSON text, or with 304 if the client has the text.
func (f *front) write(w http.ResponseWriter, r *http.Request, text []byte, etag string) {
	h := w.Header()
	h.Set("ETag", etag)
	if sbi.MatchETag(r.Header.Get("If-None-Match"), etag) {
		f.proxy.count.unchanged.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // the client may have gone
}

// notReady returns the problem of end points that are not made in time.
func notReady() *sbi.ProblemDetails {
	return &sbi.ProblemDetails{Title: "Service Unavailable", Status: http.StatusServiceUnavailable, Cause: sbi.DiscoveryFailure,
		Detail: "the switches are not ready for what was found", RetryAfter: retryNobody}
}

// asking is a repository that is asked for a request.
type asking struct {
	front   *front
	request *http.Request
}

func (a *asking) search(ctx context.Context) (*sbi.SearchResult, error) {
	values := a.request.URL.Query()
	if a.front.proxy.hasEndpoint(values.Get("target-nf-instance-id")) {
		values.Del("target-nf-instance-id") // the NRF does not know end points
	}
	values.Del("limit") // what is found is for others, too
	query, header := values.Encode(), a.request.Header
	x, err, _ := a.front.once.Do(query+"\x00"+header.Get("Authorization")+"\x00"+header.Get("3gpp-Sbi-Client-Credentials"), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.front.proxy.cfg.Load().NRFTimeout)
		defer cancel()
		return a.front.nrf.search(ctx, query, header)
	})
	if err != nil {
		a.front.proxy.failed(err)
		return nil, err
	}
	return x.(*sbi.SearchResult), nil
}

func (a *asking) profile(ctx context.Context, id string) ([]byte, error) {
	return a.front.nrf.profile(ctx, id)
}

// watched is the key of what is to be learnt from an answer.
type watched struct{}

// register passes on what is done to an instance, if it is the client's own, and
// learns from the answer.
func (f *front) register(w http.ResponseWriter, r *http.Request, client netip.Addr, id string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodies.Octets))
	plain := body
	if err == nil {
		plain, err = bodies.Decode(strings.Join(r.Header.Values("Content-Encoding"), ","), body)
	}
	if err == nil && len(plain) > 0 {
		err = bodies.Check(plain)
	}
	if problem := (*sbi.ProblemDetails)(nil); err != nil && !errors.As(err, &problem) {
		f.proxy.count.malformed.Add(1)
		err = unreachable(err)
	}
	if err == nil {
		err = f.acquaint(r.Context(), id)
	}
	if err == nil {
		err = f.proxy.mayRegister(r.Method, client, id, plain)
	}
	if err != nil {
		w.Header().Set("Accept-Encoding", "gzip")
		sbi.WriteProblem(w, err)
		return
	}
	f.proxy.count.passed.Add(1)
	keepBody(r, body)
	f.toNRF(w, r.WithContext(context.WithValue(r.Context(), watched{}, &change{method: r.Method, id: id, by: client, body: plain})))
}

// acquaint asks the NRF for an instance that has not passed the front, so that it is
// known whose it is before somebody changes it.
func (f *front) acquaint(ctx context.Context, id string) error {
	if id = strings.ToLower(id); !idForm.MatchString(id) || f.proxy.knows(id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.proxy.cfg.Load().NRFTimeout)
	defer cancel()
	err := f.proxy.look(ctx, id, f.nrf.profile)
	if problem := (*sbi.ProblemDetails)(nil); err == nil || errors.As(err, &problem) {
		return nil // an NRF that does not tell it is asked all the same
	}
	f.proxy.failed(err)
	return unreachable(err)
}

// answered learns from what the NRF has answered.
func (f *front) answered(resp *http.Response) error {
	f.proxy.said("ok")
	if f.notifier != nil && strings.HasPrefix(resp.Request.URL.Path, subscriptions) && resp.StatusCode/100 == 2 {
		return f.notifier.restore(resp)
	}
	if l, _ := resp.Request.Context().Value(listingKey{}).(*listing); l != nil {
		return l.replace(resp)
	}
	c, _ := resp.Request.Context().Value(watched{}).(*change)
	if c == nil {
		return nil
	}
	text, err := peek(resp)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusNotFound && c.method == http.MethodDelete:
		f.proxy.apply(c, text, f.now())
	case resp.StatusCode/100 == 5:
		f.unanswered(resp.Request)
	}
	return nil
}

// unanswered notes the heartbeat that a request is which the NRF has not answered.
func (f *front) unanswered(r *http.Request) {
	if c, _ := r.Context().Value(watched{}).(*change); c != nil && c.method == http.MethodPatch {
		f.proxy.hear(c.id, f.now())
	}
}

// serve listens and answers until ctx ends. It tries again when the address, or the
// namespace, comes and goes: hosts of a lab may start later.
func (f *front) serve(ctx context.Context) {
	logged := ""
	for ctx.Err() == nil {
		err := f.serveOnce(ctx)
		f.proxy.begun()
		if err != nil {
			setSilent(f.proxy, err)
		}
		if err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			f.log.Warn("the front does not listen, so everybody reaches the NRF itself; it is tried again", "error", err)
		}
		_ = backoff.Sleep(ctx, listenInterval)
	}
}

func (f *front) serveOnce(ctx context.Context) error {
	cfg := f.proxy.cfg.Load()
	l, err := f.at.listen(ctx)
	if err != nil {
		return err
	}
	both := newShifts(l)
	defer both.close()
	web, later := f.server(ctx), f.server(ctx)
	ended := make(chan error, 2)
	go func() { ended <- serveBy(web, both.listener(0)) }()
	f.proxy.serves(true, f.now())
	defer func() {
		f.proxy.serves(false, f.now())
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leftTime)
		defer cancel()
		f.exit.left(last)
	}()
	if cfg.front() == frontPackets {
		f.log.Info("the front has no host (scp.listen): each packet of a consumer to the NRF passes the controller", "address", cfg.own(), "nrf", cfg.NRF)
	} else {
		f.log.Info("the front listens in a host", "address", cfg.Listen, "namespace", cfg.Namespace, "nrf", cfg.NRF)
	}
	gone, survey := time.NewTicker(listenInterval), make(chan struct{})
	defer gone.Stop()
	surveying, end := context.WithCancel(ctx)
	defer func() { end(); <-survey }()
	go func() {
		defer close(survey)
		for surveying.Err() == nil {
			pause := surveyInterval
			if !f.proxy.survey(surveying, f.nrf) {
				pause = listenInterval
			}
			_ = backoff.Sleep(surveying, pause)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			go func() { ended <- serveBy(later, both.listener(1)) }()
			f.leave(context.WithoutCancel(ctx), web, later)
			return nil
		case err := <-ended:
			return err
		case <-gone.C:
			if err := f.at.lost(); err != nil {
				web.Close()
				return err
			}
		}
	}
}

// server returns a server of the front. What is under way goes on when ctx ends.
func (f *front) server(ctx context.Context) *http.Server {
	web := &http.Server{
		Handler: f, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 10 * time.Minute,
		ConnState:      noteState,
		MaxHeaderBytes: longestHeader, ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: mostStreams, WriteByteTimeout: unreadTime},
		Protocols:   new(http.Protocols),
	}
	web.Protocols.SetHTTP1(true)
	web.Protocols.SetUnencryptedHTTP2(true)
	if f.nrf.tls != nil {
		web.Protocols.SetUnencryptedHTTP2(false)
		web.Protocols.SetHTTP2(true)
		web.TLSConfig = &tls.Config{Certificates: f.nrf.tls.Certificates, MinVersion: tls.VersionTLS12}
		if f.nrf.tls.RootCAs != nil {
			if web.TLSConfig.ClientCAs, web.TLSConfig.ClientAuth = f.nrf.tls.RootCAs, tls.RequireAndVerifyClientCert; !f.proxy.cfg.Load().Mutual {
				web.TLSConfig.ClientAuth = tls.VerifyClientCertIfGiven
			}
		}
	}
	return web
}

// serveBy has a server take the connections of a listener.
func serveBy(web *http.Server, l net.Listener) error {
	if web.TLSConfig != nil {
		return web.ServeTLS(l, "", "")
	}
	return web.Serve(l)
}
