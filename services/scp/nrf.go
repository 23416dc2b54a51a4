package scp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/sbi"
)

// nrf is the NRF of the core, as a client sees it. It is reached from the front's
// own address, whose packets nobody translates.
type nrf struct {
	at        netip.AddrPort
	scheme    string
	tls       *tls.Config // nil: without
	transport *http.Transport
}

// newNRF returns the client of a configuration's NRF; nil if there is none.
func newNRF(cfg *Config, from sockets) (*nrf, error) {
	at, secure, err := cfg.nrf()
	if err != nil || !at.IsValid() {
		return nil, err
	}
	n := &nrf{at: at, scheme: "http"}
	n.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return from.dial(ctx, at) },
		Protocols:   new(http.Protocols), MaxResponseHeaderBytes: longestHeader, ResponseHeaderTimeout: cfg.NRFTimeout,
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
	}
	n.transport.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		if n.tls, err = tlsOf(cfg); err != nil {
			return nil, err
		}
		n.scheme = "https"
		n.transport.TLSClientConfig = n.tls.Clone()
		if n.transport.TLSClientConfig.ServerName = cfg.NRFName; cfg.NRFName == "" {
			n.transport.TLSClientConfig.ServerName = at.Addr().String()
		}
		n.transport.Protocols.SetUnencryptedHTTP2(false)
		n.transport.Protocols.SetHTTP1(true)
		n.transport.Protocols.SetHTTP2(true)
	}
	return n, nil
}

func tlsOf(cfg *Config) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.Certificate != "" {
		c, err := asowner.LoadKeyPair(cfg.Certificate, cfg.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s, key %s: %w", cfg.Certificate, cfg.Key, err)
		}
		t.Certificates = []tls.Certificate{c}
	}
	if cfg.Authority != "" {
		text, err := asowner.ReadFile(cfg.Authority)
		if err != nil {
			return nil, fmt.Errorf("authority: %w", err)
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authority: %s: has no certificate in PEM", cfg.Authority)
		}
	}
	return t, nil
}

// get asks for a resource with the headers of a request by which the NRF knows the
// consumer.
func (n *nrf) get(ctx context.Context, path, query string, header http.Header) (status int, body []byte, err error) {
	u := url.URL{Scheme: n.scheme, Host: n.at.String(), Path: path, RawQuery: query}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"Authorization", "User-Agent", "3gpp-Sbi-Client-Credentials", "3gpp-Sbi-Correlation-Info"} {
		if v := header.Values(name); len(v) > 0 {
			r.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	resp, err := n.transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err == nil && len(body) > mostAnswer {
		return resp.StatusCode, nil, errLong
	}
	if err == nil {
		body, err = answers.Decode(resp.Header.Get("Content-Encoding"), body)
	}
	return resp.StatusCode, body, err
}

// peek returns the body of an answer of the NRF without its content encoding, and leaves
// the answer as it came. It returns nil for a body that is longer than what is read of
// one, or that cannot be decoded.
func peek(resp *http.Response) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
	if len(text) > mostAnswer {
		return nil, nil
	}
	plain, err := answers.Decode(resp.Header.Get("Content-Encoding"), text)
	if err != nil {
		return nil, nil
	}
	return plain, nil
}

// setBody replaces the body of an answer.
func setBody(resp *http.Response, text []byte) {
	resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	resp.Header.Del("Content-Encoding")
}

const (
	longestHeader = 16 << 10 // octets, of a request or an answer
	mostAnswer    = 16 << 20 // of what the NRF answers, where that is read
)

// bodies bounds what clients may send.
var bodies = sbi.Limits{Octets: 1 << 20, Depth: 64, Values: 200_000}

// answers bounds what the NRF may answer.
var answers = sbi.Limits{Octets: mostAnswer, Depth: 64, Values: 2_000_000}

