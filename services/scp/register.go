package scp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
)

// change is what a client does to an instance.
type change struct {
	method string
	id     string
	by     netip.Addr
	body   []byte
}

// mostProfiles bounds the profiles that the hosts at a port of the network have registered,
// in octets. One that is short enough to be there for each of their instances is let in.
const mostProfiles = 32 << 20

// fewInstances is how many the hosts at a port of the network may always register.
const fewInstances = 64

// mayRegister refuses a change to an instance of another, and a profile with
// addresses that are not the client's, be it whole or what an update makes of it.
func (p *proxy) mayRegister(method string, by netip.Addr, id string, body []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, text, most := p.instance(strings.ToLower(id)), body, max(fewInstances, p.cfg.Load().Instances/8)
	if x != nil && !p.owns(x, by) {
		p.count.poisoned.Add(1)
		return sbi.Problem(http.StatusForbidden, sbi.InstanceOfAnother, fmt.Sprintf("instance %s is registered by the host of %v", id, x.owner()))
	}
	switch method {
	case http.MethodPut:
		if x != nil || p.relays(by) {
			break
		}
		if n, _ := p.registered(by, nil); n >= most {
			p.count.noRoom.Add(1)
			return sbi.Problem(http.StatusTooManyRequests, "", fmt.Sprintf("%d instances are at the port of the network where %v is already, an eighth of scp.instances", most, by))
		}
	case http.MethodPatch:
		items, err := sbi.ParsePatch(body)
		if err != nil {
			return p.malformed(err)
		}
		if x == nil {
			return nil
		}
		if text, err = sbi.Apply(x.text, items); err != nil {
			return nil // the NRF's to judge; what it makes of it is looked at when it is learnt
		}
		if err := bodies.Check(text); err != nil {
			return p.malformed(err)
		}
	default:
		return nil
	}
	if grows := x == nil || len(text) > len(x.text); grows && !p.relays(by) && len(text) > mostProfiles/most {
		if _, octets := p.registered(by, x); octets+len(text) > mostProfiles {
			p.count.noRoom.Add(1)
			return sbi.Problem(http.StatusTooManyRequests, "", fmt.Sprintf("the profiles that are registered at the port of the network where %v is have more than %d octets", by, mostProfiles))
		}
	}
	profile, err := sbi.Read(text)
	if err == nil {
		err = profile.Hidden()
	}
	if err != nil {
		return p.malformed(err)
	}
	if profile.NFInstanceID != "" && !strings.EqualFold(profile.NFInstanceID, id) {
		p.count.malformed.Add(1)
		return invalidID(id, profile.NFInstanceID)
	}
	var had []netip.Addr
	if method == http.MethodPatch {
		had = x.addresses() // these were looked at when they came
	}
	return p.misplaced(&profile.NFProfile, by, had)
}

// registered returns how many instances but one are at the port of the network where a
// client is, and the length of their profiles, those that have ended and are listed by the
// NRF among them; those whose ports are not known count as if at one. It is called with mu held.
func (p *proxy) registered(by netip.Addr, but *producer) (n, octets int) {
	at, _ := p.located(by)
	for _, all := range []map[string]*producer{p.book, p.ended} {
		for _, x := range all {
			if s, _ := p.located(x.owner()); s.At == at.At && !x.relayed && x != but {
				n, octets = n+1, octets+len(x.text)
			}
		}
	}
	return n, octets
}

// malformed returns the answer to what cannot be read.
func (p *proxy) malformed(err error) error {
	p.count.malformed.Add(1)
	if problem := (*sbi.ProblemDetails)(nil); errors.As(err, &problem) {
		return err
	}
	return sbi.Problem(http.StatusBadRequest, sbi.InvalidMessageFormat, err.Error())
}

// trusted reports whether a client may register for others.
func (p *proxy) trusted(by netip.Addr) bool {
	return slices.ContainsFunc(p.cfg.Load().Registrars, func(r netip.Prefix) bool { return r.Contains(by) })
}

// relays reports whether a client registers, and asks, for others: it is trusted, or
// an SCP is registered from its address.
func (p *proxy) relays(by netip.Addr) bool {
	return p.trusted(by) || slices.ContainsFunc(p.index.Load().nfs[by], func(x *producer) bool { return x.profile.NFType == sbi.SCP })
}

