package scp

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// get answers GetScp with what the balancer says of the VIPs.
func (p *proxy) get(req *api.GetScpRequest, vips []*api.Vip, now int64) *api.GetScpResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	r := newReport(p, vips, now)
	resp := &api.GetScpResponse{Nrf: p.nrf, Front: r.front(), FrontBy: p.cfg.Load().front(), FrontAddress: p.cfg.Load().Listen}
	if p.wire != nil {
		resp.FrontAddress = p.wire.own.String()
	}
	if resp.Front == frontPassing {
		resp.FrontReason = r.frontReason()
	}
	for _, x := range p.sorted(req.GetType()) {
		m := r.producer(x)
		resp.Producers = append(resp.Producers, m)
		resp.Functions = append(resp.Functions, r.function(x, m))
	}
	for _, e := range p.endpoints {
		if !strings.EqualFold(string(e.Group.Type), cmp.Or(req.GetType(), string(e.Group.Type))) {
			continue
		}
		members := p.members(e.Group)
		for _, a := range e.Addrs {
			for _, d := range e.Doors {
				m := &api.ScpEndpoint{
					Vip: vipName(e, a, d), Type: string(e.Group.Type), Instance: e.instance(), Address: netip.AddrPortFrom(a, d.Port).String(),
					Services: d.Services, Slice: e.Group.Slice, Locality: e.Group.Locality, Overloaded: e.overloaded,
					Refused: p.refused[vipName(e, a, d)],
				}
				if allow := p.allow(e.Group, d, members, a.Is4()); allow != nil {
					m.Consumers = uint32(len(allow.Clients))
				} else {
					m.Consumers = uint32(len(p.byAddr))
				}
				resp.Endpoints = append(resp.Endpoints, m)
			}
		}
	}
	slices.SortFunc(resp.Endpoints, func(a, b *api.ScpEndpoint) int { return cmp.Compare(a.Vip, b.Vip) })
	return resp
}

// Bounds of ListScpPairs.
const (
	listed    = 1000
	listedMax = 10_000
)

// pairs answers ListScpPairs from those of the balancer.
func (p *proxy) pairs(ctx context.Context, req *api.ListScpPairsRequest, b balancer) (*api.ListScpPairsResponse, error) {
	limit := int(cmp.Or(req.GetLimit(), listed))
	if limit > listedMax {
		return nil, api.Errorf(codes.InvalidArgument, "limit %d: want at most %d", limit, listedMax)
	}
	if err := checkType(p, req.GetType()); err != nil {
		return nil, err
	}
	carried, err := b.pairs(ctx, "", listedMax)
	if err != nil {
		return nil, err
	}
	counted := p.direct.counters(ctx, b)
	p.mu.Lock()
	defer p.mu.Unlock()
	index, strict := p.index.Load(), p.cfg.Load().Strict
	vips := map[string]*endpoint{}
	for _, e := range p.endpoints {
		for _, a := range e.Addrs {
			for _, d := range e.Doors {
				vips[vipName(e, a, d)] = e
			}
		}
	}
	resp := &api.ListScpPairsResponse{}
	carriedPairs := map[directKey]bool{}
	add := func(consumer netip.Addr, producer netip.AddrPort, m *api.ScpPair) {
		m.Consumer, m.Producer = consumer.String(), producer.String()
		if types := typesOf(p.consumersOf(consumer)); len(types) > 0 {
			m.ConsumerType = string(types[0])
		}
		if list := index.doors[producer]; len(list) > 0 {
			m.Type, m.Authorised = string(list[0].profile.NFType), permitted(index.nfs[consumer], list, strict)
		}
		if req.GetType() == "" || strings.EqualFold(req.GetType(), m.Type) {
			resp.Pairs = append(resp.Pairs, m)
		}
	}
	for _, x := range carried.GetPairs() {
		e := vips[x.GetVip()]
		client, err1 := netip.ParseAddr(x.GetClient())
		member, err2 := netip.ParseAddr(x.GetMember())
		if e == nil || err1 != nil || err2 != nil {
			continue
		}
		at := netip.AddrPortFrom(member, uint16(x.GetMemberPort()))
		carriedPairs[directKey{client, at}] = true
		add(client, at, sampledPair(x, &api.ScpPair{Type: string(e.Group.Type), Packets: x.GetPackets(), Bytes: x.GetBytes(), Since: x.GetSince()}))
	}
	p.direct.all(func(k directKey, x *directPair) {
		idle := counted[x.id].packets == 0 && now()-x.since > int64(countLag)
		if idle && (carriedPairs[k] || x.balanced) && x.refused == 0 { // it is there already, or its connections are, with the producers that they have
			return
		}
		add(k.consumer, k.producer, &api.ScpPair{Direct: true, Refused: x.refused, Reason: x.reason, Packets: counted[x.id].packets, Bytes: counted[x.id].octets, Since: time.Unix(0, x.since).UTC().Format(time.RFC3339)})
	})
	p.single.listed(now(), func(k pairKey, x passed) { add(k.consumer, k.producer, x.message()) })
	slices.SortFunc(resp.Pairs, func(a, b *api.ScpPair) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Producer, b.Producer), cmp.Compare(a.Since, b.Since), ones(a.Front)-ones(b.Front))
	})
	resp.Total = uint32(len(resp.Pairs))
	resp.Pairs = resp.Pairs[:min(limit, len(resp.Pairs))]
	return resp, nil
}

