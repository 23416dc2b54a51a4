package scp

import (
	"bytes"
	"encoding/json"
	"maps"
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
	for _, name := range slices.Sorted(maps.Keys(s.told.Unknown)) {
		key, _ := json.Marshal(name) // a string
		body = append(append(append(append(body, ','), key...), ':'), s.told.Unknown[name]...)
	}
	body = append(append(append(body, `,"nfInstances":`...), s.found...), '}') // found is JSON
	return &answer{body: body, etag: s.etag, age: age, vips: s.vips}, nil
}

// offer is what a discovery finds.
type offer struct {
	texts [][]byte // in JSON
	vips  []string // that it names
}

func (o *offer) add(text any) error {
	b, err := json.Marshal(text)
	o.texts = append(o.texts, b)
	return err
}

// find returns the profiles that a discovery finds: one for each group that consumers
// reach by an end point, and those of other instances as the NRF has told of them. It
// is called with mu held.
func (p *proxy) find(q *sbi.Query, s *search, now int64) (found [][]byte, vips []string, err error) {
	if e := p.endpointByID(q.TargetInstanceID); e != nil {
		whole := *q
		whole.TargetInstanceID = ""
		q = &whole
	}
	fit, forbidden := p.fitting(q, now)
	all := &offer{}
	stood := map[string]bool{} // instances for which an end point stands
	if q.TargetInstanceID == "" {
		if err := p.stand(q, fit, all, stood, now); err != nil {
			return nil, nil, err
		}
	}
	if err := p.handOn(q, s, fit, all, stood); err != nil {
		return nil, nil, err
	}
	if forbidden != nil && len(all.texts) == 0 {
		return nil, nil, forbidden
	}
	if q.Limit > 0 && len(all.texts) > q.Limit {
		all.texts = all.texts[:q.Limit]
	}
	return all.texts, all.vips, nil
}

// fitting returns the instances in the book that a discovery finds, in order. It is
// called with mu held.
func (p *proxy) fitting(q *sbi.Query, now int64) ([]sbi.NFProfile, error) {
	var list []*sbi.NFProfile
	margin := p.cfg.Load().Margin
	for _, x := range p.byType[q.TargetNFType] {
		if state, _ := x.serves(now, margin); state == "" || x.drained {
			list = append(list, x.profile)
		}
	}
	all := *q
	all.Limit = 0
	return sbi.Search(list, &all)
}

// stand adds the end points that stand for instances which fit a discovery, and notes
// for which. It is called with mu held.
func (p *proxy) stand(q *sbi.Query, fit []sbi.NFProfile, all *offer, stood map[string]bool, now int64) error {
	byClass := map[string][]sbi.NFProfile{}
	near := false
	for i := range fit {
		x := p.book[strings.ToLower(fit[i].NFInstanceID)]
		if x.whyNot == "" {
			byClass[x.class] = append(byClass[x.class], fit[i])
		}
		near = near || q.PreferredLocality != "" && fit[i].Locality == q.PreferredLocality
	}
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		g := group{Type: q.TargetNFType, Class: class, Slice: sliceOf(q.SNSSAIs)}
		if near {
			g.Locality = q.PreferredLocality
		}
		members := p.members(g)
		e := p.endpointOf(g, members, now)
		one, names, ok := e.profile(byClass[class], members)
		if !ok || p.anyRefused(names) {
			continue // they are reached by their own addresses, as without the proxy
		}
		for i := range byClass[class] {
			stood[strings.ToLower(byClass[class][i].NFInstanceID)] = true
		}
		all.vips = append(all.vips, names...)
		if err := all.add(one); err != nil {
			return err
		}
	}
	return nil
}

// handOn adds the instances for which no end point stands: as the NRF has told of
// them, or, if it did not, as they have registered. Those that do not fit are left
// out, as are those that get no new connections; of those that cannot be read, the NRF
// says whether they fit. It is called with mu held.
func (p *proxy) handOn(q *sbi.Query, s *search, fit []sbi.NFProfile, all *offer, stood map[string]bool) error {
	fits := map[string]*sbi.NFProfile{}
	for i := range fit {
		fits[strings.ToLower(fit[i].NFInstanceID)] = &fit[i]
	}
	for _, told := range s.told.Told {
		if stood[told.ID] || fits[told.ID] == nil && !p.odd(told, q) {
			continue
		}
		delete(fits, told.ID)
		all.texts = append(all.texts, told.Text)
	}
	if q.TargetInstanceID != "" && s.failed == nil && s.told.Unknown != nil {
		return nil // the NRF knows better
	}
	for i := range fit {
		if id := strings.ToLower(fit[i].NFInstanceID); !stood[id] && fits[id] != nil {
			if err := all.add(fits[id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// odd reports whether the NRF is to say whether an instance fits: one that cannot be
// read here and that the requester may use as far as that can be read, or one that
// is not in the book and is not at the proxy's own addresses. It is called with mu
// held.
func (p *proxy) odd(told sbi.Instance, q *sbi.Query) bool {
	if x := p.book[told.ID]; x != nil {
		return x.unclear && x.allows(&q.Requester, q.ServiceNames...)
	}
	read, err := sbi.Read(told.Text)
	return err == nil && !slices.ContainsFunc(read.Addresses(), p.cfg.Load().ours)
}

// stands reports whether consumers know an end point by an instance id.
func (p *proxy) stands(id string) bool {
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
		if strings.EqualFold(e.Group.instance(), id) {
			return e
		}
	}
	return nil
}
