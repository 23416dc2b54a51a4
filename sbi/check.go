package sbi

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Most of what a profile may have of anything.
const (
	mostItems = 128  // in a list
	mostText  = 1024 // octets in a text
)

var (
	uuidForm   = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	typeForm   = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	fqdnForm   = regexp.MustCompile(`^([0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?\.)+[A-Za-z]{2,63}\.?$`)
	sdForm     = regexp.MustCompile(`^[0-9A-Fa-f]{6}$`)
	shortForm  = regexp.MustCompile(`^[0-9A-Fa-f]{1,6}$`)
	mccForm    = regexp.MustCompile(`^[0-9]{3}$`)
	mncForm    = regexp.MustCompile(`^[0-9]{2,3}$`)
	prefixForm = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)
)

// ValidInstanceID reports whether an instance may have that id.
func ValidInstanceID(id string) bool { return uuidForm.MatchString(id) }

// ValidFQDN reports whether a name is one of TS 29.571, which has a dot.
func ValidFQDN(name string) bool { return len(name) <= 253 && fqdnForm.MatchString(name) }

// Check returns what is wrong with a profile that Weft itself registers: a
// ProblemDetails that names every wrong member.
func (p *NFProfile) Check() error {
	var w wrong
	w.mandatory("/nfInstanceId", p.NFInstanceID, ValidInstanceID, "want a UUID")
	w.mandatory("/nfType", string(p.NFType), typeForm.MatchString, "want a type such as AMF")
	w.mandatory("/nfStatus", string(p.NFStatus), typeForm.MatchString, "want a status such as REGISTERED")
	if p.FQDN == "" && len(p.IPv4Addresses) == 0 && len(p.IPv6Addresses) == 0 {
		w.add(MandatoryMemberMissing, "/ipv4Addresses", "want fqdn, ipv4Addresses or ipv6Addresses")
	}
	w.fqdn("/fqdn", p.FQDN)
	each(&w, "/ipv4Addresses", p.IPv4Addresses, w.ipv4)
	each(&w, "/ipv6Addresses", p.IPv6Addresses, w.ipv6)
	if p.HeartBeatTimer < 0 || p.HeartBeatTimer > 86_400 {
		w.add(OptionalMemberIncorrect, "/heartBeatTimer", "want 1 to 86400 seconds")
	}
	w.weights("", p.Priority, p.Capacity, p.Load)
	w.text("/locality", p.Locality)
	w.text("/nfInstanceName", p.NFInstanceName)
	each(&w, "/nfSetIdList", p.NFSetIDList, w.text)
	each(&w, "/plmnList", p.PLMNList, w.plmn)
	each(&w, "/sNssais", p.SNSSAIs, w.snssai)
	each(&w, "/perPlmnSnssaiList", p.PerPLMNSNSSAIs, w.perPLMN)
	w.allowed("", p.AllowedNFTypes, p.AllowedPLMNs, p.AllowedNSSAIs, p.AllowedNFDomains)
	each(&w, "/nfServices", p.NFServices, w.service)
	w.few("/nfServiceList", len(p.NFServiceList))
	for _, key := range sortedKeys(p.NFServiceList) {
		s, at := p.NFServiceList[key], "/nfServiceList/"+pointerToken(key)
		w.service(at, s)
		if s.ServiceInstanceID != "" && s.ServiceInstanceID != key {
			w.add(MandatoryMemberIncorrect, at+"/serviceInstanceId", "want the key of the service")
		}
	}
	return w.problem()
}

// CheckReceived is Check for a profile that another implementation registers. It checks
// only the members that an NRF has to understand; the others are for consumers to judge.
func (p *NFProfile) CheckReceived() error {
	var w wrong
	w.mandatory("/nfInstanceId", p.NFInstanceID, ValidInstanceID, "want a UUID")
	w.mandatory("/nfType", string(p.NFType), typeForm.MatchString, "want a type such as AMF")
	w.mandatory("/nfStatus", string(p.NFStatus), typeForm.MatchString, "want a status such as REGISTERED")
	if p.FQDN == "" && len(p.IPv4Addresses) == 0 && len(p.IPv6Addresses) == 0 {
		w.add(MandatoryMemberMissing, "/ipv4Addresses", "want fqdn, ipv4Addresses or ipv6Addresses")
	}
	w.optional("/heartBeatTimer", p.HeartBeatTimer >= 0, "want 1 second or more")
	w.weights("", p.Priority, p.Capacity, p.Load)
	w.rules("", p.AllowedNFTypes, p.AllowedPLMNs, p.AllowedNSSAIs, p.AllowedNFDomains)
	for _, s := range p.Services() {
		at := "/nfServices/" + pointerToken(s.ServiceInstanceID)
		w.mandatory(at+"/serviceName", s.ServiceName, nameForm.MatchString, "want a name such as nudm-sdm")
		w.weights(at, s.Priority, s.Capacity, s.Load)
		w.rules(at, s.AllowedNFTypes, s.AllowedPLMNs, s.AllowedNSSAIs, s.AllowedNFDomains)
	}
	return w.problem()
}

