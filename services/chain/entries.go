package chain

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/policy"
)

func number(n int) string { return strconv.Itoa(n) }

// A stage is where a packet of a chain is: before a function, in a direction.
// Within a switch packets have it as metadata.
type stage struct {
	of       *chain
	to       direction
	function int // before which; len(of.functions) or -1 behind the last
}

// The metadata of stages: the number of the chain, the direction, the function.
const (
	metadataFunctions = 7
	metadataChain     = metadataFunctions + 1
	metadataMask      = numberMask<<metadataChain | (1<<metadataChain - 1)
	numberMask        = 1<<16 - 1
)

func (s stage) metadata() uint64 {
	return uint64(s.of.said.Number)<<metadataChain | uint64(s.to)<<metadataFunctions | uint64(s.function)
}

// over reports whether the packet is behind the last function.
func (s stage) over() bool { return s.function < 0 || s.function >= len(s.of.functions) }

// step returns the stage behind the function.
func (s stage) step() stage {
	if s.function++; s.to == back {
		s.function -= 2
	}
	return s
}

// first returns the stage of packets that enter a chain.
func first(c *chain, to direction) stage {
	if to == back {
		return stage{c, to, len(c.functions) - 1}
	}
	return stage{c, to, 0}
}

// ahead returns the next stage from s on whose function is alive, or that is
// over; false if a function that is dead blocks. It is called with mu held.
func (b *store) ahead(s stage) (stage, bool) {
	for ; !s.over(); s = s.step() {
		if len(b.alive(s.of.functions[s.function])) > 0 {
			return s, true
		}
		if s.of.block {
			return s, false
		}
	}
	return s, true
}

// A builder makes the entries of one switch.
type builder struct {
	*store
	sw    flow.DPID
	ovs   bool // it can be asked for fragments
	list  []flow.Entry
	there map[flow.EntryKey]bool
}

// add adds an entry. Of chains that want different ones of the same packets, which are later
// fragments, the first has it.
func (b *builder) add(table uint8, priority int, m flow.Match, e flow.Entry) {
	e.Table, e.Priority, e.Match = table, uint16(priority), m
	if !b.there[e.Key()] {
		b.there[e.Key()] = true
		b.list = append(b.list, e)
	}
}

// untagged returns the matches of a chain's packets in a direction: with their later
// fragments, as far as the switch can be asked for them.
func (b *builder) untagged(c *chain, d direction) []flow.Match {
	list := []flow.Match{c.match[d].WithoutVLAN()}
	if m, ok := list[0].LaterFragments(); ok && b.ovs {
		list = append(list, m)
	}
	return list
}

