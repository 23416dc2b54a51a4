package sbi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A SearchResult answers a discovery.
type SearchResult struct {
	ValidityPeriod int         `json:"validityPeriod"` // seconds
	NFInstances    []NFProfile `json:"nfInstances"`
	IgnoredQuery   []string    `json:"ignoredQueryParams,omitzero"`
	Unknown        Unknown
	// Raw are the instances as the NRF has written them; ReadResult sets it.
	Raw []Instance
}

// An Instance is a profile as it was written, with the id that it has, in lower case.
type Instance struct {
	ID   string
	Text json.RawMessage
}

// ReadResult reads a search result. It does not read the profiles of the instances,
// which are in Raw and may be anything.
func ReadResult(text []byte) (*SearchResult, error) {
	r := &SearchResult{}
	if err := json.Unmarshal(text, (*map[string]json.RawMessage)(&r.Unknown)); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(r.Unknown["validityPeriod"], &r.ValidityPeriod) // one that cannot be read is short
	list, ok := r.Unknown["nfInstances"]
	if !ok && r.Unknown["nfInstanceList"] == nil {
		return nil, errors.New("nfInstances is missing")
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(list, &texts); ok && err != nil {
		return nil, fmt.Errorf("nfInstances: %w", err)
	}
	for _, text := range texts {
		var of map[string]json.RawMessage
		if err := json.Unmarshal(text, &of); err != nil {
			return nil, fmt.Errorf("nfInstances: %w", err)
		}
		var id string
		_ = json.Unmarshal(of["nfInstanceId"], &id) // one without an id is handed on, too
		r.Raw = append(r.Raw, Instance{strings.ToLower(id), text})
	}
	delete(r.Unknown, "validityPeriod")
	delete(r.Unknown, "nfInstances")
	return r, nil
}

func (r *SearchResult) UnmarshalJSON(b []byte) error { return decode(b, r) }
func (r SearchResult) MarshalJSON() ([]byte, error)  { return encode(r) }

// Search returns the profiles that a query finds, the preferred ones first, with
// those services only that it asks for and its requester may use, and without
// who else may. If something matches and the requester may use none of it, the
// error is the ProblemDetails 403.
func Search(profiles []*NFProfile, q *Query) ([]NFProfile, error) {
	found := []NFProfile{}
	forbidden := false
	for _, p := range profiles {
		if !q.matches(p) {
			continue
		}
		services, some := q.services(p)
		switch {
		case !some && len(q.SNSSAIs) > 0 && len(p.NFServices)+len(p.NFServiceList) > 0: // none serves the slice
		case len(services) > 0 || !some && len(q.ServiceNames) == 0 && q.TargetServiceSetID == "" && p.Allows(&q.Requester, nil):
			found = append(found, p.public(services))
		case some || len(q.ServiceNames) == 0 && q.TargetServiceSetID == "":
			forbidden = true
		}
	}
	if len(found) == 0 && forbidden {
		return nil, Problem(http.StatusForbidden, RequesterNotAllowed, "the requester may not use what it asks for")
	}
	slices.SortStableFunc(found, func(a, b NFProfile) int {
		if near := q.near(&a) - q.near(&b); near != 0 {
			return near
		}
		if order := firstOf(0, a.Priority) - firstOf(0, b.Priority); order != 0 {
			return order
		}
		return strings.Compare(a.NFInstanceID, b.NFInstanceID)
	})
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, nil
}

// near is 0 for a profile of the preferred locality, else 1.
func (q *Query) near(p *NFProfile) int {
	if q.PreferredLocality != "" && p.Locality == q.PreferredLocality {
		return 0
	}
	return 1
}

// matches reports whether a profile, whatever its services, is one of those that
// the query asks for.
func (q *Query) matches(p *NFProfile) bool {
	is := func(id string) bool { return strings.EqualFold(id, p.NFInstanceID) }
	switch {
	case p.NFType != q.TargetNFType, p.NFStatus != Registered:
	case q.TargetInstanceID != "" && !is(q.TargetInstanceID):
	case len(q.TargetInstanceIDs) > 0 && !slices.ContainsFunc(q.TargetInstanceIDs, is):
	case q.TargetFQDN != "" && !strings.EqualFold(q.TargetFQDN, p.FQDN):
	case q.TargetSetID != "" && !slices.Contains(p.NFSetIDList, q.TargetSetID):
	case len(q.TargetPLMNs) > 0 && len(p.PLMNList) > 0 && !common(p.PLMNList, q.TargetPLMNs, PlmnID.is):
	case !q.slices(p.SNSSAIs, p.PerPLMNSNSSAIs):
	default:
		return true
	}
	return false
}

// slices reports whether one of the slices that the query asks for is served; a query
// may ask for none. A list for each network takes precedence over the list for all
// (TS 29.510, 6.1.6.2.2).
func (q *Query) slices(served []Snssai, per []PlmnSnssai) bool {
	if len(per) == 0 {
		return len(q.SNSSAIs) == 0 || len(served) == 0 || common(served, q.SNSSAIs, Snssai.has)
	}
	return len(q.SNSSAIs) == 0 || slices.ContainsFunc(per, func(x PlmnSnssai) bool {
		return (len(q.TargetPLMNs) == 0 || slices.ContainsFunc(q.TargetPLMNs, x.PLMNID.is)) && common(x.SNSSAIs, q.SNSSAIs, Snssai.has)
	})
}

// services returns the services of a profile that a query asks for and its
// requester may use, and whether there are any that it may or may not.
func (q *Query) services(p *NFProfile) (allowed []NFService, some bool) {
	for _, s := range p.Services() {
		if s.NFServiceStatus != Registered ||
			len(q.ServiceNames) > 0 && !slices.Contains(q.ServiceNames, s.ServiceName) ||
			q.TargetServiceSetID != "" && !slices.Contains(s.NFServiceSetIDList, q.TargetServiceSetID) ||
			!q.slices(s.SNSSAIs, s.PerPLMNSNSSAIs) {
			continue
		}
		some = true
		if p.Allows(&q.Requester, &s) {
			allowed = append(allowed, s)
		}
	}
	return allowed, some
}

// Allows reports whether a requester may use a service of an instance, or, if
// that is nil, the instance. What a service says counts instead of what its
// profile says. A requester that does not say of which network it is is of the
// NRF's own; one that does not say its slices, or its name, is not allowed where
// these are restricted.
func (p *NFProfile) Allows(r *Requester, s *NFService) bool {
	types, plmns, nssais, domains := p.AllowedNFTypes, p.AllowedPLMNs, p.AllowedNSSAIs, p.AllowedNFDomains
	if s != nil {
		types, plmns = either(s.AllowedNFTypes, types), either(s.AllowedPLMNs, plmns)
		nssais, domains = either(s.AllowedNSSAIs, nssais), either(s.AllowedNFDomains, domains)
	}
	switch {
	case len(types) > 0 && !slices.Contains(types, r.NFType):
	case len(plmns) > 0 && len(r.PLMNs) > 0 && !common(plmns, r.PLMNs, PlmnID.is):
	case len(nssais) > 0 && !common(nssais, r.SNSSAIs, Snssai.has):
	case len(domains) > 0 && !slices.ContainsFunc(domains, func(d string) bool {
		form, err := domainForm(d)
		return err == nil && r.FQDN != "" && form.MatchString(r.FQDN)
	}):
	default:
		return true
	}
	return false
}

func either[T any](first, second []T) []T {
	if len(first) > 0 {
		return first
	}
	return second
}

// common reports whether two lists have something in common.
func common[T any](a, b []T, is func(T, T) bool) bool {
	return slices.ContainsFunc(a, func(x T) bool { return slices.ContainsFunc(b, func(y T) bool { return is(x, y) }) })
}

func (p PlmnID) is(o PlmnID) bool { return p.MCC == o.MCC && p.MNC == o.MNC }

// has reports whether s is the slice o, or slices of which o is one.
func (s Snssai) has(o Snssai) bool {
	mine, theirs := sdOf(s.SD), sdOf(o.SD)
	return s.SST == o.SST && (s.WildcardSD || mine == theirs || slices.ContainsFunc(s.SDRanges, func(r SDRange) bool {
		return theirs != "" && sixDigits(r.Start) <= theirs && theirs <= sixDigits(r.End)
	}))
}

// sdOf returns a slice differentiator in lower case; ffffff is that of a slice
// without one (TS 23.003, 28.4.2).
func sdOf(sd string) string {
	if sd = sixDigits(sd); sd == "ffffff" {
		return ""
	}
	return sd
}

// sixDigits returns a slice differentiator in lower case, with its leading zeros, which
// some implementations leave out.
func sixDigits(sd string) string {
	if n := len(sd); n > 0 && n < 6 {
		sd = "000000"[n:] + sd
	}
	return strings.ToLower(sd)
}

// public returns what others may know of a profile, with some of its services.
// Who is allowed is the NRF's and the instance's affair.
func (p *NFProfile) public(services []NFService) NFProfile {
	o := *p
	o.AllowedNFTypes, o.AllowedPLMNs, o.AllowedNSSAIs, o.AllowedNFDomains = nil, nil, nil, nil
	o.NFServices, o.NFServiceList = nil, nil
	for _, s := range services {
		s.AllowedNFTypes, s.AllowedPLMNs, s.AllowedNSSAIs, s.AllowedNFDomains = nil, nil, nil, nil
		if _, ok := p.NFServiceList[s.ServiceInstanceID]; !ok {
			o.NFServices = append(o.NFServices, s)
			continue
		}
		if o.NFServiceList == nil {
			o.NFServiceList = map[string]NFService{}
		}
		o.NFServiceList[s.ServiceInstanceID] = s
	}
	return o
}

// Public returns what others may know of a profile: all but who is allowed.
func (p *NFProfile) Public() NFProfile { return p.public(p.Services()) }
