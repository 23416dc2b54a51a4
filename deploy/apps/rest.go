package apps

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// lease is the link to a REST app: Weft POSTs packets to it, as long as the app
// renews its registration.
type lease struct {
	url    *url.URL
	client *http.Client
	renew  chan struct{}
}

// errExpired is why a REST app that does not renew its registration is
// detached.
var errExpired = errors.New("its lease has expired: a REST app registers again in time")

// registerApp attaches a REST app, or renews its lease.
func (o *Server) registerApp(ctx context.Context, h *api.Hello) (*api.Welcome, error) {
	info, err := o.apps.check(ctx, h)
	if err != nil {
		return nil, err
	}
	u, err := o.checkURL(h.GetUrl())
	if err != nil {
		return nil, err
	}
	info.Transport, info.Peer = "rest", u.String()
	if a := o.apps.find(info.Name); a != nil && a.info.Peer == info.Peer {
		if l, ok := a.link.(*lease); ok {
			return o.renewed(a, l, info)
		}
	}
	l := &lease{url: u, client: o.client(u, info.Name), renew: make(chan struct{}, 1)}
	a := newApp(o.ctx, info, l, &o.config)
	welcome, err := o.apps.attach(a, l.client.CloseIdleConnections)
	if err != nil {
		return nil, err
	}
	go o.expire(a, l)
	welcome.LeaseSeconds = o.leaseSeconds()
	return welcome, nil
}

// leaseSeconds returns the lease in seconds, for apps.
func (o *Server) leaseSeconds() uint32 { return uint32(max(1, o.config.Limits.Lease/time.Second)) }

// renewed renews the lease of an app that registers unchanged.
func (o *Server) renewed(a *app, l *lease, info AppInfo) (*api.Welcome, error) {
	if info.Kind != a.info.Kind || info.Filter != a.info.Filter {
		return nil, api.Errorf(codes.FailedPrecondition, "app %s is attached as another kind or with another filter: DELETE /v1/apps/%s first", info.Name, info.Name)
	}
	select {
	case l.renew <- struct{}{}:
	default: // it is about to be
	}
	limits := &o.config.Limits
	return &api.Welcome{Name: info.Name, TimeoutMs: o.config.timeoutMs(info.Name), MaxBatch: uint32(limits.Batch), LeaseSeconds: o.leaseSeconds()}, nil
}

// expire detaches an app when its lease ends.
func (o *Server) expire(a *app, l *lease) {
	timer := time.NewTimer(o.config.Limits.Lease)
	defer timer.Stop()
	for {
		select {
		case <-l.renew:
			timer.Reset(o.config.Limits.Lease)
		case <-timer.C:
			a.end(errExpired)
			return
		case <-a.ctx.Done():
			return
		}
	}
}

// client returns the HTTP client for an app: it connects directly, only to this
// machine unless the app has a certificate, and follows no redirects.
func (o *Server) client(u *url.URL, name string) *http.Client {
	dialer := &net.Dialer{Timeout: o.config.timeoutOf(name)}
	transport := &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: 8, MaxConnsPerHost: o.config.Limits.Batches,
		IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
	}
	if u.Scheme == "http" {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return dialLocal(address) }
	} else {
		transport.TLSClientConfig = o.config.TLS.Clone()
		transport.TLSClientConfig.VerifyConnection = func(state tls.ConnectionState) error {
			if ids := identities(&state); !mayBe(ids, name) {
				return fmt.Errorf("the app's certificate is that of %q: want weft://app/%s", ids, name)
			}
			return nil
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// exchange POSTs packets to a stage; its answer is the response.
func (l *lease) exchange(ctx context.Context, p *api.Packets) (*api.Decisions, error) {
	body, err := l.post(ctx, p)
	if err != nil {
		return nil, err
	}
	d := &api.Decisions{}
	if err := readJSON(body, d); err != nil {
		return nil, err
	}
	return d, nil
}

// deliver POSTs packets to an observer, whose response does not matter.
func (l *lease) deliver(ctx context.Context, p *api.Packets) error {
	_, err := l.post(ctx, p)
	return err
}

func (l *lease) post(ctx context.Context, p *api.Packets) ([]byte, error) {
	text, err := written().Marshal(p)
	if err != nil {
		return nil, api.Errorf(codes.Internal, "%w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url.String(), bytes.NewReader(text))
	if err != nil {
		return nil, api.Errorf(codes.Internal, "%w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, api.Errorf(codes.Unavailable, "POST to it: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	switch {
	case err != nil:
		return nil, api.Errorf(codes.Unavailable, "its response: %w", err)
	case len(body) > maxMessage:
		return nil, api.Errorf(codes.InvalidArgument, "its response is larger than %d octets", maxMessage)
	case resp.StatusCode/100 != 2:
		return nil, api.Errorf(codes.Unavailable, "it answered %s: %.200q", resp.Status, body)
	}
	return body, nil
}