// misplaced refuses a profile with an address, other than those it had, that cannot
// be its registrant's: one that is elsewhere in the network, that is of scp.vips, or
// the front's. One that has not spoken yet is let in. It is called with mu held.
func (p *proxy) misplaced(profile *sbi.NFProfile, by netip.Addr, had []netip.Addr) error {
	cfg := p.cfg.Load()
	refuse := func(format string, args ...any) error {
		p.count.poisoned.Add(1)
		return sbi.Problem(http.StatusForbidden, sbi.ModificationNotAllowed, fmt.Sprintf(format, args...))
	}
	for _, a := range profile.Resolved(p.names).Addresses() {
		_, seen := p.located(a)
		_, there := p.located(by)
		switch {
		case cfg.ours(a):
			return refuse("address %v is for nobody's profile: it is the proxy's own", a)
		case a.IsUnspecified() || slices.Contains(had, a) || !by.IsValid() || p.relays(by) || p.together(a, by) || there && !seen:
		default:
			return refuse("address %v is not at the port of the network where %v is, which registers it", a, by)
		}
	}
	return nil
}

func invalidID(path, body string) error {
	problem := sbi.Problem(http.StatusBadRequest, sbi.MandatoryMemberIncorrect, "")
	problem.InvalidParams = []sbi.InvalidParam{{Param: "/nfInstanceId", Reason: fmt.Sprintf("is %.40q, and %.40q in the path", body, path)}}
	return problem
}

// owns reports whether a client may change an instance: it is where it was
// registered from. An SCP may change those that hosts have not registered
// themselves. It is called with mu held.
func (p *proxy) owns(x *producer, by netip.Addr) bool {
	of := x.owner()
	if !of.IsValid() || p.together(of, by) || p.trusted(by) {
		return true
	}
	// The host that has registered it may have gone; its addresses remain.
	return (x.relayed || !x.by.IsValid()) && (slices.Contains(x.addresses(), by) || p.relays(by))
}

// together reports whether two addresses are at one port of the network. It is
// called with mu held.
func (p *proxy) together(a, b netip.Addr) bool {
	if a == b {
		return true
	}
	x, ok := p.located(a)
	y, there := p.located(b)
	return ok && there && x.At == y.At
}

// apply learns from a change that the NRF has made, with what it answered.
func (p *proxy) apply(c *change, answered []byte, now int64) {
	id := strings.ToLower(c.id)
	var err error
	switch c.method {
	case http.MethodDelete:
		p.forget(id)
	case http.MethodPut:
		err = p.register(id, merged(c.body, answered), c.by, now)
	case http.MethodPatch:
		err = p.update(id, c, answered, now)
	}
	if err != nil {
		p.log.Warn("an instance that the NRF has taken cannot be balanced", "instance", id, "method", c.method, "error", err)
	}
}

// register enters a profile that a client has registered.
func (p *proxy) register(id string, text []byte, by netip.Addr, now int64) error {
	x, err := newProducer(text, by)
	if err != nil {
		return err
	}
	if x.profile.NFInstanceID == "" {
		x.profile.NFInstanceID = id
	}
	if x.id() != id {
		return invalidID(id, x.id())
	}
	x.heard = now
	return p.learn(x)
}

// merged returns the profile that an NRF has made of one: by its answer, which has the
// whole profile, or only what the NRF has changed (nfProfileChangesInd; TS 29.510,
// Annex B), or lacks what that NRF does not know.
func merged(profile, answered []byte) []byte {
	var was, now map[string]json.RawMessage
	if json.Unmarshal(profile, &was) != nil || json.Unmarshal(answered, &now) != nil || len(now) == 0 {
		return profile
	}
	more := false
	for name, text := range was {
		if _, there := now[name]; !there && !slices.Contains(ofOneMessage, name) {
			now[name], more = text, true
		}
	}
	for _, name := range ofOneMessage {
		_, there := now[name]
		more = more || there
		delete(now, name)
	}
	if !more {
		return answered
	}
	text, _ := json.Marshal(now) // has been JSON
	return text
}

// ofOneMessage are the members of profiles that speak of the message they are in.
var ofOneMessage = []string{"nfProfileChangesInd", "nfProfileChangesSupportInd", "nfProfilePartialUpdateChangesSupportInd"}