// wrong gathers what is.
type wrong struct{ first *ProblemDetails }

func (w *wrong) add(cause Cause, at, reason string) {
	switch p := invalid(cause, at, reason); {
	case w.first == nil:
		w.first = p
	case len(w.first.InvalidParams) < mostItems:
		w.first.InvalidParams = append(w.first.InvalidParams, p.InvalidParams...)
	}
}

func (w *wrong) problem() error {
	if w.first == nil {
		return nil
	}
	return w.first
}

func (w *wrong) mandatory(at, text string, ok func(string) bool, want string) {
	if text == "" {
		w.add(MandatoryMemberMissing, at, "is missing")
	} else if !ok(text) {
		w.add(MandatoryMemberIncorrect, at, want)
	}
}

func (w *wrong) optional(at string, ok bool, want string) {
	if !ok {
		w.add(OptionalMemberIncorrect, at, want)
	}
}

func (w *wrong) few(at string, n int) {
	w.optional(at, n <= mostItems, fmt.Sprintf("want at most %d", mostItems))
}

// each checks a list and its items.
func each[T any](w *wrong, at string, items []T, check func(at string, item T)) {
	w.few(at, len(items))
	for i, item := range items[:min(len(items), mostItems)] {
		check(at+"/"+strconv.Itoa(i), item)
	}
}

func (w *wrong) text(at, text string) {
	w.optional(at, len(text) <= mostText, fmt.Sprintf("want at most %d octets", mostText))
}

func (w *wrong) fqdn(at, name string) {
	w.optional(at, name == "" || ValidFQDN(name), "want a name with a dot, such as udm.example.org")
}

func (w *wrong) ipv4(at, text string) {
	a, err := netip.ParseAddr(text)
	w.optional(at, err == nil && a.Is4(), "want an IPv4 address")
}

func (w *wrong) ipv6(at, text string) {
	a, err := netip.ParseAddr(text)
	w.optional(at, err == nil && a.Is6() && !a.Is4In6() && a.Zone() == "", "want an IPv6 address")
}

func (w *wrong) plmn(at string, p PlmnID) {
	w.mandatory(at+"/mcc", p.MCC, mccForm.MatchString, "want three digits")
	w.mandatory(at+"/mnc", p.MNC, mncForm.MatchString, "want two or three digits")
}

func (w *wrong) snssai(at string, s Snssai) { w.sliceOf(at, s, sdForm) }

// slice is snssai for what other implementations send, which may lack leading zeros.
func (w *wrong) slice(at string, s Snssai) { w.sliceOf(at, s, shortForm) }

func (w *wrong) sliceOf(at string, s Snssai, sd *regexp.Regexp) {
	w.optional(at+"/sd", s.SD == "" || sd.MatchString(s.SD), "want six hexadecimal digits")
	w.optional(at+"/wildcardSd", !s.WildcardSD || s.SDRanges == nil, "want sdRanges or wildcardSd")
	each(w, at+"/sdRanges", s.SDRanges, func(at string, r SDRange) {
		w.optional(at, sd.MatchString(r.Start) && sd.MatchString(r.End), "want start and end, six hexadecimal digits each")
	})
}

func (w *wrong) perPLMN(at string, x PlmnSnssai) {
	w.plmn(at+"/plmnId", x.PLMNID)
	each(w, at+"/sNssaiList", x.SNSSAIs, w.snssai)
}

func (w *wrong) nfType(at string, t NFType) {
	w.optional(at, typeForm.MatchString(string(t)), "want a type such as AMF")
}

// weights checks the numbers that profiles and services have.
func (w *wrong) weights(at string, priority, capacity, load *int) {
	w.number(at+"/priority", priority, 65_535)
	w.number(at+"/capacity", capacity, 65_535)
	w.number(at+"/load", load, 100)
}

func (w *wrong) number(at string, n *int, most int) {
	w.optional(at, n == nil || *n >= 0 && *n <= most, fmt.Sprintf("want 0 to %d", most))
}

