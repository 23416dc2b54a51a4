package scp

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/sbi"
)

// profile returns the profile by which consumers know a group, and the VIPs that it
// names, from what a discovery has found of it; or why the group cannot be reached as
// one.
func (e *endpoint) profile(found []sbi.NFProfile, members []member) (one sbi.NFProfile, vips []string, whyNot string) {
	if e == nil {
		return one, nil, "there is no room for another end point (scp.endpoints), or no address (scp.vips)"
	}
	one = sbi.NFProfile{
		NFInstanceID: e.instance(), NFType: e.Group.Type, NFStatus: sbi.Registered, Locality: e.Group.Locality,
		PLMNList: union(found, func(p *sbi.NFProfile) []sbi.PlmnID { return p.PLMNList }), NFSetIDList: alike(found, func(p *sbi.NFProfile) []string { return p.NFSetIDList }),
		Unknown: sbi.Agreed(each(found, func(p *sbi.NFProfile) sbi.Unknown { return p.Unknown })),
	}
	if one.Locality == "" {
		one.Locality = same(found, func(p *sbi.NFProfile) string { return p.Locality })
	}
	one.SNSSAIs, one.PerPLMNSNSSAIs = slicesOf(found, func(p *sbi.NFProfile) ([]sbi.Snssai, []sbi.PlmnSnssai) { return p.SNSSAIs, p.PerPLMNSNSSAIs })
	capacity, load, foremost := 0, 0, 1<<16
	services := map[string][]sbi.NFService{}
	for i := range found {
		c, l := numberOf(found[i].Capacity, sbi.DefaultCapacity), numberOf(found[i].Load, 0)
		capacity, load, foremost = capacity+c, load+c*l, min(foremost, numberOf(found[i].Priority, 0))
		for _, s := range found[i].Services() {
			services[s.ServiceName] = append(services[s.ServiceName], s)
		}
	}
	load = load / max(1, capacity)
	capacity = min(capacity, mostWeight)
	one.Capacity, one.Load, one.Priority = &capacity, &load, &foremost
	for _, a := range e.Addrs {
		if a.Is4() {
			one.IPv4Addresses = append(one.IPv4Addresses, a.String())
		} else {
			one.IPv6Addresses = append(one.IPv6Addresses, a.String())
		}
	}
	secure := true
	for _, name := range slices.Sorted(maps.Keys(services)) {
		d := e.door(name, members)
		if d == nil {
			return one, nil, "service " + name + " has no address at the end point"
		}
		s := e.service(d, services[name])
		if len(s.Versions) == 0 {
			return one, nil, "service " + name + " has no version that all of its type have"
		}
		for _, a := range e.Addrs {
			if v := vipName(e, a, *d); !slices.Contains(vips, v) {
				vips = append(vips, v)
			}
		}
		secure = secure && s.Scheme == "https"
		e.list(&one, found, s)
	}
	if secure {
		one.FQDN = same(found, func(p *sbi.NFProfile) string { return p.FQDN })
	}
	if len(services) == 0 {
		return one, nil, "it offers no service"
	}
	return one, vips, ""
}

// list lists a service in the members in which the instances list theirs.
func (e *endpoint) list(one *sbi.NFProfile, found []sbi.NFProfile, s sbi.NFService) {
	if slices.ContainsFunc(found, func(p sbi.NFProfile) bool { return len(p.NFServices) > 0 }) {
		one.NFServices = append(one.NFServices, s)
	}
	if slices.ContainsFunc(found, func(p sbi.NFProfile) bool { return len(p.NFServiceList) > 0 }) {
		if one.NFServiceList == nil {
			one.NFServiceList = map[string]sbi.NFService{}
		}
		one.NFServiceList[s.ServiceInstanceID] = s
	}
}