// hear notes that an instance whose heartbeats pass here lives. It is called also for those
// that the NRF does not answer, or all would be late soon after the NRF fails.
func (p *proxy) hear(id string, now int64) *producer {
	p.mu.Lock()
	defer p.mu.Unlock()
	id = strings.ToLower(id)
	x := p.instance(id)
	if x == nil {
		return nil
	}
	if p.book[id] == nil {
		p.enter(x) // it had ended, it seemed
	}
	x.heard, x.passed, x.unlisted = now, 0, false
	return x
}

// update follows an update, which for the most part is a heartbeat.
func (p *proxy) update(id string, c *change, answered []byte, now int64) error {
	x := p.hear(id, now)
	if x == nil {
		if len(answered) == 0 {
			return nil // the next discovery finds it
		}
		return p.register(id, answered, c.by, now)
	}
	text := x.text
	items, err := sbi.ParsePatch(c.body)
	if err == nil {
		text, err = sbi.Apply(x.text, items)
	}
	if err != nil {
		text = x.text
		if len(answered) == 0 {
			p.mu.Lock()
			x.doubted = true
			p.mu.Unlock()
			return err
		}
	}
	text = merged(text, answered)
	if string(text) == string(x.text) {
		return nil
	}
	by := x.by
	if !by.IsValid() {
		by = c.by
	}
	return p.register(id, text, by, now)
}

// refusal returns why a request for a producer came to the front: the consumer may
// not use it, nobody serves, or it was sent to the front itself and does not say
// whom it is for.
func (p *proxy) refusal(service string, client netip.Addr, here bool) *sbi.ProblemDetails {
	p.mu.Lock()
	defer p.mu.Unlock()
	consumers := p.consumersOf(client)
	exempt := slices.ContainsFunc(p.cfg.Load().exempt(), func(a netip.Prefix) bool { return a.Contains(client) })
	offered, allowed, overloaded, serves := false, false, false, false
	for _, x := range p.book {
		if !slices.ContainsFunc(x.points, func(e sbi.EndPoint) bool { return e.Service == service }) {
			continue
		}
		offered = true
		if x.class == "" && !p.cfg.Load().Strict || exempt || slices.ContainsFunc(consumers, func(c *producer) bool { return x.admits(c, service) }) {
			allowed = true
			state, _ := x.serves(now(), p.cfg.Load().Margin)
			serves = serves || state == ""
			for _, e := range p.endpoints {
				overloaded = overloaded || e.overloaded && e.Group.Type == x.profile.NFType
			}
		}
	}
	switch {
	case offered && !allowed:
		p.count.forbidden.Add(1)
		return sbi.Problem(http.StatusForbidden, sbi.RequesterNotAllowed, fmt.Sprintf("%v may not use %.80s", client, service))
	case overloaded:
		p.count.shed.Add(1)
		problem := sbi.Problem(http.StatusServiceUnavailable, sbi.NFServiceCongestion, fmt.Sprintf("all that serve %.80s are overloaded", service))
		problem.RetryAfter = retryOverload
		return problem
	case offered && serves && here:
		p.count.malformed.Add(1)
		return sbi.Problem(http.StatusBadRequest, sbi.MandatoryMemberMissing, fmt.Sprintf("%.80s is served, but the request names no target: want 3gpp-Sbi-Target-apiRoot, or 3gpp-Sbi-Discovery-target-nf-type", service))
	case offered:
		problem := sbi.Problem(http.StatusServiceUnavailable, sbi.TargetNotReachable, fmt.Sprintf("nobody serves %.80s now", service))
		problem.RetryAfter = retryNobody
		return problem
	}
	p.count.malformed.Add(1)
	return sbi.Problem(http.StatusNotFound, sbi.ResourceNotFound, fmt.Sprintf("nobody has registered %.80q", service))
}

// failed notes that the NRF did not answer, if that is what the error says.
func (p *proxy) failed(err error) {
	var problem *sbi.ProblemDetails
	if errors.As(err, &problem) && problem.Status < 500 {
		p.said("ok")
		return
	}
	p.count.nrfFails.Add(1)
	p.said(err.Error())
}

// said notes what the NRF last did.
func (p *proxy) said(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nrf = what
}

// leaves notes that the front ends.
func (p *proxy) leaves() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
	object.Notify(p.out)
}

// setSilent records why the front does not listen.
func setSilent(p *proxy, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = why.Error()
}

// serves notes whether the front serves.
func (p *proxy) serves(yes bool, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.serving != yes {
		if p.serving = yes; yes {
			p.pass(now)
		}
		p.leaving = false
		p.reindex()
		object.Notify(p.out)
	}
	p.begun()
}