// idForm is the form of the ids by which instances may be known: UUIDs, and what some
// functions have instead.
var idForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,128}$`)

var (
	// errLong is that an answer is longer than what is read of one.
	errLong = fmt.Errorf("more than %d octets", mostAnswer)
	// errAnswered is that the NRF has answered what is for the consumer alone: a refusal,
	// where to ask instead, or more than is read here.
	errAnswered = errors.New("the NRF's answer is for the consumer")
)

// search passes a discovery on.
func (n *nrf) search(ctx context.Context, query string, header http.Header) (*sbi.SearchResult, error) {
	status, body, err := n.get(ctx, "/nnrf-disc/v1/nf-instances", query, header)
	switch {
	case errors.Is(err, errLong) || err == nil && status != http.StatusOK && status < 500:
		return nil, errors.Join(errAnswered, sbi.Problem(max(status, 400), "", fmt.Sprintf("the NRF answered with status %d", status)))
	case err != nil:
		return nil, unreachable(err)
	case status != http.StatusOK:
		return nil, sbi.Problem(status, "", fmt.Sprintf("the NRF answered with status %d", status))
	}
	result, err := sbi.ReadResult(body)
	if err != nil {
		return nil, sbi.Problem(http.StatusBadGateway, sbi.InboundServerError, "the NRF answered what is no search result: "+err.Error())
	}
	return result, nil
}

// profile returns the profile of an instance, nil if there is none.
func (n *nrf) profile(ctx context.Context, id string) ([]byte, error) {
	if !idForm.MatchString(id) {
		return nil, fmt.Errorf("%.80q is no instance id", id)
	}
	status, body, err := n.get(ctx, "/nnrf-nfm/v1/nf-instances/"+id, "", nil)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusNotFound:
		return nil, nil
	case status != http.StatusOK:
		return nil, sbi.Problem(status, "", fmt.Sprintf("the NRF answered with status %d", status))
	}
	return body, answers.Check(body)
}

// instances returns the ids of all instances.
func (n *nrf) instances(ctx context.Context) ([]string, error) {
	status, body, err := n.get(ctx, "/nnrf-nfm/v1/nf-instances", "", nil)
	if err != nil {
		return nil, err
	}
	type item struct {
		Href string `json:"href"`
	}
	type links struct {
		Item oneOrMore[item] `json:"item"`
	}
	var list struct {
		Links *links `json:"_links"`
		Link  *links `json:"_link"` // of free5GC
	}
	if err = answers.Check(body); err == nil {
		err = json.Unmarshal(body, &list)
	}
	if list.Links == nil {
		list.Links = list.Link
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden: // an NRF that wants access tokens of everybody
		return nil, sbi.Problem(status, "", fmt.Sprintf("the NRF does not list its instances to the front: status %d", status))
	case err != nil:
		return nil, fmt.Errorf("the NRF lists no instances: %w", err)
	case status != http.StatusOK || list.Links == nil:
		return nil, fmt.Errorf("the NRF lists no instances: status %d, %.80q", status, body)
	}
	var ids []string
	for _, item := range list.Links.Item {
		if id := item.Href[strings.LastIndexByte(item.Href, '/')+1:]; idForm.MatchString(id) {
			ids = append(ids, strings.ToLower(id))
		}
	}
	return ids, nil
}

// oneOrMore is an array, or its only item without one (JSON HAL).
type oneOrMore[T any] []T

// UnmarshalJSON reads it (json.Unmarshaler).
func (l *oneOrMore[T]) UnmarshalJSON(b []byte) error {
	if b[0] == '[' || string(b) == "null" {
		return json.Unmarshal(b, (*[]T)(l))
	}
	*l = make([]T, 1)
	return json.Unmarshal(b, &(*l)[0])
}

// unreachable returns the problem of an NRF that does not answer.
func unreachable(err error) *sbi.ProblemDetails {
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return sbi.Problem(http.StatusRequestEntityTooLarge, sbi.ContentTooLarge, "the body is too large")
	case errors.Is(err, context.DeadlineExceeded):
		return sbi.Problem(http.StatusGatewayTimeout, sbi.TimedOutRequest, "the NRF does not answer in time")
	}
	return sbi.Problem(http.StatusGatewayTimeout, sbi.NRFNotReachable, "the NRF does not answer")
}