// carriedBy is what switches have counted.
type carriedBy struct{ packets, octets uint64 }

// counters returns what the switches have counted of direct pairs, by their numbers.
func (d *direct) counters(ctx context.Context, b balancer) map[uint32]carriedBy {
	switches := map[flow.DPID]bool{}
	d.all(func(_ directKey, x *directPair) { switches[x.at] = true })
	delete(switches, 0)
	var mu sync.Mutex // guards sums
	var work sync.WaitGroup
	sums := map[uint32]carriedBy{}
	for sw := range switches {
		work.Go(func() {
			flows, err := b.flows(ctx, sw)
			if err != nil {
				return // shown as 0
			}
			mu.Lock()
			defer mu.Unlock()
			for _, f := range flows {
				n, err := strconv.ParseUint(f.Cookie, 16, 64)
				if c := flow.Cookie(n); err == nil && c.Generation() == 1 {
					sum := sums[c.ID()]
					sums[c.ID()] = carriedBy{sum.packets + f.Packets, sum.octets + f.Bytes}
				}
			}
		})
	}
	work.Wait()
	return sums
}

// resume takes pairs of an earlier run: who has used whom.
func (p *proxy) resume(pairs []*api.BalancedPair) {
	index := p.index.Load()
	for _, x := range pairs {
		client, err1 := netip.ParseAddr(x.GetClient())
		member, err2 := netip.ParseAddr(x.GetMember())
		if err1 != nil || err2 != nil {
			continue
		}
		if list := index.doors[netip.AddrPortFrom(member, uint16(x.GetMemberPort()))]; len(list) > 0 {
			p.direct.partner(client, list[0].profile.NFType, flow.Location{})
		}
	}
}

// drain has a producer get no new connections, or get them again.
func (p *proxy) drain(req *api.DrainProducerRequest) (*api.ScpProducer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.book[strings.ToLower(req.GetInstance())]
	if x == nil {
		return nil, api.Errorf(codes.NotFound, "there is no producer %q; weft scp get shows those there are", req.GetInstance())
	}
	x.drained = !req.GetUndo()
	p.touch()
	return newReport(p, nil, now()).producer(x), nil
}

// forgetProducer has an instance forgotten until it speaks again.
func (p *proxy) forgetProducer(req *api.ForgetProducerRequest) (*api.ScpProducer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.book[strings.ToLower(req.GetInstance())]
	if x == nil {
		return nil, api.Errorf(codes.NotFound, "there is no instance %q; weft scp get shows those there are", req.GetInstance())
	}
	p.end(x)
	return x.message(), nil
}

// How long the weight of an app counts, in seconds.
const (
	appWeightTime = 60 // unless the app says otherwise
	appWeightMost = 3600
)

// setWeight sets the weight of a producer.
func setWeight(p *proxy, req *api.SetProducerWeightRequest, now int64) (*api.ScpProducer, error) {
	app, seconds := strings.ToLower(req.GetApp()), cmp.Or(req.GetSeconds(), appWeightTime)
	switch {
	case req.GetWeight() > mostWeight:
		return nil, api.Errorf(codes.InvalidArgument, "weight %d: want at most %d", req.GetWeight(), mostWeight)
	case seconds > appWeightMost:
		return nil, api.Errorf(codes.InvalidArgument, "seconds %d: want at most %d", seconds, appWeightMost)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.book[strings.ToLower(req.GetInstance())]
	if x == nil {
		return nil, api.Errorf(codes.NotFound, "there is no producer %q; weft scp get shows those there are", req.GetInstance())
	}
	if of := x.profile.NFType; p.policyOf(of).GetAlgorithm() != appPrefix+app {
		return nil, api.Errorf(codes.FailedPrecondition, "the policy of %s has the algorithm %s: weft scp policy set %s --algorithm app:%s", of, p.policyOf(of).GetAlgorithm(), of, app)
	}
	maps.DeleteFunc(p.weights, func(_ appWeightKey, w appWeight) bool { return now >= w.until })
	p.weights[appWeightKey{app, x.id()}] = appWeight{int(req.GetWeight()), now + int64(seconds)*int64(time.Second)}
	p.touch()
	return newReport(p, nil, now).producer(x), nil
}
