package sbi

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An EndPoint is a place at which a service of an instance is reached, with what
// counts for choosing it.
type EndPoint struct {
	Service  string
	Scheme   string
	Addr     netip.AddrPort
	Prefix   string // of its paths
	Priority int    // the lowest preferred
	Capacity int    // relative; all end points with the same Source share it
	Load     int    // percent
	Source   string // names the service that gives the Capacity; empty if the profile does
}

// DefaultCapacity is the capacity of an instance whose profile gives none.
const DefaultCapacity = 100

// EndPoints returns the addresses at which the registered services of a profile are
// reached by TCP. It does not resolve names; Resolved does.
func (p *NFProfile) EndPoints() []EndPoint {
	var all []EndPoint
	for i, s := range p.Services() {
		if s.NFServiceStatus != Registered {
			continue
		}
		e := EndPoint{
			Service: s.ServiceName, Scheme: s.Scheme, Prefix: s.Path(),
			Priority: firstOf(0, s.Priority, p.Priority), Capacity: firstOf(DefaultCapacity, s.Capacity, p.Capacity), Load: firstOf(0, s.Load, p.Load),
		}
		if s.Capacity != nil {
			e.Source = s.ServiceName + "/" + s.ServiceInstanceID + "/" + strconv.Itoa(i)
		}
		points := s.IPEndPoints
		if len(points) == 0 {
			points = []IPEndPoint{{}}
		}
		for _, point := range points {
			if point.Transport != "" && !strings.EqualFold(point.Transport, "TCP") {
				continue
			}
			port := firstOf(portOf(s.Scheme), point.Port)
			for _, a := range p.addressesOf(point) {
				e.Addr = netip.AddrPortFrom(a, uint16(port))
				all = append(all, e)
			}
		}
	}
	return all
}

// Path returns the prefix of a service's paths, without a trailing slash. Where the
// apiPrefix is a URI, it returns the path of that URI.
func (s *NFService) Path() string {
	if u := s.URI(); u != nil {
		return strings.TrimSuffix(u.Path, "/")
	}
	return strings.TrimSuffix(s.APIPrefix, "/")
}

// URI returns the apiPrefix of a service if it is a URI, nil if it is a path.
func (s *NFService) URI() *url.URL {
	if !strings.Contains(s.APIPrefix, "://") {
		return nil
	}
	u, err := url.Parse(s.APIPrefix)
	if err != nil {
		return nil
	}
	return u
}

// Addresses returns the addresses that a profile and its services name.
func (p *NFProfile) Addresses() []netip.Addr {
	all := p.addressesOf(IPEndPoint{})
	for _, s := range p.Services() {
		for _, point := range s.IPEndPoints {
			for _, a := range p.addressesOf(point) {
				if !slices.Contains(all, a) {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// addressesOf returns the addresses of an end point. An end point without addresses
// has those of the profile.
func (p *NFProfile) addressesOf(point IPEndPoint) []netip.Addr {
	texts := []string{point.IPv4Address, point.IPv6Address}
	if point.IPv4Address == "" && point.IPv6Address == "" {
		texts = append(slices.Clone(p.IPv4Addresses), p.IPv6Addresses...)
	}
	var all []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a.Unmap())
		}
	}
	return all
}

// Names are the addresses of hosts, by their names in lower case.
type Names map[string][]netip.Addr

// find returns the addresses of a name.
func (n Names) find(name string) []netip.Addr {
	return n[strings.ToLower(strings.TrimSuffix(name, "."))]
}

// HostNames returns the names that have to be resolved to reach a profile's services:
// those in place of an address, and the FQDNs of what has no address.
func (p *NFProfile) HostNames() (names []string) {
	add := func(texts ...string) {
		for _, text := range texts {
			name := strings.ToLower(strings.TrimSuffix(text, "."))
			if _, err := netip.ParseAddr(name); err != nil && name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	add(p.IPv4Addresses...)
	add(p.IPv6Addresses...)
	whole := len(p.IPv4Addresses)+len(p.IPv6Addresses) == 0
	if whole {
		add(p.FQDN)
	}
	for _, s := range p.Services() {
		for _, e := range s.IPEndPoints {
			add(e.IPv4Address, e.IPv6Address)
		}
		if whole && len(s.IPEndPoints) == 0 {
			add(s.FQDN)
		}
	}
	return names
}

// Resolved returns the profile with addresses in place of its host names, as far as
// names has them.
func (p *NFProfile) Resolved(names Names) *NFProfile {
	if len(names) == 0 {
		return p
	}
	r := *p
	r.IPv4Addresses, r.IPv6Addresses = nil, nil
	texts := append(slices.Clone(p.IPv4Addresses), p.IPv6Addresses...)
	if len(texts) == 0 {
		texts = []string{p.FQDN}
	}
	for _, text := range texts {
		if found := names.find(text); len(found) == 0 {
			r.IPv4Addresses = append(r.IPv4Addresses, text)
		} else {
			r.IPv4Addresses = append(r.IPv4Addresses, textsOf(found)...)
		}
	}
	r.NFServices, r.NFServiceList = nil, nil
	for _, s := range p.Services() {
		var points []IPEndPoint
		for _, point := range s.IPEndPoints {
			points = append(points, point.resolved(names)...)
		}
		if found := names.find(s.FQDN); len(s.IPEndPoints) == 0 && len(texts) == 1 && texts[0] == p.FQDN {
			for _, text := range textsOf(found) {
				points = append(points, IPEndPoint{IPv4Address: text})
			}
		}
		s.IPEndPoints = points
		r.NFServices = append(r.NFServices, s)
	}
	return &r
}

// resolved returns an end point for each address of the name that e has in place of an
// address, or e if names does not have it.
func (e IPEndPoint) resolved(names Names) (all []IPEndPoint) {
	for _, a := range append(slices.Clone(names.find(e.IPv4Address)), names.find(e.IPv6Address)...) {
		at := e
		at.IPv4Address, at.IPv6Address = a.String(), ""
		all = append(all, at)
	}
	if len(all) == 0 {
		return []IPEndPoint{e}
	}
	return all
}

func textsOf(list []netip.Addr) (texts []string) {
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return texts
}

// PortOf returns the port of a URI: that of its scheme if it has none.
func PortOf(u *url.URL) (uint16, error) {
	if u.Port() == "" {
		return uint16(portOf(u.Scheme)), nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return uint16(port), err
}

// portOf returns the port of a scheme.
func portOf(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}

// firstOf returns the first number that is not nil, or otherwise.
func firstOf(otherwise int, numbers ...*int) int {
	for _, n := range numbers {
		if n != nil {
			return *n
		}
	}
	return otherwise
}
