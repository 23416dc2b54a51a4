package scp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// answer is the answer of a discovery.
type answer struct {
	body []byte
	etag string
	age  int      // seconds for which it holds
	vips []string // that must be made before consumers use it
}

// answer returns the answer of a discovery from what is known. It is called with
// mu held.
func (p *proxy) answer(q *sbi.Query, s *search, now int64) (*answer, error) {
	if s.found == nil || s.version != p.version {
		found, vips, err := p.find(q, s, now)
		if err != nil {
			p.count.forbidden.Add(1)
			return nil, err
		}
		text := append(append([]byte{'['}, bytes.Join(found, []byte{','})...), ']')
		s.found, s.vips, s.version, s.etag = text, vips, p.version, sbi.ETag(text)
	}
	age := max(1, int(time.Duration(s.until-now)/time.Second))
	body := make([]byte, 0, len(s.found)+64)
	body = strconv.AppendInt(append(body, `{"validityPeriod":`...), int64(age), 10)
	for _, name := range slices.Sorted(maps.Keys(s.result.Unknown)) {
		key, _ := json.Marshal(name) // a string
		body = append(append(append(append(body, ','), key...), ':'), s.result.Unknown[name]...)
	}
	body = append(append(append(body, `,"nfInstances":`...), s.found...), '}') // found is JSON
	return &answer{body: body, etag: s.etag, age: age, vips: s.vips}, nil
}

// find returns the profiles that a discovery finds: one for each group that consumers
// reach by an end point, and those of other instances as the NRF has answered. It is
// called with mu held.
func (p *proxy) find(q *sbi.Query, s *search, now int64) (found [][]byte, vips []string, err error) {
	if e := p.endpointByID(q.TargetInstanceID); e != nil {
		whole := *q
		whole.TargetInstanceID = ""
		q = &whole
	}
	f := &finding{proxy: p, query: q, now: now, represented: map[string]bool{}}
	forbidden := f.fit()
	if q.TargetInstanceID == "" {
		err = f.addEndpoints(s.from)
	}
	if err == nil {
		err = f.handOn(s)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case forbidden != nil && len(f.texts) == 0:
		return nil, nil, forbidden
	case q.Limit > 0 && len(f.texts) > q.Limit:
		f.texts = f.texts[:q.Limit]
	}
	return f.texts, f.vips, nil
}

// finding is what a discovery has found. It is made with the proxy's mu held.
type finding struct {
	proxy       *proxy
	query       *sbi.Query
	now         int64
	any         bool            // without regard to who may use them: the query is for others
	fits        []sbi.NFProfile // of the instances in the book that fit, in order
	represented map[string]bool // instances for which an end point stands
	texts       [][]byte        // in JSON
	vips        []string        // that these name
}

func (f *finding) add(profile sbi.NFProfile) error {
	text, err := json.Marshal(profile)
	f.texts = append(f.texts, text)
	return err
}

// fit finds the instances in the book that fit. The error says that the requester may
// use none of them.
func (f *finding) fit() (forbidden error) {
	var list []*sbi.NFProfile
	margin := f.proxy.cfg.Load().Margin
	for _, x := range f.proxy.byType[f.query.TargetNFType] {
		if state, _ := x.serves(f.now, margin); state != "" && !x.drained {
			continue
		}
		if f.any {
			list = append(list, x.open)
		} else {
			list = append(list, x.profile)
		}
	}
	all := *f.query
	all.Limit = 0
	f.fits, forbidden = sbi.Search(list, &all)
	return forbidden
}

// addEndpoints adds the end points that stand for instances which fit, and by which a
// client can reach these.
func (f *finding) addEndpoints(from netip.Addr) error {
	p, q := f.proxy, f.query
	kinds := map[group][]sbi.NFProfile{} // that cannot be told apart
	near := ""
	for _, fits := range f.fits {
		x := p.book[strings.ToLower(fits.NFInstanceID)]
		if x.whyNot == "" {
			g := group{Type: q.TargetNFType, Class: x.class, Slice: sliceOf(q.SNSSAIs), Form: x.form}
			kinds[g] = append(kinds[g], fits)
		}
		if fits.Locality == q.PreferredLocality {
			near = q.PreferredLocality
		}
	}
	order := func(a, b group) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Form, b.Form)) }
	for _, g := range slices.SortedFunc(maps.Keys(kinds), order) {
		found := kinds[g]
		g.Locality = near
		members := p.members(g)
		if besideOne(p, from, members) {
			continue
		}
		e := p.endpointOf(g, members, f.now)
		one, names, whyNot := e.profile(found, members)
		if p.apart.set(g, whyNot); whyNot != "" || p.refused.any(names) {
			continue // they are reached by their own addresses, as without the proxy
		}
		for _, x := range found {
			f.represented[strings.ToLower(x.NFInstanceID)] = true
		}
		f.vips = append(f.vips, names...)
		if err := f.add(one); err != nil {
			return err
		}
	}
	return nil
}

// handOn adds the instances without an end point: as the NRF has
// answered, or, if it did not find them, as they have registered. Those that do not fit are left
// out, as are those that get no new connections; one that is drained is found if there
// is nobody else.
func (f *finding) handOn(s *search) error {
	before := len(f.texts)
	defer func() { f.proxy.count.handedOn.Add(float64(len(f.texts) - before)) }()
	drained := func(id string) bool { x := f.proxy.book[strings.ToLower(id)]; return x != nil && x.drained }
	others := slices.ContainsFunc(f.fits, func(x sbi.NFProfile) bool { return !drained(x.NFInstanceID) })
	own := map[string]bool{} // that are to be added
	for _, x := range f.fits {
		if id := strings.ToLower(x.NFInstanceID); !f.represented[id] && !(others && drained(id)) {
			own[id] = true
		}
	}
	for _, x := range s.result.Raw {
		if own[x.ID] || !f.represented[x.ID] && !(others && drained(x.ID)) && f.trusts(x) {
			f.texts = append(f.texts, x.Text)
			delete(own, x.ID)
		}
	}
	if f.query.TargetInstanceID != "" && s.failed == nil && s.result.Unknown != nil {
		return nil // the NRF knows better
	}
	for _, x := range f.fits {
		if own[strings.ToLower(x.NFInstanceID)] {
			if err := f.add(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// trusts reports whether an instance is found because the NRF has found it: its profile
// cannot be read in full, and what can be read allows the requester; or it is not known,
// and not at the proxy's own addresses. An instance that has ended is found by its id only.
func (f *finding) trusts(raw sbi.Instance) bool {
	p, q := f.proxy, f.query
	if x := p.instance(raw.ID); x != nil {
		ended := p.book[raw.ID] == nil
		return (x.unclear || ended) && (!ended || q.TargetInstanceID != "") && x.allows(&q.Requester, q.ServiceNames...)
	}
	read, err := sbi.Read(raw.Text)
	return err == nil && !slices.ContainsFunc(read.Addresses(), p.cfg.Load().ours)
}

// hasEndpoint reports whether consumers know an end point by an instance id.
func (p *proxy) hasEndpoint(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endpointByID(id) != nil
}

// endpointByID returns the endpoint that consumers know by an instance id, nil if
// there is none. It is called with mu held.
func (p *proxy) endpointByID(id string) *endpoint {
	if id == "" {
		return nil
	}
	for _, e := range p.endpoints {
		if strings.EqualFold(e.instance(), id) {
			return e
		}
	}
	return nil
}
