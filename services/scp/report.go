package scp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// place is where a member of a VIP is.
type place struct {
	address string
	port    uint32
}

// report is how it goes with the instances, by what is known of them and what the
// balancer says of the VIPs. It is made and used with the proxy's mu held.
type report struct {
	proxy       *proxy
	now         int64
	groups      map[*producer][]*endpoint // that stand for each instance
	vips        map[string]*api.Vip
	members     map[string]map[place]*api.PoolMember // by VIP
	connections map[place]uint32                     // by all VIPs
}

func newReport(p *proxy, vips []*api.Vip, now int64) *report {
	r := &report{p, now, map[*producer][]*endpoint{}, map[string]*api.Vip{}, map[string]map[place]*api.PoolMember{}, map[place]uint32{}}
	for _, name := range slices.Sorted(maps.Keys(p.endpoints)) {
		for _, m := range p.members(p.endpoints[name].Group) {
			r.groups[m.producer] = append(r.groups[m.producer], p.endpoints[name])
		}
	}
	for _, v := range vips {
		if v.GetOwner() != owner {
			continue
		}
		r.vips[v.Name], r.members[v.Name] = v, map[place]*api.PoolMember{}
		for _, m := range v.Pool {
			at := place{m.Address, m.Port}
			r.members[v.Name][at] = m
			r.connections[at] += m.Connections
		}
	}
	return r
}

// placeOf returns the place of an end point.
func placeOf(e sbi.EndPoint) place { return place{e.Addr.Addr().String(), uint32(e.Addr.Port())} }

// producer returns what there is to say of an instance.
func (r *report) producer(x *producer) *api.ScpProducer {
	m := x.message()
	for _, e := range x.points {
		m.Connections = max(m.Connections, r.connections[placeOf(e)])
	}
	m.State, m.Reason = r.state(x)
	for _, e := range x.points {
		if is := r.proxy.strain.of(x.id(), "", e.Addr, r.now); uint32(is.reduction) > m.Reduction {
			if m.Reduction = uint32(is.reduction); m.State == "up" {
				m.Reason = fmt.Sprintf("%d of 100 new requests go elsewhere: %s", is.reduction, is.why)
			}
		}
	}
	return m
}

// state returns the state of an instance, and why it is not up: by what it says
// itself, else by what the balancer has found at the VIPs that it is a member of.
func (r *report) state(x *producer) (state, reason string) {
	if state, reason = x.serves(r.now, r.proxy.cfg.Load().Margin); state != "" {
		return state, reason
	}
	for _, e := range r.groups[x] {
		for _, name := range e.vips() {
			for _, point := range x.points {
				if m := r.members[name][placeOf(point)]; m != nil && m.Health != "" && m.Health != "up" {
					return m.Health, m.Reason
				}
			}
		}
		if e.overloaded {
			return "draining", "its type is overloaded"
		}
	}
	return "up", ""
}

// function says whether an instance is balanced.
func (r *report) function(x *producer, m *api.ScpProducer) *api.ScpFunction {
	silent := r.now - cmp.Or(x.heard, x.listed, r.now)
	f := &api.ScpFunction{Type: m.Type, Instance: m.Instance, State: m.State, Age: uint32(max(0, silent) / int64(time.Second))}
	f.WhyNot = r.whyNot(x, m)
	f.Balanced = f.WhyNot == ""
	return f
}

// whyNot returns why new consumers do not reach an instance by an end point; empty if
// they do.
func (r *report) whyNot(x *producer, m *api.ScpProducer) (why string) {
	switch {
	case x.whyNot != "":
		return x.whyNot
	case m.State != "up":
		return m.Reason
	case len(x.points) == 0:
		return "it offers no service"
	}
	p := r.proxy
	why = cmp.Or(p.apart[group{Type: x.profile.NFType, Class: x.class, Form: x.form}], "no consumer has asked for its type yet")
	for _, e := range r.groups[x] {
		names := e.vips()
		apart := p.apart[e.Group]
		if apart == "" && !p.refused.any(names) {
			return ""
		}
		for _, name := range names {
			why = cmp.Or(p.refused[name], apart, why)
		}
	}
	return why
}

// frontPassing is the state of a front that nobody reaches.
const frontPassing = "passing"

// front says whether consumers reach the front.
func (r *report) front() string {
	p, vip := r.proxy, r.vips[nrfVip]
	switch by := p.cfg.Load().front(); {
	case by == "":
		return "off"
	case !p.serving || by == frontHost && (vip == nil || vip.GetOpen()):
		return frontPassing
	case p.wire != nil && !p.wire.inForce() || by == frontHost && !p.shadowed:
		return "pending"
	}
	return "intercepting"
}

// frontReason returns why a front is passing.
func (r *report) frontReason() string {
	p, vip := r.proxy, r.vips[nrfVip]
	switch {
	case !p.serving:
		return cmp.Or(p.silent, "it has only begun")
	case vip == nil:
		return cmp.Or(p.refused[nrfVip], "the balancer has no VIP "+nrfVip+" yet")
	}
	return "no member of the balancer's VIP " + nrfVip + " is up: weft balancer get " + nrfVip
}

// message returns what does not depend on the balancer.
func (p *producer) message() *api.ScpProducer {
	first := p.first()
	m := &api.ScpProducer{
		Type: string(p.profile.NFType), Instance: p.id(), Priority: uint32(numberOf(p.profile.Priority, first.Priority)),
		Capacity: uint32(numberOf(p.profile.Capacity, cmp.Or(first.Capacity, sbi.DefaultCapacity))), Load: uint32(numberOf(p.profile.Load, first.Load)),
	}
	if first.Addr.IsValid() {
		m.Address = first.Addr.String()
	}
	if p.by.IsValid() {
		m.RegisteredBy = p.by.String()
	}
	for _, s := range p.profile.Services() {
		m.Services = append(m.Services, s.ServiceName)
	}
	for _, t := range p.profile.AllowedNFTypes {
		m.Allowed = append(m.Allowed, string(t))
	}
	return m
}
