package chain

import (
	"cmp"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// The bounds of one chain, and of the numbers of chains.
const (
	functionsMax = 32
	copiesMax    = cells
	numberMax    = 1000
	usual        = 100 // priority
	priorityMax  = (flow.PriorityChainTop - flow.PriorityChain) / 2
)

// A chain is one chain, parsed and checked.
type chain struct {
	said      *api.ServiceChain // as stored and listed; read-only
	match     [2]flow.Match     // forward, and back
	functions []function
	block     bool
}

// A function is the copies of a network function.
type function []copyOf

// copyOf is one copy: where packets go in and come out, forward.
type copyOf struct{ in, out flow.Location }

// enters returns where packets of a direction go into the copy.
func (c copyOf) enters(d direction) flow.Location {
	if d == back {
		return c.out
	}
	return c.in
}

// direction is one of a chain: from its client, or back.
type direction int

const (
	forward direction = iota
	back
)

var directions = [...]direction{forward, back}

// mirrored are the fields that differ between the directions.
var mirrored = [...][2]flow.Field{
	{flow.FieldEthSrc, flow.FieldEthDst}, {flow.FieldIPv4Src, flow.FieldIPv4Dst}, {flow.FieldIPv6Src, flow.FieldIPv6Dst},
	{flow.FieldTCPSrc, flow.FieldTCPDst}, {flow.FieldUDPSrc, flow.FieldUDPDst}, {flow.FieldSCTPSrc, flow.FieldSCTPDst},
}

// reversed returns the match of the packets back.
func reversed(m flow.Match) flow.Match {
	r := m
	put := func(f, from flow.Field) {
		value, mask, _ := m.Get(from)
		r.PutMasked(f, value, mask) // a mask of zeros removes it
	}
	for _, f := range mirrored {
		if m.Set.Has(f[0]) || m.Set.Has(f[1]) { // ports of other protocols are at the same place
			put(f[0], f[1])
			put(f[1], f[0])
		}
	}
	r.Normalize()
	return r
}

// readChain reads and checks a chain. It makes of the message one form of what it says,
// so that equal chains are equal messages; it keeps the number.
func readChain(m *api.ServiceChain) (*chain, error) {
	c := &chain{said: m}
	m.State, m.Reason = "", ""
	for _, read := range []func(*api.ServiceChain) error{c.readMatch, c.readHash, c.readFunctions} {
		if err := read(m); err != nil {
			return nil, err
		}
	}
	m.Priority = cmp.Or(m.Priority, usual)
	if m.Priority > priorityMax {
		return nil, fmt.Errorf("priority %d: want 1 to %d", m.Priority, priorityMax)
	}
	switch m.OnFailure = cmp.Or(m.OnFailure, "bypass"); m.OnFailure {
	case "bypass":
	case "block":
		c.block = true
	default:
		return nil, fmt.Errorf("on_failure %q: want bypass or block", m.OnFailure)
	}
	return c, nil
}

// needs returns what a chain asks of the switches at which its packets enter. Later
// fragments have no ports: if a switch cannot be asked for them, they pass by its functions.
func (c *chain) needs() []api.Need {
	if _, ok := c.match[forward].LaterFragments(); ok {
		return []api.Need{api.NeedChains, api.NeedFragments}
	}
	return []api.Need{api.NeedChains}
}

// remedy says what chain switches can carry out that lack what this one needs.
func (c *chain) remedy() string {
	if len(c.needs()) > 1 {
		return "its packets would get past the functions from hosts there; a chain without ports needs no fragments"
	}
	return "its packets would get past the functions from hosts there"
}

// same reports whether two chains say the same.
func (c *chain) same(o *chain) bool {
	x, y := proto.CloneOf(c.said), proto.CloneOf(o.said)
	x.Number, y.Number = 0, 0
	return proto.Equal(x, y)
}

// readMatch reads the match and makes that of the packets back.
func (c *chain) readMatch(m *api.ServiceChain) error {
	match, err := flow.ParseMatch(m.Match)
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	match.Normalize()
	allowed := flow.FieldEthType.Bit() | flow.FieldIPProto.Bit() | flow.FieldIPDSCP.Bit()
	for _, f := range mirrored {
		allowed |= f[0].Bit() | f[1].Bit()
	}
	if match.Set&^allowed != 0 {
		return fmt.Errorf("match %v: want addresses, the protocol, ports and ip_dscp of IP packets only", match)
	}
	if t := match.Key.EthType; t != flow.EthTypeIPv4 && t != flow.EthTypeIPv6 {
		return fmt.Errorf("match %v: want eth_type 0x0800 (IPv4) or 0x86dd (IPv6), or what implies it", match)
	}
	for _, f := range []flow.Field{flow.FieldEthSrc, flow.FieldEthDst} {
		if value, _, set := match.Get(f); set && (match.Masked.Has(f) || flow.MAC(value[:6]).Multicast()) {
			return fmt.Errorf("match: %v: want the Ethernet address of a host", f)
		}
	}
	back := reversed(match)
	if back == match {
		return fmt.Errorf("match %v: it is the same for packets back; name an address or port of one end", match)
	}
	m.Match = match.Text()
	c.match = [2]flow.Match{match, back}
	for i := range c.match {
		if !c.match[i].Set.Has(flow.FieldEthDst) {
			c.match[i] = c.match[i].WithEthDstMasked(flow.MAC{}, flow.MAC{1}) // unicast
		}
		if err := c.match[i].Check(); err != nil {
			return fmt.Errorf("match %v: %w", c.match[i], err)
		}
	}
	return nil
}

// readFunctions reads the functions and their ports.
func (c *chain) readFunctions(m *api.ServiceChain) error {
	if len(m.Functions) == 0 || len(m.Functions) > functionsMax {
		return fmt.Errorf("%d functions: want 1 to %d", len(m.Functions), functionsMax)
	}
	used := map[flow.Location]bool{}
	for i, f := range m.Functions {
		if n := len(f.GetCopies()); n == 0 || n > copiesMax {
			return fmt.Errorf("function %d: %d copies: want 1 to %d", i+1, n, copiesMax)
		}
		var copies function
		for _, p := range f.Copies {
			p.Alive, p.By, p.Since = false, "", ""
			in, err := place(p.GetIn())
			if err != nil {
				return fmt.Errorf("function %d: %w", i+1, err)
			}
			out := in
			if p.Out != nil {
				if out, err = place(p.Out); err != nil {
					return fmt.Errorf("function %d: %w", i+1, err)
				}
			}
			if p.In, p.Out = api.NewLocation(in), nil; out != in {
				p.Out = api.NewLocation(out)
			}
			for _, at := range (copyOf{in, out}).ports() {
				if used[at] {
					return fmt.Errorf("port %v is used twice", at)
				}
				used[at] = true
			}
			copies = append(copies, copyOf{in, out})
		}
		if len(copies) > 1 && m.Hash == "" {
			return fmt.Errorf("function %d: nothing chooses among its copies: the match names the client's address and port; leave one out", i+1)
		}
		c.functions = append(c.functions, copies)
	}
	return nil
}

// place returns a port of a switch.
func place(l *api.Location) (flow.Location, error) {
	sw, err := flow.ParseDPID(l.GetDpid())
	if err != nil {
		return flow.Location{}, err
	}
	if p := flow.Port(l.GetPort()); p.Physical() {
		return flow.Location{Switch: sw, Port: p}, nil
	}
	return flow.Location{}, fmt.Errorf("port %d of switch %v: want 1 to %d", l.GetPort(), sw, uint32(flow.PortMax))
}

// ports returns the ports of a copy: one, or two.
func (c copyOf) ports() []flow.Location {
	if c.in == c.out {
		return []flow.Location{c.in}
	}
	return []flow.Location{c.in, c.out}
}

// conflict returns why two chains cannot both be. They may have the same functions: these
// send on the packets of both.
func (c *chain) conflict(o *chain) error {
	for p := range o.copies() {
		for q := range c.copies() {
			if at, ok := p.divides(q); ok {
				return fmt.Errorf("port %v is one of chain %s, where it is that of %v; give the function the same two ports in both", at, o.said.Name, p)
			}
		}
	}
	if c.said.Priority != o.said.Priority {
		return nil
	}
	for i := range c.match {
		for j := range o.match {
			if c.match[i].Overlaps(&o.match[j]) {
				return fmt.Errorf("its match overlaps with that of chain %s, which has priority %d, too; give one of them another", o.said.Name, o.said.Priority)
			}
		}
	}
	return nil
}

// copies returns those of all functions, in order.
func (c *chain) copies() iter.Seq[copyOf] {
	return func(yield func(copyOf) bool) {
		for _, f := range c.functions {
			for _, p := range f {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// divides returns a port that two copies share which do not share both of theirs.
func (c copyOf) divides(o copyOf) (flow.Location, bool) {
	if c == o || c == (copyOf{o.out, o.in}) {
		return flow.Location{}, false
	}
	for _, at := range c.ports() {
		if at == o.in || at == o.out {
			return at, true
		}
	}
	return flow.Location{}, false
}

func (c copyOf) String() string {
	if c.in == c.out {
		return c.in.String()
	}
	return c.in.String() + "," + c.out.String()
}

func isUp(p *nib.Port) bool { return p != nil && p.Is.Up }
