package scp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/sbi"
)

// instances is the path of the list of instances (NFListRetrieval).
const instances = "/nnrf-nfm/v1/nf-instances"

// listing is a request for the list of instances.
type listing struct {
	notifier   *notifier
	requesters []requester
	own        map[string]bool  // the instances at its address
	found      map[group]string // the ids of end points; empty of groups that have none
}

// listingKey is the key of the listing that a request is for.
type listingKey struct{}

// list passes on a request for the list of instances. A registered function gets end
// points in place of their instances.
func (n *notifier) list(w http.ResponseWriter, r *http.Request, client netip.Addr) {
	p := n.front.proxy
	l := &listing{notifier: n, own: map[string]bool{}, found: map[group]string{}}
	p.mu.Lock()
	l.requesters = requestersAt(p, client)
	for _, x := range p.consumersOf(client) {
		l.own[x.id()] = true
	}
	p.mu.Unlock()
	if p.cfg.Load().Notifications && len(l.requesters) > 0 {
		r.Header.Del("Accept-Encoding") // the answer is read
		r.Header.Del("If-None-Match")   // end points change, too
		r = r.WithContext(context.WithValue(r.Context(), listingKey{}, l))
	}
	p.count.passed.Add(1)
	n.front.toNRF(w, r)
}

// requestersAt returns the functions that are registered from an address and use others'
// services: all but NRFs, and none at a registrar's address. It is called with the proxy's
// mu held.
func requestersAt(p *proxy, client netip.Addr) (all []requester) {
	if p.trusted(client) {
		return nil
	}
	for _, x := range p.consumersOf(client) {
		if x.profile.NFType != sbi.NRF {
			all = append(all, requester{Requester: *x.requester(), any: x.profile.NFType == sbi.SCP, at: client})
		}
	}
	return all
}

// replace puts end points into the NRF's answer.
func (l *listing) replace(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	text, err := peek(resp)
	if err != nil || answers.Check(text) != nil {
		return err
	}
	if text = l.translate(resp.Request.Context(), text); text != nil {
		setBody(resp, text)
		resp.Header.Del("ETag")
		resp.Header.Del("Last-Modified")
	}
	return nil
}

// translate returns a list with end points in place of instances; nil if there are none.
func (l *listing) translate(ctx context.Context, text []byte) []byte {
	var members, links map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil
	}
	name := "_links"
	if members[name] == nil {
		name = "_link" // of free5GC
	}
	var items oneOrMore[map[string]json.RawMessage]
	if json.Unmarshal(members[name], &links) != nil {
		return nil
	}
	if json.Unmarshal(links["item"], &items) != nil {
		return nil
	}
	var kept []map[string]json.RawMessage
	there, changed := map[string]bool{}, false
	for _, item := range items {
		var href string
		_ = json.Unmarshal(item["href"], &href) // else it stays
		cut := strings.LastIndexByte(href, '/') + 1
		if by := l.endPoint(ctx, strings.ToLower(href[cut:])); by != "" {
			changed = true
			if there[by] {
				continue
			}
			there[by] = true
			item["href"], _ = json.Marshal(href[:cut] + by)
		}
		kept = append(kept, item)
	}
	if !changed {
		return nil
	}
	var total int
	if json.Unmarshal(members["totalItemCount"], &total) == nil {
		members["totalItemCount"], _ = json.Marshal(max(total-len(items)+len(kept), len(kept)))
	}
	links["item"], _ = json.Marshal(kept) // has been JSON, as has what follows
	members[name], _ = json.Marshal(links)
	text, _ = json.Marshal(members)
	return text
}

// endPoint returns the id of the end point by which the function reaches an instance;
// empty if it has none, or it is the function's own.
func (l *listing) endPoint(ctx context.Context, id string) string {
	n := l.notifier
	if l.own[id] {
		return ""
	}
	of, by, vips := l.find(id)
	if by.id == "" {
		return ""
	}
	if len(vips) > 0 && n.await(ctx, vips) != nil {
		l.found[of] = ""
		return ""
	}
	l.found[of] = by.id
	n.note(id, by)
	return by.id
}

// find returns the group of an instance, with the end point by which the function
// reaches it, and the VIPs that are to be waited for.
func (l *listing) find(id string) (of group, by endpointRef, vips []string) {
	p := l.notifier.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.instance(id)
	if x == nil || x.whyNot != "" {
		return of, by, nil
	}
	of = groupOf(x)
	if known, ok := l.found[of]; ok {
		return of, endpointRef{of, known}, nil
	}
	for _, who := range l.requesters {
		if by, one, vips := endpointFor(p, x, who, l.notifier.front.now()); one != nil {
			return of, by, vips
		}
	}
	l.found[of] = ""
	return of, by, nil
}

// retrieve answers a request for an end point by its id. It passes the request of a client
// that may not use the end point on to the NRF.
func (n *notifier) retrieve(w http.ResponseWriter, r *http.Request, client netip.Addr, id string) {
	one, vips := n.profileOf(client, id)
	if one == nil {
		n.front.proxy.count.passed.Add(1)
		n.front.toNRF(w, r)
		return
	}
	text, err := json.Marshal(one)
	if err == nil && n.await(r.Context(), vips) != nil {
		err = notReady()
	}
	if err != nil {
		sbi.WriteProblem(w, err)
		return
	}
	n.front.proxy.count.known.Add(1)
	n.front.write(w, r, text, sbi.ETag(text))
}

// profileOf returns the profile of an end point for a client, and the VIPs that it
// names; none if it may not use it.
func (n *notifier) profileOf(client netip.Addr, id string) (one *sbi.NFProfile, vips []string) {
	p := n.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.endpointByID(id)
	if e == nil {
		return nil, nil
	}
	requesters := requestersAt(p, client)
	if trusted := p.trusted(client); trusted || len(requesters) == 0 && !p.cfg.Load().Strict {
		requesters = []requester{{any: trusted}} // what anybody may use
	}
	i := slices.IndexFunc(requesters, func(a requester) bool {
		one, vips = profileFor(p, e, e.Group, a, n.front.now())
		return one != nil
	})
	if i >= 0 {
		e.used = n.front.now()
	}
	return one, vips
}
