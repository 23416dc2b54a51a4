package scp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/sbi"
)

// delegated reports whether a request is for an SCP to pass on.
func delegated(h http.Header) bool {
	if h[sbi.TargetAPIRoot] != nil || h[sbi.RoutingBinding] != nil {
		return true
	}
	values, err := sbi.DelegatedQuery(h)
	return err != nil || len(values) > 0
}

// serve passes a request on.
func (r *relay) serve(w http.ResponseWriter, req *http.Request, client netip.Addr) {
	s, _ := r.front.proxy.station(client)
	who := consumer{client.String(), s.At}
	place, err := r.places.TryAcquire(shares.Client{Name: who.at.String()}, nil)
	if err != nil {
		r.front.proxy.count.shed.Add(1)
		problem := sbi.Problem(http.StatusTooManyRequests, sbi.NFCongestionRisk, "the front passes on as many requests as it may")
		problem.RetryAfter = retryNobody
		r.refuse(w, problem)
		return
	}
	defer place.Release()
	ctx, cancel := context.WithTimeout(req.Context(), sbi.ResponseTime(req.Header, relayTime, relayLongest))
	defer cancel()
	err = checkPath(req.URL)
	if err == nil {
		err = sbi.Hop(req.Header, fmt.Sprintf("%d.%d", req.ProtoMajor, req.ProtoMinor), r.name)
	}
	var e *indirectRequest
	if err == nil {
		e, err = r.route(ctx, req, who, client)
	}
	if err != nil {
		r.refuse(w, sbi.ProblemOf(err))
		return
	}
	req.Body = http.MaxBytesReader(w, req.Body, mostRelayed)
	if 0 < req.ContentLength && req.ContentLength <= mostKept {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			r.refuse(w, unreached(err))
			return
		}
		keepBody(req, body)
	}
	r.front.proxy.count.relayed.Add(1)
	r.pass.ServeHTTP(w, req.WithContext(context.WithValue(ctx, indirectKey{}, e)))
}

// checkPath refuses a path with dot segments, which a producer may resolve.
func checkPath(u *url.URL) error {
	if !strings.HasPrefix(u.Path, "/") || slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return sbi.Problem(http.StatusBadRequest, sbi.InvalidAPI, "the path has more than one spelling")
	}
	return nil
}

// route returns where a request may be passed on to. Who may use what is judged as in a
// discovery. The error is a ProblemDetails.
func (r *relay) route(ctx context.Context, req *http.Request, who consumer, client netip.Addr) (*indirectRequest, error) {
	values, err := sbi.DelegatedQuery(req.Header)
	if err != nil {
		return nil, err
	}
	root, err := sbi.ParseAPIRoot(req.Header)
	if err != nil {
		return nil, err
	}
	bound, err := sbi.ParseBinding(req.Header)
	if err != nil {
		return nil, err
	}
	q, err := r.query(values, req.Header, client)
	if err != nil {
		return nil, err
	}
	if q.Requester.InstanceID != "" && r.knows(client) {
		who.name = strings.ToLower(q.Requester.InstanceID)
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	e, now := &indirectRequest{who: who, client: client, from: q.Requester.NFType, of: q.TargetNFType}, r.front.now()
	if root.Scheme != "" {
		if err := r.named(e, root, service, q, client, req.Header[sbi.CallbackHeader] != nil); err != nil {
			return nil, err
		}
	}
	if len(e.tries) == 0 && bound.Level != "" {
		if e.tries, err = r.bound(bound, service, q); err != nil {
			return nil, err
		}
	}
	e.tries = e.tries[:min(len(e.tries), mostTries)]
	if q.TargetNFType == "" {
		switch {
		case len(e.tries) > 0:
		case root.Scheme == "" && bound.Level == "":
			return nil, sbi.Problem(http.StatusBadRequest, sbi.MandatoryMemberMissing, "the request names no target: want 3gpp-Sbi-Discovery-target-nf-type beside its other headers")
		default:
			return nil, sbi.Problem(http.StatusGatewayTimeout, sbi.TargetNotReachable, "nobody who is registered is at the target that the request names")
		}
		if there := r.front.proxy.index.Load().doors[e.tries[0].at.Addr]; len(there) > 0 && req.Header[sbi.CallbackHeader] == nil {
			r.front.proxy.direct.partner(client, there[0].profile.NFType, who.at)
		}
		return e, nil
	}
	var ids map[string]bool
	if len(e.tries) == 0 { // others are for the case that it cannot be reached
		if ids, err = r.finder.ask(ctx, q, values, req); err != nil {
			return nil, err
		}
	}
	list, err := r.finder.fitting(q, ids, service)
	if err != nil && len(e.tries) == 0 {
		return nil, err
	}
	policy, list := r.policy(q.TargetNFType), r.front.proxy.strain.relieve(list, now, wanted{q.SNSSAIs, values.Get("dnn")})
	list = r.weigh(list, policy, now)
	if err := r.overloaded(list, policy); err != nil && len(e.tries) == 0 {
		return nil, err
	}
	for _, x := range r.chooser.order(list, policy, who, now) {
		if len(e.tries) < mostTries && !slices.ContainsFunc(e.tries, func(o candidate) bool { return o.at.Addr == x.at.Addr }) {
			e.tries = append(e.tries, x)
		}
	}
	r.front.proxy.direct.partner(client, q.TargetNFType, who.at)
	return e, nil
}

// query returns the delegated discovery of a request, completed with its sender. The
// target type is empty if the request delegates none.
func (r *relay) query(values url.Values, h http.Header, client netip.Addr) (*sbi.Query, error) {
	p := r.front.proxy
	if values.Get("requester-nf-type") == "" {
		p.mu.Lock()
		types, said := typesOf(p.consumersOf(client)), sbi.ClientType(h)
		if p.mu.Unlock(); len(types) == 1 && types[0] != sbi.SCP {
			said = types[0]
		}
		values.Set("requester-nf-type", string(said))
	}
	discovers := values.Get("target-nf-type") != ""
	if !discovers {
		values.Set("target-nf-type", "any")
		if values.Get("requester-nf-type") == "" {
			values.Set("requester-nf-type", "unknown")
		}
	}
	q, err := sbi.ParseQuery(values)
	if err != nil {
		problem := sbi.ProblemOf(err)
		for i := range problem.InvalidParams {
			name := &problem.InvalidParams[i].Param
			*name = strings.Replace(*name, "query ", "header 3gpp-Sbi-Discovery-", 1)
		}
		return nil, problem
	}
	if err := p.admit(q, client); err != nil {
		return nil, err
	}
	if !discovers {
		q.TargetNFType = ""
	}
	return q, nil
}

// knows reports whether the instance that a client names as the requester is to be
// believed: the client is registered, or relays for others.
func (r *relay) knows(client netip.Addr) bool {
	p := r.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.consumersOf(client)) > 0 || p.relays(client)
}

