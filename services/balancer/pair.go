package balancer

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// resplit splits the pairs of a member if the member is drained, or if its VIP has no
// pairs any more: the next packet of each of their connections comes to the controller
// and gets entries that keep it with the member, and new connections go elsewhere. It is
// called with the balancer's mu held.
func (m *member) resplit(d *flow.Decision) {
	for c := range m.conns {
		if split := m.wish.drains() || !m.vip.paired; c.kind == paired && split != c.split {
			if c.split, c.until = split, 0; c.there {
				c.addThere(d)
			}
		}
	}
}

// part ends a split pair once it has been split for its idle time: connections that
// were in use have entries of their own by then.
func (t *tracker) part(d *flow.Decision, c *conn, now int64) {
	switch {
	case c.until == 0:
		c.until = now + int64(c.idle)*int64(time.Second)
	case now >= c.until:
		t.retire(d, c, now)
	}
}

// bypass handles what a client of a pair sends to the member's own address: the
// connection gets entries before those of the pair, by which the client has another
// port at the member; by those of one that is older than the pair it keeps its port.
// A reset is of none that goes on.
func (t *tracker) bypass(in *flow.PacketIn, d *flow.Decision, key connKey) flow.Verdict {
	c, first := t.by[key], false
	if c == nil {
		m := t.pairOf(key.with(key.to).pair(), in.Time)
		if m == nil { // the pair has gone, and so does its guard
			k := key.pair()
			removeEntry(d, in.Switch, flow.TableTranslate, flow.PriorityPair, between(k.client, k.to, k.proto, k.vlan), in.Cookie)
			return flow.Next
		}
		if s, ok := packet.ParseTCP(in.Data); ok && s.Flags()&packet.TCPRst != 0 {
			return flow.Next
		}
		as := aliased
		if !opens(in) && t.bindings[key].to != key.to {
			as = direct
		}
		if c = t.addTo(as, key, m, key.to, in.Time); c == nil {
			return flow.Next
		}
		t.count.direct.Add(1)
		first = true
	}
	s, ok := t.net.reach(c.m)
	if !ok || c.kind != direct && c.kind != aliased {
		return flow.Next
	}
	if first && c.kind == aliased && opens(in) {
		c.addShield(d, in.Switch)
	}
	if t.install(c, s, in, d); c.kind == aliased {
		if frame, ok := packet.Apply(in.Data, c.alias()); ok {
			in.Data, in.Key.TPSrc = frame, c.source().Port()
		}
	}
	if first {
		t.again(in, c.m)
	}
	return flow.Next
}

// revalidation is how long Open vSwitch may take, after it has confirmed an entry,
// to forget what it has cached of the entries before.
const revalidation = 30 * time.Millisecond

// again sends the first packet of a direct connection to the member once more: the
// answer to the first may have been rewritten as the pair's, by the switch's cache.
func (t *tracker) again(in *flow.PacketIn, m *member) {
	if s, ok := packet.ParseTCP(in.Data); !ok || s.Flags()&(packet.TCPSyn|packet.TCPAck) != packet.TCPSyn {
		return
	}
	frame, vlan := slices.Clone(in.Data), in.Key.VLAN
	t.after(revalidation, func() {
		if s, ok := t.net.reach(m); ok {
			d := &flow.Decision{}
			t.net.deliver(d, frame, vlan, s.At)
			t.out.post(d)
		}
	})
}

// pairOf returns the member of a pair, or of one that is remembered; nil if there
// is none.
func (t *tracker) pairOf(k backKey, now int64) *member {
	if p := t.backs[k]; p != nil && p.kind == paired {
		return p.m
	}
	for _, v := range t.index.Load().all() {
		if m := v.memberAt(k.member); m != nil && v.paired && v.at.host.VLAN == k.vlan {
			to, known := t.bindings.of(connKey{k.client, netip.AddrPortFrom(v.at.host.Addr, v.at.port), k.proto, k.vlan}, now)
			if known && to == k.member {
				return m
			}
		}
	}
	return nil
}

// ListPairs answers the call.
func (b *balancer) ListPairs(ctx context.Context, req *api.ListPairsRequest, read counters) (*api.ListPairsResponse, error) {
	limit, err := listLimit(req.GetLimit())
	if err != nil {
		return nil, err
	}
	resp := &api.ListPairsResponse{}
	b.mu.Lock()
	list, switches := pairsOf(b.vips.List(), req.GetVip())
	b.mu.Unlock()
	resp.Total = uint32(len(list))
	list = list[:min(limit, len(list))]
	sums := map[flow.Cookie]*api.BalancedPair{}
	for _, p := range list {
		resp.Pairs = append(resp.Pairs, p.pair)
		for _, c := range p.cookies {
			sums[c] = p.pair
		}
	}
	if len(list) == 0 {
		return resp, nil
	}
	seen, silent := read.all(ctx, switches)
	for _, flows := range seen {
		for _, f := range flows {
			n, err := strconv.ParseUint(f.Cookie, 16, 64)
			if p := sums[flow.Cookie(n)&^copyBits]; p != nil && err == nil {
				p.Packets += f.Packets
				p.Bytes += f.Bytes
			}
		}
	}
	for _, sw := range silent {
		resp.Incomplete = append(resp.Incomplete, sw.String())
	}
	slices.Sort(resp.Incomplete)
	return resp, nil
}

// shownPair is what a client has with a member by way of a VIP: a pair, connections with
// entries of their own, or both; with the cookies of the entries.
type shownPair struct {
	pair    *api.BalancedPair
	cookies []flow.Cookie
}

// pairsOf returns the pairs of a VIP, or of all of a list, by VIP and client, and the
// switches of their entries. The connections of a client with a member, of a split pair or of a
// VIP that balances each, count as its pair.
func pairsOf(vips []*vip, name string) (list []*shownPair, switches []flow.DPID) {
	at := map[flow.DPID]bool{}
	for _, v := range vips {
		if name != "" && v.name != name {
			continue
		}
		for _, m := range v.pool {
			of := map[[2]netip.AddrPort]*shownPair{}
			for c := range m.conns {
				if c.kind != paired && c.kind != tracked && c.kind != redirected || !c.there && !c.back {
					continue
				}
				at[c.ingress.Switch], at[c.egress] = true, true
				k, since := [2]netip.AddrPort{c.key.pair().client, c.to}, time.Unix(0, c.since).UTC().Format(time.RFC3339)
				x := of[k]
				if x == nil {
					x = &shownPair{pair: &api.BalancedPair{
						Vip: v.name, Client: c.key.client.Addr().String(), Member: c.to.Addr().String(), MemberPort: uint32(c.to.Port()),
						Since: since, At: api.NewLocation(c.ingress),
					}}
					of[k], list = x, append(list, x)
				}
				x.pair.Since = min(x.pair.Since, since)
				x.cookies = append(x.cookies, c.cookie(0))
				x.pair.Sampled = addSampled(x.pair.Sampled, c.sampled.message())
			}
		}
	}
	slices.SortFunc(list, func(x, y *shownPair) int {
		return cmp.Or(strings.Compare(x.pair.Vip, y.pair.Vip), strings.Compare(x.pair.Client, y.pair.Client), strings.Compare(x.pair.Member, y.pair.Member))
	})
	delete(at, 0)
	for sw := range at {
		switches = append(switches, sw)
	}
	return list, switches
}
