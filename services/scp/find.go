package scp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// finder finds the producers for requests that the front passes on.
type finder struct {
	front *front

	mu    sync.Mutex // guards the following
	found map[string]*asked
	fits  map[string]*fit
}

// asked is an answer of the NRF.
type asked struct {
	by    string          // who asked (ownerOf)
	until int64           // the NRF is asked again from then on
	ids   map[string]bool // of the instances that fit; nil: their profiles tell
}

func (a *asked) owner() string  { return a.by }
func (a *asked) validTo() int64 { return a.until }

// fit is the candidates for a request, at one version of the registry.
type fit struct {
	version uint64
	until   int64 // heartbeats may be late then
	list    []candidate
	err     error
}

// fitLife is how long the candidates for a request are kept.
const fitLife = int64(time.Second)

func newFinder(f *front) *finder {
	return &finder{front: f, found: map[string]*asked{}, fits: map[string]*fit{}}
}

// ask asks the NRF for a delegated discovery, once in the validity period, and learns
// from the answer. It returns the instances that fit; nil if their profiles tell.
func (f *finder) ask(ctx context.Context, q *sbi.Query, values url.Values, from *http.Request) (map[string]bool, error) {
	p := f.front.proxy
	values = maps.Clone(values)
	values.Del("requester-nf-instance-id")
	values.Del("limit")
	values.Set("target-nf-type", string(q.TargetNFType)) // an end point stands for its type
	values.Set("requester-nf-type", string(q.Requester.NFType))
	key := values.Encode()
	now := f.front.now()
	f.mu.Lock()
	was := f.found[key]
	f.mu.Unlock()
	if was != nil && now < was.until {
		return was.ids, nil
	}
	nrf := &asking{f.front, &http.Request{URL: &url.URL{RawQuery: key}, Header: from.Header.Clone()}}
	nrf.request.Header.Del("Authorization") // which is for the producer
	result, err := nrf.search(ctx)
	next, decides := &asked{until: now + int64(time.Second)}, slices.ContainsFunc(q.Ignored, chooses)
	switch {
	case err == nil:
		p.count.asked.Add(1)
		p.take(ctx, q, result, nrf, now)
		next.until = f.front.now() + int64(min(max(time.Duration(result.ValidityPeriod)*time.Second, time.Second), p.cfg.Load().Validity))
		if decides {
			next.ids = map[string]bool{}
			for _, x := range result.Raw {
				next.ids[x.ID] = true
			}
		}
	case was != nil:
		next.ids = was.ids
	case decides:
		return nil, err
	}
	client, _ := netip.ParseAddrPort(from.RemoteAddr)
	at, known := p.station(client.Addr().Unmap())
	next.by = ownerOf(client.Addr().Unmap(), at, known)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found[key] == nil && len(f.found) >= mostSearches {
		makeRoom(f.found, one)
	}
	f.found[key] = next
	return next.ids, nil
}

// fitting returns the candidates for a service among the known instances that a query
// finds. The error is a ProblemDetails: the requester may use none, or none serves.
func (f *finder) fitting(q *sbi.Query, ids map[string]bool, service string) ([]candidate, error) {
	p, now := f.front.proxy, f.front.now()
	key := ""
	if ids == nil {
		key = service + "?" + q.Values().Encode()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.fits[key]; x != nil && x.version == p.version && now < x.until {
		return x.list, x.err
	}
	x := &fit{version: p.version, until: now + fitLife}
	x.list, x.err = f.search(q, ids, service, now)
	if len(f.fits) >= mostSearches {
		clear(f.fits) // each is computed anew in microseconds, and is over in a second
	}
	if key != "" {
		f.fits[key] = x
	}
	return x.list, x.err
}

// search is fitting without its cache. It is called with the proxy's mu held.
func (f *finder) search(q *sbi.Query, ids map[string]bool, service string, now int64) ([]candidate, error) {
	p := f.front.proxy
	whole := *q
	if whole.Limit = 0; p.endpointByID(q.TargetInstanceID) != nil {
		whole.TargetInstanceID = "" // any that is reached by it
	}
	var all []*producer
	for _, x := range p.byType[q.TargetNFType] {
		if ids == nil || ids[x.id()] {
			all = append(all, x)
		}
	}
	list, away, err := candidates(p, all, &whole, service, now)
	switch {
	case len(list) > 0 || err != nil:
		return list, err
	case away > 0:
		return nil, sbi.Problem(http.StatusGatewayTimeout, sbi.TargetNotReachable, fmt.Sprintf("none of the %d producers that fit serves now", away))
	}
	return nil, sbi.Problem(http.StatusBadRequest, sbi.DiscoveryFailure, fmt.Sprintf("no %.64s that offers %.80q fits the request", q.TargetNFType, service))
}

// candidates returns the end points of a service at the producers that a query finds,
// and how many of these producers do not serve now. It is called with the proxy's mu
// held.
func candidates(p *proxy, all []*producer, q *sbi.Query, service string, now int64) (list []candidate, away int, err error) {
	margin, names := p.cfg.Load().Margin, p.cfg.Load().names()
	var profiles []*sbi.NFProfile
	states := map[string]string{}
	for _, x := range all {
		profiles = append(profiles, x.profile)
		states[x.profile.NFInstanceID], _ = x.serves(now, margin)
	}
	found, err := sbi.Search(profiles, q)
	if err != nil {
		p.count.forbidden.Add(1)
		return nil, 0, err
	}
	for i := range found {
		x := &found[i]
		if states[x.NFInstanceID] != "" && q.TargetInstanceID == "" {
			away++
			continue
		}
		near := q.PreferredLocality == "" || x.Locality == q.PreferredLocality
		for _, s := range x.Services() {
			if s.ServiceName != service {
				continue
			}
			one := *x
			one.NFServices, one.NFServiceList = []sbi.NFService{s}, nil
			for _, at := range one.Resolved(names).EndPoints() {
				if dialable(p.cfg.Load(), at.Addr) {
					list = append(list, candidate{strings.ToLower(x.NFInstanceID), s.ServiceInstanceID, at, tier(at.Priority, near), int(weight(at.Capacity, at.Load)), at.Load, at.Capacity, false, false})
				}
			}
		}
	}
	return list, away, nil
}

// dialable reports whether the front may connect to an address: that of a host, not one
// of the proxy's own, nor of this machine.
func dialable(cfg *Config, at netip.AddrPort) bool {
	nrf, _, _ := cfg.nrf() // Validate has seen both
	listen, _ := cfg.listen()
	a := at.Addr()
	switch {
	case !hostAddress(at), a.Is4() != nrf.Addr().Is4(), a.IsLinkLocalUnicast(), a.IsLoopback() && !listen.Addr().IsLoopback():
		return false
	case at == nrf, a == listen.Addr(), a == cfg.own():
		return false
	}
	return !slices.ContainsFunc(cfg.Vips, func(v netip.Prefix) bool { return v.Contains(a) })
}