// service returns the service that several are at a door. It has a name only where
// consumers compare that with certificates: by a name they would reach one instance.
func (e *endpoint) service(d *door, of []sbi.NFService) sbi.NFService {
	s := sbi.NFService{
		ServiceInstanceID: of[0].ServiceName, ServiceName: of[0].ServiceName, Versions: slices.Clone(of[0].Versions), Scheme: d.Scheme, NFServiceStatus: sbi.Registered,
		NFServiceSetIDList: alike(of, func(s *sbi.NFService) []string { return s.NFServiceSetIDList }),
		OAuth2Required:     slices.ContainsFunc(of, func(s sbi.NFService) bool { return s.OAuth2Required }),
		Unknown:            sbi.Agreed(each(of, func(s *sbi.NFService) sbi.Unknown { return s.Unknown })),
		APIPrefix:          of[0].Path(),
	}
	s.SNSSAIs, s.PerPLMNSNSSAIs = slicesOf(of, func(s *sbi.NFService) ([]sbi.Snssai, []sbi.PlmnSnssai) { return s.SNSSAIs, s.PerPLMNSNSSAIs })
	for _, other := range of[1:] {
		s.Versions = slices.DeleteFunc(s.Versions, func(v sbi.Version) bool {
			return !slices.ContainsFunc(other.Versions, func(o sbi.Version) bool { return o.APIVersionInURI == v.APIVersionInURI })
		})
	}
	if d.Scheme == "https" {
		s.FQDN = same(of, func(s *sbi.NFService) string { return s.FQDN })
	}
	if !slices.ContainsFunc(of, func(s sbi.NFService) bool { return s.URI() == nil }) {
		s.APIPrefix = d.Scheme + "://" + netip.AddrPortFrom(e.Addrs[0], d.Port).String() + s.APIPrefix
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
	}
	return s
}

// each returns what f returns of each of some profiles or services.
func each[P, T any](of []P, f func(*P) T) (all []T) {
	for i := range of {
		all = append(all, f(&of[i]))
	}
	return all
}

// same returns the text that all have; empty if they differ.
func same[P any](of []P, text func(*P) string) string {
	all := slices.Compact(each(of, text))
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// alike returns the items that the lists of all have.
func alike[P any](of []P, list func(*P) []string) (items []string) {
	lists := each(of, list)
	for _, item := range lists[0] {
		if !slices.ContainsFunc(lists, func(l []string) bool { return !slices.Contains(l, item) }) {
			items = append(items, item)
		}
	}
	return items
}

// union returns the items that the list of one has; nil if there is one without any,
// which says that it has all, or the usual one.
func union[P, T any](of []P, list func(*P) []T) (items []T) {
	there := map[string]bool{}
	for _, l := range each(of, list) {
		if len(l) == 0 {
			return nil
		}
		for _, item := range l {
			text, _ := json.Marshal(item) // has been JSON
			if !there[string(text)] {
				there[string(text)] = true
				items = append(items, item)
			}
		}
	}
	return items
}

// slicesOf returns the slices that any of some profiles or services serves, and those by
// network if all have such a list.
func slicesOf[P any](of []P, said func(*P) ([]sbi.Snssai, []sbi.PlmnSnssai)) ([]sbi.Snssai, []sbi.PlmnSnssai) {
	whole := func(p *P) []sbi.Snssai {
		list, per := said(p)
		if len(per) == 0 {
			return list
		}
		return slices.Concat(each(per, func(x *sbi.PlmnSnssai) []sbi.Snssai { return x.SNSSAIs })...)
	}
	var per []sbi.PlmnSnssai
	for _, x := range union(of, func(p *P) []sbi.PlmnSnssai { _, per := said(p); return per }) {
		i := slices.IndexFunc(per, func(y sbi.PlmnSnssai) bool { return y.PLMNID.MCC == x.PLMNID.MCC && y.PLMNID.MNC == x.PLMNID.MNC })
		if i < 0 {
			per = append(per, x)
			continue
		}
		two := []sbi.PlmnSnssai{per[i], x}
		per[i].SNSSAIs = union(two, func(x *sbi.PlmnSnssai) []sbi.Snssai { return x.SNSSAIs })
	}
	return union(of, whole), per
}

func numberOf(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}
