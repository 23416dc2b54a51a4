package scp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// search is a discovery that has been asked for. The proxy's mu guards it.
type search struct {
	until   int64 // answered from what is known, in nanoseconds
	version uint64
	found   []byte // nfInstances, of that version
	vips    []string
	etag    string
	failed  error // why the NRF was last of no help, nil if it was
}

// mostSearches bounds the searches that are remembered.
const mostSearches = 4096

// answer is the answer of a discovery.
type answer struct {
	body []byte
	etag string
	age  int      // seconds for which it holds
	vips []string // that must be made before consumers use it
}

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
		if !slices.Contains(harmless, name) && !strings.HasPrefix(name, "preferred-") {
			return name
		}
	}
	return ""
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
			return nil
		}
	}
	return p.forbid("requester-nf-type: registered from this address, " + from.String() + ", is no " + string(q.Requester.NFType))
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

// discover answers a discovery: from what is known if the NRF has been asked
// within the validity period, or does not answer.
func (p *proxy) discover(ctx context.Context, q *sbi.Query, nrf repository, clock func() int64) (*answer, error) {
	q.ServiceNames = slices.Clone(q.ServiceNames)
	k := key(q)
	p.mu.Lock()
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
		if s = (&search{}); len(p.searches) >= mostSearches {
			clear(p.searches)
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
	s.failed = nil
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
	for i := range result.NFInstances {
		found[strings.ToLower(result.NFInstances[i].NFInstanceID)] = true
	}
	p.mu.Lock()
	var unknown, missing []string
	for i := range result.NFInstances {
		id := strings.ToLower(result.NFInstances[i].NFInstanceID)
		if x := p.book[id]; x == nil || x.heard == 0 {
			unknown = append(unknown, id)
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
	x, err := newProducer(text, netip.Addr{})
	if err == nil && x.id() == id {
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
	ids, err := nrf.instances(asking)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		p.failed(err)
		return false
	}
	p.said("ok")
	listed := map[string]bool{}
	p.mu.Lock()
	var wanted []string
	for _, id := range ids {
		listed[id] = true
		if p.book[id] == nil && len(p.book)+len(wanted) < p.cfg.Load().Instances {
			wanted = append(wanted, id)
		}
	}
	for id, x := range p.book {
		if x.heard == 0 && !listed[id] {
			wanted = append(wanted, id)
		}
	}
	p.mu.Unlock()
	for _, id := range wanted {
		one, stop := context.WithTimeout(ctx, p.cfg.Load().NRFTimeout)
		_ = p.look(one, id, nrf.profile) // the next survey asks again
		stop()
	}
	return true
}

// answer returns the answer of a discovery from what is known. It is called with
// mu held.
func (p *proxy) answer(q *sbi.Query, s *search, now int64) (*answer, error) {
	if s.found == nil || s.version != p.version {
		found, vips, err := p.find(q, now)
		if err != nil {
			p.count.forbidden.Add(1)
			return nil, err
		}
		text, err := json.Marshal(found)
		if err != nil {
			return nil, err
		}
		s.found, s.vips, s.version, s.etag = text, vips, p.version, sbi.ETag(text)
	}
	age := max(1, int(time.Duration(s.until-now)/time.Second))
	body := make([]byte, 0, len(s.found)+64)
	body = strconv.AppendInt(append(body, `{"validityPeriod":`...), int64(age), 10)
	body = append(append(append(body, `,"nfInstances":`...), s.found...), '}') // found is JSON
	return &answer{body: body, etag: s.etag, age: age, vips: s.vips}, nil
}

// find returns the profiles that a discovery finds: one for each group, or that of
// the instance which it names. It is called with mu held.
func (p *proxy) find(q *sbi.Query, now int64) (found []sbi.NFProfile, vips []string, err error) {
	if e := p.endpointByID(q.TargetInstanceID); e != nil {
		whole := *q
		whole.TargetInstanceID = ""
		q = &whole
	}
	var list []*sbi.NFProfile
	margin := p.cfg.Load().Margin
	for _, x := range p.byType[q.TargetNFType] {
		if state, _ := x.serves(now, margin); state == "" || x.drained {
			list = append(list, x.profile)
		}
	}
	all := *q
	all.Limit = 0
	single, err := sbi.Search(list, &all)
	if err != nil || q.TargetInstanceID != "" {
		return single, nil, err
	}
	byClass := map[string][]sbi.NFProfile{}
	for i := range single {
		class := p.book[strings.ToLower(single[i].NFInstanceID)].class
		byClass[class] = append(byClass[class], single[i])
	}
	found = []sbi.NFProfile{}
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		g := group{Type: q.TargetNFType, Class: class, Slice: sliceOf(q.SNSSAIs)}
		if slices.ContainsFunc(list, func(x *sbi.NFProfile) bool { return q.PreferredLocality != "" && x.Locality == q.PreferredLocality }) {
			g.Locality = q.PreferredLocality
		}
		members := p.members(g)
		e := p.endpointOf(g, members, now)
		one, names, ok := e.profile(byClass[class], members)
		if !ok || p.anyRefused(names) {
			found = append(found, byClass[class]...) // by their own addresses, as without the proxy
			continue
		}
		found, vips = append(found, one), append(vips, names...)
	}
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, vips, nil
}

// endpointByID returns the endpoint that consumers know by an instance id, nil if
// there is none. It is called with mu held.
func (p *proxy) endpointByID(id string) *endpoint {
	if id == "" {
		return nil
	}
	for _, e := range p.endpoints {
		if strings.EqualFold(e.Group.instance(), id) {
			return e
		}
	}
	return nil
}

// profile returns the profile by which consumers know a group, and the VIPs that it
// names, from what a discovery has found of it. It is not ok if the group cannot be
// reached as one.
func (e *endpoint) profile(found []sbi.NFProfile, members []member) (one sbi.NFProfile, vips []string, ok bool) {
	if e == nil {
		return one, nil, false
	}
	first := &found[0]
	one = sbi.NFProfile{
		NFInstanceID: e.Group.instance(), NFType: e.Group.Type, NFStatus: sbi.Registered, PLMNList: first.PLMNList, SNSSAIs: first.SNSSAIs,
		FQDN: commonName(e.Group.Type, found), Locality: e.Group.Locality,
	}
	capacity, load, foremost := 0, 0, 1<<16
	services := map[string]sbi.NFService{}
	for i := range found {
		c, l := numberOf(found[i].Capacity, sbi.DefaultCapacity), numberOf(found[i].Load, 0)
		capacity, load, foremost = capacity+c, load+c*l, min(foremost, numberOf(found[i].Priority, 0))
		for _, s := range found[i].Services() {
			if was, there := services[s.ServiceName]; there {
				s.Versions = slices.DeleteFunc(slices.Clone(was.Versions), func(v sbi.Version) bool {
					return !slices.ContainsFunc(s.Versions, func(o sbi.Version) bool { return o.APIVersionInURI == v.APIVersionInURI })
				})
				if s.APIPrefix != was.APIPrefix || len(s.Versions) == 0 {
					return one, nil, false
				}
			}
			services[s.ServiceName] = s
		}
	}
	load = load / max(1, capacity)
	capacity = min(capacity, 65535)
	one.Capacity, one.Load, one.Priority = &capacity, &load, &foremost
	for _, a := range e.Addrs {
		if a.Is4() {
			one.IPv4Addresses = append(one.IPv4Addresses, a.String())
		} else {
			one.IPv6Addresses = append(one.IPv6Addresses, a.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		d := e.door(name, members)
		if d == nil {
			continue // it is known by name only, not by an address
		}
		s := sbi.NFService{
			ServiceInstanceID: name, ServiceName: name, Versions: services[name].Versions, Scheme: d.Scheme, NFServiceStatus: sbi.Registered,
			FQDN: one.FQDN, APIPrefix: services[name].APIPrefix, OAuth2Required: services[name].OAuth2Required,
		}
		port := int(d.Port)
		for _, a := range e.Addrs {
			point := sbi.IPEndPoint{Transport: "TCP", Port: &port}
			if a.Is4() {
				point.IPv4Address = a.String()
			} else {
				point.IPv6Address = a.String()
			}
			s.IPEndPoints = append(s.IPEndPoints, point)
			if v := vipName(e, a, *d); !slices.Contains(vips, v) {
				vips = append(vips, v)
			}
		}
		one.NFServices = append(one.NFServices, s)
	}
	return one, vips, len(one.NFServices) > 0
}

// commonName returns the name of a type in the domain that all instances share,
// such as udm.5gc.example.org; empty if they share none.
func commonName(t sbi.NFType, found []sbi.NFProfile) string {
	domain := ""
	for i := range found {
		_, of, _ := strings.Cut(found[i].FQDN, ".")
		if of == "" || i > 0 && of != domain {
			return ""
		}
		domain = of
	}
	name := strings.ToLower(string(t)) + "." + domain
	if !sbi.ValidFQDN(name) {
		return ""
	}
	return name
}

func numberOf(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}