// rules returns the entries that a switch should have.
func (b *store) rules(info *api.Switch) policy.Rules {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return policy.Rules{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return policy.Rules{Flows: b.entries(sw, info)}
}

// entries returns the entries that a switch should have. It is called with mu held.
func (b *store) entries(sw flow.DPID, info *api.Switch) []flow.Entry {
	if unable(info) || b.chains.Len() == 0 {
		return nil
	}
	w := &builder{store: b, sw: sw, ovs: info.Hardware == api.OpenVSwitch, there: map[flow.EntryKey]bool{}}
	for _, c := range b.chains.List() {
		w.enter(c)
		w.block(c)
		w.chosen(c)
		w.returned(c)
	}
	w.tagged()
	w.deliver()
	return w.list
}

// enter has packets from edge ports go into a chain. Where all functions are
// bypassed there is nothing to do.
func (b *builder) enter(c *chain) {
	for _, port := range b.net.PortsWith(b.sw, flow.RoleEdge) {
		if b.taken[flow.Location{Switch: b.sw, Port: port}] {
			continue
		}
		for _, d := range directions {
			s, pass := b.ahead(first(c, d))
			if pass && s.over() {
				continue
			}
			for _, m := range b.untagged(c, d) {
				b.add(flow.TableForward, c.priority(d), m.WithInPort(port), b.onward(s, pass))
			}
		}
	}
}

// priority returns that of the packets that enter a chain.
func (c *chain) priority(d direction) int { return flow.PriorityChain + c.rank(d) }

// rank orders the packets of chains, of which the one with the highest has what several match.
func (c *chain) rank(d direction) int { return 2*int(c.said.Priority) + 1 - int(d) }

// unicast are the addresses of hosts: in a frame to a group they are none of a broadcast's or
// multicast's own (RFC 1122 §3.3.6), but hosts take them.
var unicast = map[uint16][]netip.Prefix{
	flow.EthTypeIPv4: prefixes("0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"),
	flow.EthTypeIPv6: prefixes("::/1", "8000::/2", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fc00::/7", "fe00::/8"),
}

func prefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// block drops what would get past a chain that must not be passed: its packets with a tag of
// VLAN 0, which hosts take off and functions may not, and in frames to groups, which are
// flooded.
func (b *builder) block(c *chain) {
	if !c.block {
		return
	}
	for _, d := range directions {
		m := c.match[d]
		b.add(flow.TableForward, c.priority(d), m.WithVLAN(0), flow.Entry{})
		m = m.WithNoVLAN().WithEthDstMasked(flow.MAC{1}, flow.MAC{1})
		if m.Set.Has(flow.FieldIPv4Dst) || m.Set.Has(flow.FieldIPv6Dst) {
			b.add(flow.TableForward, flow.PriorityChainGuard, m, flow.Entry{})
			continue
		}
		for _, p := range unicast[m.Key.EthType] {
			b.add(flow.TableForward, flow.PriorityChainGuard, m.WithIPDst(p), flow.Entry{})
		}
	}
}

// onward returns what is done with a packet that is ahead of a stage: to its
// function, to its host, or nothing, which drops it.
func (b *builder) onward(s stage, pass bool) flow.Entry {
	switch {
	case !pass:
		return flow.Entry{}
	case s.over():
		return flow.Entry{Goto: flow.TableDeliver}
	}
	return flow.Entry{Goto: flow.TableChains, Metadata: s.metadata(), MetaMask: metadataMask}
}

// chosen has packets in a chain go to the copy of their next function that
// their client has.
func (b *builder) chosen(c *chain) {
	for _, d := range directions {
		for i, f := range c.functions {
			alive := b.alive(f)
			at := flow.Match{}.WithMetadata(stage{c, d, i}.metadata(), metadataMask)
			switch {
			case len(alive) == 0:
			case len(f) == 1:
				b.hand(flow.TableChains, at, f[0].enters(d), nil)
			default:
				for n := range cells {
					m := c.cell(d, n)
					m = m.WithMetadata(stage{c, d, i}.metadata(), metadataMask)
					b.hand(flow.TableChains, m, f[chooses(n, len(f), alive)].enters(d), nil)
				}
				if later, ok := c.cell(d, 0).LaterFragments(); ok && b.ovs { // of IPv6: those of IPv4 are in cell 0
					b.hand(flow.TableChains, later.WithMetadata(stage{c, d, i}.metadata(), metadataMask), f[chooses(0, len(f), alive)].enters(d), nil)
				}
			}
		}
	}
}

// hand adds the entry by which untagged packets go to a port, here or at another
// switch.
func (b *builder) hand(table uint8, m flow.Match, to flow.Location, tagged *flow.Location) {
	if to.Switch == b.sw {
		b.add(table, flow.PriorityChain, m, flow.Entry{Apply: []flow.Action{flow.Output(to.Port)}})
		return
	}
	target := to
	if tagged != nil {
		target = *tagged
	}
	tag, ok := b.tags.of(target)
	out, reached := b.next[b.sw][to.Switch]
	if ok && reached {
		b.add(table, flow.PriorityChain, m, flow.Entry{Apply: []flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(tag), flow.Output(out)}})
	}
}

// returned has what comes out of functions here go on in its chain; what is of none is
// dropped. A function may be one of several chains: whose a packet is, its match says, and
// of those that overlap the priority, as where it came in.
func (b *builder) returned(c *chain) {
	for i, f := range c.functions {
		for _, p := range f {
			for _, at := range p.ports() {
				if at.Switch == b.sw {
					b.guard(at.Port)
				}
			}
			for _, d := range directions {
				if at := p.enters(1 - d); at.Switch == b.sw {
					s, pass := b.ahead(stage{c, d, i}.step())
					for _, m := range b.untagged(c, d) {
						b.add(flow.TableForward, flow.PriorityChainReturned+c.rank(d), m.WithInPort(at.Port), b.onward(s, pass))
					}
				}
			}
		}
	}
}

// guard lets nothing pass that comes in by a function's port but IP packets of chains, and
// probes.
func (b *builder) guard(port flow.Port) {
	from := flow.Match{}.WithInPort(port)
	b.add(flow.TableIngress, flow.PriorityChainPort, from, flow.Entry{})
	if b.cfg.ProbeInterval > 0 {
		b.add(flow.TableIngress, flow.PriorityChainBack, from.WithEthType(flow.EthTypeProbe), flow.Entry{Apply: []flow.Action{flow.Output(flow.PortController)}})
	}
	for _, t := range []uint16{flow.EthTypeIPv4, flow.EthTypeIPv6} {
		ip := from.WithEthType(t).WithoutVLAN().WithEthDstMasked(flow.MAC{}, flow.MAC{1})
		b.add(flow.TableIngress, flow.PriorityChainBack, ip, flow.Entry{Goto: flow.TableForward})
	}
	b.add(flow.TableForward, flow.PriorityChainReturned, from, flow.Entry{})
}

// tagged has packets on their way between switches go on.
func (b *builder) tagged() {
	var links []flow.Port
	for _, l := range linksFrom(b.net, b.sw) {
		if l.Dst.Switch != b.sw {
			links = append(links, l.Src.Port)
		}
	}
	slices.Sort(links)
	for _, g := range b.tags.list() {
		to := g.at
		m := flow.Match{}.WithVLAN(g.tag)
		b.add(flow.TableIngress, flow.PriorityChainForged, m, flow.Entry{})
		e := flow.Entry{Apply: []flow.Action{flow.PopVLAN(), flow.Output(to.Port)}}
		switch out, reached := b.next[b.sw][to.Switch]; {
		case to.Switch == b.sw && to.Port == 0:
			e = flow.Entry{Apply: []flow.Action{flow.PopVLAN()}, Goto: flow.TableDeliver}
		case to.Switch == b.sw:
		case !reached:
			continue
		default:
			e = flow.Entry{Apply: []flow.Action{flow.Output(out)}}
		}
		for _, in := range links {
			b.add(flow.TableIngress, flow.PriorityChainTag, m.WithInPort(in), e)
		}
	}
}

// deliver has packets behind the last function go to their host: all, where there
// are functions; elsewhere those of the switch itself.
func (b *builder) deliver() {
	macs := slices.Collect(maps.Keys(b.at[b.sw]))
	if slices.Contains(b.functional(), b.sw) {
		macs = nil
		for _, list := range b.at {
			macs = slices.AppendSeq(macs, maps.Keys(list))
		}
	}
	slices.SortFunc(macs, func(x, y flow.MAC) int { return cmp.Compare(x.Uint64(), y.Uint64()) })
	for _, mac := range macs {
		if at := b.net.Host(nib.HostKey{MAC: mac}).Is.GetAt().Flow(); !b.taken[at] {
			b.hand(flow.TableDeliver, flow.Match{}.WithEthDst(mac), at, &flow.Location{Switch: at.Switch})
		}
	}
}
