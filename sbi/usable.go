package sbi

import (
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// A Reading is a profile that another implementation has written: the members that
// could be read, and those that could not.
type Reading struct {
	NFProfile
	// Odd are the members that could not be read, and were left out.
	Odd []InvalidParam
	// Cased are the members whose names differ from names of TS 29.510 in case only.
	// Some JSON readers take one for the other.
	Cased []string
}

// Read reads a profile that another implementation has written. It fails only if the
// text is no JSON object.
func Read(text []byte) (*Reading, error) {
	r, d := &Reading{}, &decoder{lenient: true}
	if err := d.value(text, reflect.ValueOf(&r.NFProfile).Elem(), ""); err != nil {
		return nil, err
	}
	slices.Sort(d.cased)
	r.Odd, r.Cased = d.odd, d.cased
	return r, nil
}

// placing matches the members that hold addresses, and the id.
var placing = regexp.MustCompile(`^/(nfInstanceId|ipv[46]Addresses(/[^/]+)?|(nfServices|nfServiceList)(/[^/]+(/ipEndPoints(/[^/]+(/ipv[46]Address)?)?)?)?)$`)

// Hidden returns a 400 if a member that may hold an address, or the id, could not be
// read: another implementation may read it. It returns nil otherwise.
func (r *Reading) Hidden() error {
	for _, odd := range r.Odd {
		if placing.MatchString(odd.Param) {
			return invalid(OptionalMemberIncorrect, odd.Param, odd.Reason)
		}
	}
	if len(r.Cased) > 0 {
		return invalid(OptionalMemberIncorrect, r.Cased[0], "differs in case only from a name of TS 29.510")
	}
	return nil
}

// Ruled reports whether all rules on who may use the instance and its services could
// be read.
func (r *Reading) Ruled() bool {
	var w wrong
	w.rules("", r.AllowedNFTypes, r.AllowedPLMNs, r.AllowedNSSAIs, r.AllowedNFDomains)
	for _, s := range r.Services() {
		w.rules("", s.AllowedNFTypes, s.AllowedPLMNs, s.AllowedNSSAIs, s.AllowedNFDomains)
	}
	return w.first == nil && !slices.ContainsFunc(r.Odd, func(odd InvalidParam) bool { return strings.Contains(odd.Param, "/allowed") })
}

// Clear reports whether the profile is enough to tell which discoveries the instance
// matches. If not, only the NRF can tell.
func (r *Reading) Clear() bool {
	if len(r.Odd)+len(r.Cased) > 0 || !r.Ruled() || !slices.Contains(statuses, r.NFStatus) || string(r.NFType) != strings.ToUpper(string(r.NFType)) {
		return false
	}
	var w wrong
	check := func(list []Snssai, per []PlmnSnssai) {
		for _, x := range per {
			list = append(list, x.SNSSAIs...)
		}
		for _, s := range list {
			w.optional("", s.SD == "" || shortForm.MatchString(s.SD), "")
			for _, r := range s.SDRanges {
				w.optional("", shortForm.MatchString(r.Start) && shortForm.MatchString(r.End), "")
			}
		}
	}
	check(slices.Clone(r.SNSSAIs), r.PerPLMNSNSSAIs)
	for _, s := range r.Services() {
		w.optional("", slices.Contains(statuses, s.NFServiceStatus), "")
		check(slices.Clone(s.SNSSAIs), s.PerPLMNSNSSAIs)
	}
	return w.first == nil
}

// statuses are the statuses that discoveries know how to treat.
var statuses = []NFStatus{Registered, Suspended, Undiscoverable}

// Unusable returns why consumers cannot reach all services of the instance by an end
// point that it shares with others; empty if they can. resolved is the profile with
// addresses in place of host names.
func (r *Reading) Unusable(resolved *NFProfile) string {
	p := &r.NFProfile
	if len(r.Odd) > 0 {
		return r.Odd[0].Param + ": " + r.Odd[0].Reason
	}
	if len(r.Cased) > 0 {
		return r.Cased[0] + ": differs in case only from a name of TS 29.510"
	}
	var w wrong
	w.mandatory("/nfType", string(p.NFType), func(t string) bool { return typeForm.MatchString(t) && t == strings.ToUpper(t) }, "want a type such as AMF")
	w.mandatory("/nfStatus", string(p.NFStatus), func(s string) bool { return slices.Contains(statuses, NFStatus(s)) }, "want REGISTERED, SUSPENDED or UNDISCOVERABLE")
	w.weights("", p.Priority, p.Capacity, p.Load)
	w.rules("", p.AllowedNFTypes, p.AllowedPLMNs, p.AllowedNSSAIs, p.AllowedNFDomains)
	points := resolved.EndPoints()
	for _, s := range p.Services() {
		w.reachable("/"+s.ServiceName, &s, points)
	}
	if w.first == nil {
		return ""
	}
	return w.first.InvalidParams[0].Param + ": " + w.first.InvalidParams[0].Reason
}

// reachable checks the members that consumers need to reach a service at the end points
// of its profile.
func (w *wrong) reachable(at string, s *NFService, points []EndPoint) {
	w.mandatory(at+"/serviceName", s.ServiceName, nameForm.MatchString, "want a name such as nudm-sdm")
	w.mandatory(at+"/scheme", s.Scheme, func(s string) bool { return s == "http" || s == "https" }, "want http or https")
	w.mandatory(at+"/nfServiceStatus", string(s.NFServiceStatus), func(s string) bool { return slices.Contains(statuses, NFStatus(s)) }, "want REGISTERED, SUSPENDED or UNDISCOVERABLE")
	if len(s.Versions) == 0 {
		w.add(MandatoryMemberMissing, at+"/versions", "is missing")
	}
	for _, v := range s.Versions {
		w.mandatory(at+"/versions", v.APIVersionInURI, nameForm.MatchString, "want a version such as v1")
	}
	w.weights(at, s.Priority, s.Capacity, s.Load)
	w.rules(at, s.AllowedNFTypes, s.AllowedPLMNs, s.AllowedNSSAIs, s.AllowedNFDomains)
	for _, e := range s.IPEndPoints {
		w.optional(at+"/ipEndPoints", e.Port == nil || *e.Port > 0 && *e.Port <= 65_535, "want ports of 1 to 65535")
	}
	if s.NFServiceStatus != Registered {
		return
	}
	var mine []netip.AddrPort
	for _, e := range points {
		if e.Service == s.ServiceName && e.Scheme == s.Scheme {
			mine = append(mine, e.Addr)
			a := e.Addr.Addr()
			w.optional(at+"/ipEndPoints", !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast() && a.Zone() == "" && a != broadcast, "want addresses of single hosts")
		}
	}
	w.optional(at+"/ipEndPoints", len(mine) > 0, "want an address where it is reached by TCP; names are resolved by scp.names and scp.resolver")
	w.prefix(at+"/apiPrefix", s, mine)
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// prefix checks the prefix of a service: a path, or its URI at one of its end points.
func (w *wrong) prefix(at string, s *NFService, points []netip.AddrPort) {
	if !strings.Contains(s.APIPrefix, "://") {
		w.optional(at, len(s.APIPrefix) <= mostText && prefixForm.MatchString(s.APIPrefix), "want a path")
		return
	}
	u := s.URI()
	if u == nil {
		w.optional(at, false, "want a path, or a URI")
		return
	}
	port, err := PortOf(u)
	own := err == nil && u.Scheme == s.Scheme && u.User == nil && u.RawQuery == "" && u.Fragment == "" && prefixForm.MatchString(u.Path) &&
		slices.ContainsFunc(points, func(e netip.AddrPort) bool {
			return s.names(u.Hostname(), e.Addr()) && e.Port() == port
		})
	w.optional(at, own, "is the URI of another place than its end points")
}

// names reports whether the host of a URI is the address a, or a name of the service or
// of one of its end points.
func (s *NFService) names(host string, a netip.Addr) bool {
	if b, err := netip.ParseAddr(host); err == nil {
		return b.Unmap() == a
	}
	return strings.EqualFold(host, s.FQDN) || slices.ContainsFunc(s.IPEndPoints, func(e IPEndPoint) bool {
		return strings.EqualFold(host, e.IPv4Address) || strings.EqualFold(host, e.IPv6Address)
	})
}