// allowed checks who is allowed. A list without items says neither all nor none.
func (w *wrong) allowed(at string, types []NFType, plmns []PlmnID, slices []Snssai, domains []string) {
	const want = "want one or more, or no such member"
	w.optional(at+"/allowedNfTypes", types == nil || len(types) > 0, want)
	w.optional(at+"/allowedPlmns", plmns == nil || len(plmns) > 0, want)
	w.optional(at+"/allowedNssais", slices == nil || len(slices) > 0, want)
	w.optional(at+"/allowedNfDomains", domains == nil || len(domains) > 0, want)
	each(w, at+"/allowedNfTypes", types, w.nfType)
	each(w, at+"/allowedPlmns", plmns, w.plmn)
	each(w, at+"/allowedNssais", slices, w.snssai)
	each(w, at+"/allowedNfDomains", domains, func(at, domain string) {
		_, err := domainForm(domain)
		w.optional(at, err == nil && len(domain) <= mostText, "want a regular expression")
	})
}

// domainForms keeps what domainForm has read, for it is asked for again with each
// requester.
var domainForms struct {
	sync.Mutex
	read map[string]*regexp.Regexp
}

// mostForms bounds the expressions that are kept.
const mostForms = 4096

// domainForm reads a regular expression of allowedNfDomains.
func domainForm(text string) (*regexp.Regexp, error) {
	domainForms.Lock()
	defer domainForms.Unlock()
	if form := domainForms.read[text]; form != nil {
		return form, nil
	}
	form, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if domainForms.read == nil || len(domainForms.read) >= mostForms {
		domainForms.read = map[string]*regexp.Regexp{}
	}
	domainForms.read[text] = form
	return form, nil
}

func (w *wrong) service(at string, s NFService) {
	w.mandatory(at+"/serviceInstanceId", s.ServiceInstanceID, func(id string) bool { return len(id) <= mostText }, "is too long")
	w.mandatory(at+"/serviceName", s.ServiceName, nameForm.MatchString, "want a name such as nudm-sdm")
	w.mandatory(at+"/scheme", s.Scheme, func(s string) bool { return s == "http" || s == "https" }, "want http or https")
	w.mandatory(at+"/nfServiceStatus", string(s.NFServiceStatus), typeForm.MatchString, "want a status such as REGISTERED")
	if len(s.Versions) == 0 {
		w.add(MandatoryMemberMissing, at+"/versions", "is missing")
	}
	each(w, at+"/versions", s.Versions, func(at string, v Version) {
		w.mandatory(at+"/apiVersionInUri", v.APIVersionInURI, nameForm.MatchString, "want a version such as v1")
		w.mandatory(at+"/apiFullVersion", v.APIFullVersion, func(s string) bool { return len(s) <= mostText }, "is too long")
	})
	w.fqdn(at+"/fqdn", s.FQDN)
	w.optional(at+"/apiPrefix", len(s.APIPrefix) <= mostText && prefixForm.MatchString(s.APIPrefix), "want a path")
	each(w, at+"/ipEndPoints", s.IPEndPoints, func(at string, e IPEndPoint) {
		w.optional(at, e.IPv4Address == "" || e.IPv6Address == "", "want ipv4Address or ipv6Address")
		if e.IPv4Address != "" {
			w.ipv4(at+"/ipv4Address", e.IPv4Address)
		}
		if e.IPv6Address != "" {
			w.ipv6(at+"/ipv6Address", e.IPv6Address)
		}
		w.optional(at+"/transport", e.Transport == "" || slices.Contains([]string{"TCP", "QUIC"}, strings.ToUpper(e.Transport)), "want TCP")
		w.number(at+"/port", e.Port, 65_535)
	})
	w.weights(at, s.Priority, s.Capacity, s.Load)
	each(w, at+"/nfServiceSetIdList", s.NFServiceSetIDList, w.text)
	each(w, at+"/sNssais", s.SNSSAIs, w.snssai)
	each(w, at+"/perPlmnSnssaiList", s.PerPLMNSNSSAIs, w.perPLMN)
	w.allowed(at, s.AllowedNFTypes, s.AllowedPLMNs, s.AllowedNSSAIs, s.AllowedNFDomains)
}

// rules checks the members that say who is allowed. An empty list is like a missing
// one.
func (w *wrong) rules(at string, types []NFType, plmns []PlmnID, nssais []Snssai, domains []string) {
	for _, t := range types {
		w.nfType(at+"/allowedNfTypes", t)
	}
	for _, p := range plmns {
		w.plmn(at+"/allowedPlmns", p)
	}
	for _, s := range nssais {
		w.slice(at+"/allowedNssais", s)
	}
	for _, d := range domains {
		_, err := domainForm(d)
		w.optional(at+"/allowedNfDomains", err == nil, "want a regular expression that RE2 has, too")
	}
}
