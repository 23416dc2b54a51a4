package scp

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// narrowing are parameters that choose among the instances of a type, by which an
// endpoint is not chosen: the NRF answers these.
var narrowing = []string{"target-nf-instance-id-list", "target-nf-fqdn", "target-nf-set-id", "target-nf-service-set-id", "target-plmn-list"}

// harmless are parameters that are not looked at, and do not change which instances
// fit.
var harmless = []string{"requester-features", "max-payload-size", "max-payload-size-ext", "ext-preferred-locality"}

// narrow returns the first parameter of a discovery that the NRF must answer: one
// that is narrowing, or that nobody here knows.
func narrow(values url.Values, q *sbi.Query) string {
	for _, name := range narrowing {
		if values.Has(name) {
			return name
		}
	}
	for _, name := range q.Ignored {
		if chooses(name) {
			return name
		}
	}
	return ""
}

// chooses reports whether a parameter that is not looked at may choose among
// instances.
func chooses(name string) bool {
	return !slices.Contains(harmless, name) && !strings.HasPrefix(name, "preferred-")
}

// repository is the NRF, as the proxy asks it.
type repository interface {
	// search passes a discovery on. An answer other than 200 is a *sbi.ProblemDetails.
	search(context.Context) (*sbi.SearchResult, error)
	// profile returns the profile of an instance, nil if there is none.
	profile(ctx context.Context, id string) ([]byte, error)
}

// admit completes who asks with what it has registered. It refuses those that say
// to be what they are not.
func (p *proxy) admit(q *sbi.Query, from netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	consumers := p.consumersOf(from)
	if p.relays(from) { // for somebody else, whom it names
		x := p.book[strings.ToLower(q.Requester.InstanceID)]
		switch {
		case x == nil:
		case x.profile.NFType != q.Requester.NFType:
			return p.forbid("requester-nf-type: instance " + x.id() + " is no " + string(q.Requester.NFType))
		default:
			q.Requester.Complete(x.profile)
			prefer(p, q, x)
		}
		return nil
	}
	if len(consumers) == 0 {
		if p.cfg.Load().Strict {
			return p.forbid("nobody is registered from this address, " + from.String())
		}
		return nil
	}
	for _, x := range consumers {
		if x.profile.NFType == q.Requester.NFType {
			q.Requester = sbi.Requester{NFType: x.profile.NFType, InstanceID: x.id(), SNSSAIs: q.Requester.SNSSAIs}
			q.Requester.Complete(x.profile)
			prefer(p, q, x)
			return nil
		}
	}
	return p.forbid("requester-nf-type: registered from this address, " + from.String() + ", is no " + string(q.Requester.NFType))
}

// prefer has a consumer prefer producers of its own locality, if the policy of their type
// says so and the discovery prefers none. It is called with the
// proxy's mu held.
func prefer(p *proxy, q *sbi.Query, consumer *producer) {
	if q.PreferredLocality == "" && p.policyOf(q.TargetNFType).GetAlgorithm() == byLocality {
		q.PreferredLocality = consumer.profile.Locality
	}
}

func (p *proxy) forbid(why string) error {
	p.count.forbidden.Add(1)
	return sbi.Problem(http.StatusForbidden, sbi.RequesterNotAllowed, why)
}

// key returns what a discovery is known by: all that its answer depends on.
func key(q *sbi.Query) string {
	k := *q
	k.Requester.InstanceID = ""
	slices.Sort(k.ServiceNames)
	return k.Values().Encode()
}

// asker is who sends a discovery.
type asker struct {
	at          netip.Addr // invalid if that is not known
	credentials string     // by which the NRF judges it, such as an access token; others' answers are not for it
}

// credentialsOf returns what is in a request by which the NRF may judge who asks.
func credentialsOf(h http.Header) string {
	token, client := h.Values("Authorization"), h.Values("3gpp-Sbi-Client-Credentials")
	if len(token)+len(client) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(token, "\x00") + "\x00\x00" + strings.Join(client, "\x00")))
	return string(sum[:])
}