func (r *relay) policy(of sbi.NFType) *api.ScpPolicy {
	p := r.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policyOf(of)
}

// weigh returns candidates by the weights of an app, if the policy has one choose.
func (r *relay) weigh(list []candidate, policy *api.ScpPolicy, now int64) []candidate {
	p := r.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.weights.weigh(list, policy, now)
}

// overloaded returns the answer 503 if no candidate may take the request: each has reached
// the load of a policy, or has asked for fewer requests and this one is refused for that.
func (r *relay) overloaded(list []candidate, policy *api.ScpPolicy) error {
	limit := r.front.proxy.overloadOf(policy)
	loaded := func(x candidate) bool { return limit != 0 && x.load >= limit }
	if len(list) == 0 || slices.ContainsFunc(list, func(x candidate) bool { return !loaded(x) && !x.shed }) {
		return nil
	}
	r.front.proxy.count.shed.Add(1)
	problem := sbi.Problem(http.StatusServiceUnavailable, sbi.NFServiceCongestion, "all that serve it are overloaded")
	problem.RetryAfter = retryOverload
	return problem
}

// named adds the producer at the API root of a request: one that is registered there or,
// for a callback, any at that address. The API root of an end point selects its type.
func (r *relay) named(e *indirectRequest, root sbi.APIRoot, service string, q *sbi.Query, client netip.Addr, callback bool) error {
	p := r.front.proxy
	x, cfg := p.index.Load(), p.cfg.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	if root.Host != "" {
		list, err := r.among(x.names[root.Host], q, service)
		e.tries = slices.DeleteFunc(list, func(c candidate) bool { return c.at.Addr.Port() != root.Addr.Port() || c.at.Scheme != root.Scheme })
		e.named = len(e.tries) > 0
		return err
	}
	if of := x.vips[root.Addr]; of != "" && q.TargetNFType == "" {
		q.TargetNFType, e.of = of, of
		return nil
	}
	there := x.doors[root.Addr]
	if len(there) == 0 && callback {
		there = x.nfs[root.Addr.Addr()]
	}
	if len(there) == 0 || !dialable(cfg, root.Addr) {
		return nil
	}
	may := slices.ContainsFunc(there, func(nf *producer) bool { return nf.class == "" || nf.allows(&q.Requester) })
	if !may && !(callback && p.direct.callsBack(x.nfs[client], root.Addr.Addr())) {
		return p.forbid(fmt.Sprintf("%v may not use %v", client, root.Addr))
	}
	nf := there[0]
	for _, o := range there {
		if state, _ := o.serves(r.front.now(), cfg.Margin); state == "" {
			nf = o
		}
	}
	e.tries = []candidate{{id: nf.id(), at: sbi.EndPoint{Scheme: root.Scheme, Addr: root.Addr, Prefix: root.Prefix}, weight: 1}}
	e.named = true
	return nil
}

// among returns the candidates among producers of any types. It is called with the
// proxy's mu held.
func (r *relay) among(all []*producer, q *sbi.Query, service string) (list []candidate, err error) {
	for _, nf := range all {
		one := &sbi.Query{TargetNFType: nf.profile.NFType, Requester: q.Requester, TargetInstanceID: nf.id()}
		found, _, refused := candidates(r.front.proxy, []*producer{nf}, one, service, r.front.now())
		if list = append(list, found...); refused != nil {
			err = refused
		}
	}
	if len(list) > 0 {
		err = nil
	}
	return list, err
}

// bound returns the candidates that a binding names: the instance, then the others of
// its set.
func (r *relay) bound(b sbi.Binding, service string, q *sbi.Query) ([]candidate, error) {
	p := r.front.proxy
	x := p.index.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*producer
	if nf := p.book[strings.ToLower(b.Instance)]; nf != nil {
		all = append(all, nf)
	}
	first := len(all)
	for _, set := range []string{b.ServiceSet, b.Set} {
		for _, nf := range x.sets[set] {
			if state, _ := nf.serves(r.front.now(), p.cfg.Load().Margin); state == "" && !slices.Contains(all, nf) {
				all = append(all, nf)
			}
		}
	}
	list, err := r.among(all, q, service)
	if first == 0 && len(list) > 0 {
		list = r.chooser.order(list, &api.ScpPolicy{}, consumer{}, r.front.now())
	}
	return list[:min(len(list), mostTries)], err
}
