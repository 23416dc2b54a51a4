package scp

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/sbi"
)

// endpointRef names the end point by which consumers reach an instance.
type endpointRef struct {
	of group
	id string // by which consumers know it
}

// requester is a consumer that is to use an end point.
type requester struct {
	sbi.Requester
	any bool       // it uses all, for others, who are judged when they ask it
	at  netip.Addr // from where it is to connect; invalid if that is not known
}

// endpointFor returns the end point by which a requester reaches an instance, with its
// profile, and the VIPs that the profile names. There is no profile if the instance has
// no end point, if the requester may not use it or is beside a member, or if consumers may
// have a reason to choose among its members. It is called with the proxy's mu held.
func endpointFor(p *proxy, x *producer, who requester, now int64) (by endpointRef, one *sbi.NFProfile, vips []string) {
	if x.whyNot != "" {
		return by, nil, nil
	}
	by.of = groupOf(x)
	members := p.members(by.of)
	if !interchangeable(members) || besideOne(p, who.at, members) {
		return by, nil, nil
	}
	e := p.endpointOf(by.of, members, now)
	one, vips = profileFor(p, e, by.of, who, now)
	if one != nil {
		by.id = e.instance()
	}
	return by, one, vips
}

// groupOf returns the group of an instance, whatever consumers ask for.
func groupOf(x *producer) group {
	return group{Type: x.profile.NFType, Class: x.class, Form: x.form}
}

// profileFor returns the profile of the end point of a group for a requester, and the
// VIPs that it names; none if the requester may not use it, or if no member can be
// reached by it. It is called with the proxy's mu held.
func profileFor(p *proxy, e *endpoint, g group, who requester, now int64) (one *sbi.NFProfile, vips []string) {
	q := &sbi.Query{TargetNFType: g.Type, Requester: who.Requester, PreferredLocality: g.Locality, SNSSAIs: g.wanted().slices}
	f := &finding{proxy: p, query: q, now: now, any: who.any}
	if f.fit() != nil {
		return nil, nil
	}
	fits := slices.DeleteFunc(f.fits, func(o sbi.NFProfile) bool {
		y := p.book[strings.ToLower(o.NFInstanceID)]
		return y.class != g.Class || y.form != g.Form || y.whyNot != ""
	})
	if len(fits) == 0 {
		return nil, nil
	}
	profile, vips, whyNot := e.profile(fits, p.members(g))
	if whyNot != "" || p.refused.any(vips) {
		return nil, nil
	}
	return &profile, vips
}

// interchangeable reports whether consumers have no reason to choose among members by
// their slices, networks or what they say of their kind, such as smfInfo.
func interchangeable(members []member) bool {
	said := func(m member) string {
		x := m.profile
		what := map[string]any{"sNssais": x.SNSSAIs, "perPlmnSnssaiList": x.PerPLMNSNSSAIs, "plmnList": x.PLMNList}
		for name, value := range x.Unknown {
			if strings.Contains(name, "Info") {
				what[name] = value
			}
		}
		text, _ := json.Marshal(what) // has been JSON
		return string(text)
	}
	for _, m := range members {
		if said(m) != said(members[0]) {
			return false
		}
	}
	return true
}