// discover answers a discovery: from what is known if the NRF has been asked
// within the validity period, or does not answer.
func (p *proxy) discover(ctx context.Context, q *sbi.Query, who asker, nrf repository, clock func() int64) (*answer, error) {
	q.ServiceNames = slices.Clone(q.ServiceNames)
	k, from := key(q)+who.credentials, who.at
	p.mu.Lock()
	if slices.ContainsFunc(p.byType[q.TargetNFType], func(x *producer) bool { return beside(p, from, x.points) }) {
		here, _ := p.located(from)
		k += "&" + here.At.String()
	} else {
		from = netip.Addr{} // its answer is for all
	}
	s := p.searches[k]
	if now := clock(); s != nil && now < s.until {
		defer p.mu.Unlock()
		if s.failed != nil {
			return p.stale(q, s, now)
		}
		p.count.known.Add(1)
		return p.answer(q, s, now)
	}
	p.mu.Unlock()
	result, err := nrf.search(ctx)
	now := clock() // it may have taken long
	if err == nil {
		p.count.asked.Add(1)
		p.take(ctx, q, result, nrf, now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = p.searches[k]; s == nil {
		at, known := p.located(who.at)
		if s = (&search{by: ownerOf(who.at, at, known), of: q.TargetNFType, from: from}); len(p.searches) >= mostSearches {
			makeRoom(p.searches, one)
		}
		p.searches[k] = s
	}
	if err != nil {
		if refused := sbi.ProblemOf(err); refused.Status < 500 {
			p.count.failed.Add(1)
			return nil, err
		}
		s.until, s.failed = now+int64(time.Second), err // so many have not all to wait
		return p.stale(q, s, now)
	}
	p.searches.note(s, result)
	s.until = now + int64(min(max(time.Duration(result.ValidityPeriod)*time.Second, time.Second), p.cfg.Load().Validity))
	return p.answer(q, s, now)
}

// stale answers a discovery although the NRF has failed, if something is known. It is
// called with mu held.
func (p *proxy) stale(q *sbi.Query, s *search, now int64) (*answer, error) {
	a, err := p.answer(q, s, now)
	if err != nil || string(s.found) == "[]" {
		p.count.failed.Add(1)
		return nil, s.failed
	}
	p.count.stale.Add(1)
	return a, nil
}

// take learns what the NRF has found: of instances that were not known, their
// whole profiles; and that others are gone.
func (p *proxy) take(ctx context.Context, q *sbi.Query, result *sbi.SearchResult, nrf repository, now int64) {
	found := map[string]bool{}
	for _, x := range result.Raw {
		found[x.ID] = true
	}
	p.mu.Lock()
	var unknown, missing []string
	for _, x := range result.Raw {
		if y := p.instance(x.ID); x.ID != "" && (y == nil || y.heard == 0) {
			unknown = append(unknown, x.ID)
		}
	}
	for _, x := range p.byType[q.TargetNFType] {
		if state, _ := x.serves(now, p.cfg.Load().Margin); !found[x.id()] && (x.heard == 0 || state == "late") {
			missing = append(missing, x.id())
		}
	}
	p.mu.Unlock()
	for _, id := range append(unknown, missing...) {
		_ = p.look(ctx, id, nrf.profile) // the next discovery asks again
	}
}

// look learns what the NRF knows of an instance, or that it knows nothing. What has
// passed the front meanwhile is newer. The error says that the NRF has not answered.
func (p *proxy) look(ctx context.Context, id string, profile func(ctx context.Context, id string) ([]byte, error)) error {
	known := func() *producer {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.book[id]
	}
	was := known()
	text, err := profile(ctx, id)
	switch {
	case err != nil:
		return err
	case known() != was:
		return nil
	case text == nil:
		p.forget(id)
		return nil
	}
	if was != nil && was.heard != 0 {
		text = merged(was.text, text)
	}
	x, err := newProducer(text, netip.Addr{})
	if err == nil && (x.id() == id || x.profile.NFInstanceID == "") {
		x.profile.NFInstanceID = id
		err = p.learn(x)
	}
	if err != nil {
		p.log.Warn("what the NRF says of an instance is not taken", "instance", id, "error", err)
	}
	return nil
}

// survey learns of instances that have registered at the NRF without passing here,
// and that such are gone. Discoveries look again at those it knows. It reports whether the NRF
// has answered.
func (p *proxy) survey(ctx context.Context, nrf *nrf) bool {
	asking, cancel := context.WithTimeout(ctx, p.cfg.Load().NRFTimeout)
	defer cancel()
	p.mu.Lock()
	p.turn++
	turn := p.turn
	p.mu.Unlock()
	ids, err := nrf.instances(asking)
	if ctx.Err() != nil {
		return false
	}
	if problem := (*sbi.ProblemDetails)(nil); errors.As(err, &problem) {
		p.said(problem.Detail)
		p.surveyed.Store(true)
		return true // asking sooner does not help
	} else if err != nil {
		p.failed(err)
		return false
	}
	p.said("ok")
	p.mu.Lock()
	wanted := p.list(ids, turn, p.cfg.Load().Instances)
	p.mu.Unlock()
	for _, id := range wanted {
		one, stop := context.WithTimeout(ctx, p.cfg.Load().NRFTimeout)
		_ = p.look(one, id, nrf.profile) // the next survey asks again
		stop()
	}
	p.surveyed.Store(true)
	return true
}
