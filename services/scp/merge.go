package scp

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/sbi"
)

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
