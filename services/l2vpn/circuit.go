package l2vpn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The types of circuits.
const (
	vpws = "vpws"
	vpls = "vpls"
)

// mostDelay is the longest bound on the delay of a circuit, microseconds.
const mostDelay = 10_000_000

// mostKbps is the highest rate of a circuit, 1 Tbit/s.
const mostKbps = 1_000_000_000

// A circuit is a circuit as it is stored: the message with all that is wanted
// and kept, and what is read of it. Nobody writes to one that is in the store.
type circuit struct {
	*api.Circuit
	ends     []end // in the order of Ends
	leaves   map[end]bool
	controls []control
	mirrors  []mirror
	maps     []codeMap
	yellow   []codePoint
	meps     []mep

	from, until time.Time // zero: from ever, for ever
	loopUntil   time.Time
}

// readCircuit returns what a client wants, in one form.
func readCircuit(m *api.Circuit) (*circuit, error) {
	if err := api.CheckName("name", m.GetName()); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	wrong := func(format string, args ...any) (*circuit, error) {
		return nil, api.Errorf(codes.InvalidArgument, "circuit %s: "+format, append([]any{m.Name}, args...)...)
	}
	c := &circuit{Circuit: wanted(m)}
	for _, d := range []struct {
		key   string
		value *string
		among []string // the first is the default
	}{
		{"type", &c.Type, []string{vpws, vpls}},
		{"payload", &c.Payload, []string{"ethernet", ip}},
		{"transport", &c.Transport, []string{"mpls", "vxlan", "gre"}},
		{"strategy", &c.Strategy, []string{"cost", "latency", "widest"}},
	} {
		if *d.value == "" {
			*d.value = d.among[0]
		}
		if !slices.Contains(d.among, *d.value) {
			return wrong("%s %.20q: want one of %s", d.key, *d.value, strings.Join(d.among, ", "))
		}
	}
	for i, text := range c.Pin {
		sw, err := flow.ParseDPID(text)
		if err != nil {
			return wrong("pin: %w", err)
		}
		c.Pin[i] = sw.String()
	}
	switch {
	case c.Priority != nil && *c.Priority > 7:
		return wrong("priority is %d: want 0 to 7", *c.Priority)
	case c.RevertAfterS < -1 || c.RevertAfterS > 86400:
		return wrong("revert_after_s is %d: want -1 (never) to 86400", c.RevertAfterS)
	case c.MaxDelayUs > mostDelay:
		return wrong("max_delay_us is %d: want at most %d", c.MaxDelayUs, mostDelay)
	case c.ToleratedDelayUs > mostDelay:
		return wrong("tolerated_delay_us is %d: want at most %d", c.ToleratedDelayUs, mostDelay)
	case c.ToleratedDelayUs > 0 && (c.MaxDelayUs == 0 || c.ToleratedDelayUs <= c.MaxDelayUs):
		return wrong("tolerated_delay_us is %d: want more than max_delay_us, %d, which is to be met first", c.ToleratedDelayUs, c.MaxDelayUs)
	case c.MinMtu > mostMTU:
		return wrong("min_mtu is %d: want at most %d", c.MinMtu, mostMTU)
	case c.DiverseFrom == c.Name:
		return wrong("diverse_from: want another circuit")
	}
	if c.RateKbps > mostKbps {
		return wrong("rate_kbps is %d: want at most %d", c.RateKbps, mostKbps)
	}
	for i, text := range c.Ends {
		e, err := parseEnd(text)
		if err != nil {
			return wrong("%w", err)
		}
		for _, o := range c.ends {
			if why := o.unjoined(e); why != "" {
				return wrong("ends %v and %v %s", o, e, why)
			}
		}
		c.ends = append(c.ends, e)
		c.Ends[i] = e.String()
	}
	if n := len(c.ends); c.Type == vpws && n != 2 {
		return wrong("it has %d ends: a vpws has two", n)
	}
	if i := slices.IndexFunc(c.ends, func(e end) bool { return e.list != "" }); i >= 0 && c.ip() {
		return wrong("end %v: payload ip drops tagged frames, and those of a list of VLANs keep their tags; want payload ethernet, or one VLAN", c.ends[i])
	}
	if c.Type == vpls && c.ip() {
		return wrong("payload ip: a vpls tells customers' devices by the Ethernet addresses that ip does without; want a vpws, or payload ethernet")
	}
	if c.StormKbps > mostStorm {
		return wrong("storm_kbps %d: want at most %d, or 0 for l2vpn.storm_kbps", c.StormKbps, mostStorm)
	}
	if c.Type == vpls {
		if err := checkLAN(c); err != nil {
			return wrong("%w", err)
		}
		if err := c.readLeaves(); err != nil {
			return wrong("%w", err)
		}
	}
	for _, read := range []func(*circuit) error{readControls, readMirrors, readMaps, readColours, readMEPs} {
		if err := read(c); err != nil {
			return wrong("%w", err)
		}
	}
	if err := c.readTimes(); err != nil {
		return wrong("%w", err)
	}
	if err := c.readLoops(); err != nil {
		return wrong("%w", err)
	}
	return c, supported(c)
}

// The most that a vpls may have.
const (
	lanEnds = 256
	lanMACs = 65536
)

// mostStorm is the most that an end may send to all, kbit/s.
const mostStorm = 100_000_000

// checkLAN returns what is wrong with a vpls.
func checkLAN(c *circuit) error {
	switch n := len(c.ends); {
	case n < 2 || n > lanEnds:
		return fmt.Errorf("it has %d ends: a vpls has 2 to %d", n, lanEnds)
	case c.MaxMacs > lanMACs:
		return fmt.Errorf("max_macs %d: want at most %d, or 0 for l2vpn.macs", c.MaxMacs, lanMACs)
	case c.Tree == "":
		c.Tree = "steiner"
	case c.Tree != "steiner" && c.Tree != "random":
		return fmt.Errorf("tree %.20q: want steiner or random", c.Tree)
	}
	return nil
}

// readLeaves reads which ends are leaves.
func (c *circuit) readLeaves() error {
	c.leaves = map[end]bool{}
	for i, text := range c.Leaves {
		e, err := parseEnd(text)
		switch {
		case err != nil:
			return fmt.Errorf("leaf: %w", err)
		case !slices.Contains(c.ends, e):
			return fmt.Errorf("leaf %v: is none of its ends", e)
		}
		c.leaves[e], c.Leaves[i] = true, e.String()
	}
	slices.Sort(c.Leaves)
	if c.Leaves = slices.Compact(c.Leaves); len(c.leaves) == len(c.ends) {
		return fmt.Errorf("all its ends are leaves, which reach no other leaf: leave one out, which is a root then")
	}
	return nil
}

// leaf reports whether an end is a leaf.
func (c *circuit) leaf(i int) bool { return c.leaves[c.ends[i]] }

// supported returns an error if a circuit asks for what is not there.
func supported(c *circuit) error {
	var what string
	switch {
	case c.Type != vpls && (c.MaxMacs != 0 || c.Tree != "" || len(c.Leaves) > 0):
		what = "max_macs, tree and leaves, which are of a vpls,"
	case c.NeverMove && (c.Type == vpls || c.local()):
		what = "never_move, which is of a vpws between two switches,"
	case overlaid(c.Transport) && chosen(c) != "":
		return api.Errorf(codes.InvalidArgument, "circuit %s: %s cannot be had with transport %s, since the nodes' own routing chooses the way: leave it out, or use transport mpls", c.Name, chosen(c), c.Transport)
	default:
		return nil
	}
	return api.Errorf(codes.InvalidArgument, "circuit %s: %s cannot be had with this service", c.Name, what)
}

// wanted returns the part of a message that a client sets.
func wanted(m *api.Circuit) *api.Circuit {
	return &api.Circuit{Name: m.Name, Type: m.Type, Ends: slices.Clone(m.Ends), Payload: m.Payload, Transport: m.Transport,
		RateKbps: m.RateKbps, Protect: m.Protect, RevertAfterS: m.RevertAfterS, MaxDelayUs: m.MaxDelayUs, DiverseFrom: m.DiverseFrom,
		IncludeAny: m.IncludeAny, IncludeAll: m.IncludeAll, ExcludeAny: m.ExcludeAny, Pin: slices.Clone(m.Pin), Priority: m.Priority,
		From: m.From, Until: m.Until, MinMtu: m.MinMtu, MaxMacs: m.MaxMacs, StormKbps: m.StormKbps, Tree: m.Tree, Loops: slices.Clone(m.Loops), LoopsUntil: m.LoopsUntil,
		NeverMove: m.NeverMove, Leaves: slices.Clone(m.Leaves), Oam: m.Oam, L2Cp: slices.Clone(m.L2Cp), Mirrors: slices.Clone(m.Mirrors),
		ExcessKbps: m.ExcessKbps, Yellow: slices.Clone(m.Yellow), Maps: slices.Clone(m.Maps), Meps: slices.Clone(m.Meps),
		Strategy: m.Strategy, ToleratedDelayUs: m.ToleratedDelayUs}
}

// parse returns a stored circuit.
func parse(m *api.Circuit) (*circuit, error) {
	c, err := readCircuit(m)
	if err != nil {
		return nil, err
	}
	if len(m.Members) != len(c.ends) || m.Id == 0 {
		return nil, api.Errorf(codes.InvalidArgument, "circuit %s: it has %d members and the number %d", m.Name, len(m.Members), m.Id)
	}
	for i, x := range m.Members {
		if !c.labelled(x) || x.Meter != 0 && flow.MeterOwner(x.Meter) != flow.OwnerCircuits || x.YellowMeter != 0 && flow.MeterOwner(x.YellowMeter) != flow.OwnerCircuits {
			return nil, api.Errorf(codes.InvalidArgument, "circuit %s: end %v has labels %d, %d and %d, and meter %d", m.Name, c.ends[i], x.Label, x.ArpLabel, x.Ipv6Label, x.Meter)
		}
	}
	for _, l := range m.TreeLabels {
		if l.Label < flow.CircuitLabels || l.Label > flow.CircuitLabelsLast {
			return nil, api.Errorf(codes.InvalidArgument, "circuit %s: its tree has label %d at switch %s", m.Name, l.Label, l.Dpid)
		}
	}
	c.Id, c.Members, c.TreeLabels, c.Planned = m.Id, m.Members, m.TreeLabels, m.Planned
	c.Avoids, c.AvoidsUntil, c.Share = m.Avoids, m.AvoidsUntil, m.Share
	return c, nil
}

// copy returns a circuit with what clients set, and nothing that the service gives.
func (c *circuit) copy() *circuit {
	n := *c
	n.Circuit = wanted(c.Circuit)
	return &n
}

// follow has a circuit between the same switches as before, by the same transport, keep the
// way that was chosen for it.
func (c *circuit) follow(old *circuit) {
	if slices.Equal(c.edges(), old.edges()) && c.Transport == old.Transport && c.Type == vpws {
		c.Avoids, c.AvoidsUntil, c.Share = old.Avoids, old.AvoidsUntil, old.Share
	}
}

// message returns the circuit as it is stored.
func (c *circuit) message() *api.Circuit { return c.Circuit }

// switches returns the switches of the ends, and of the tree of a vpls.
func (c *circuit) switches() (list []flow.DPID) {
	for _, e := range c.ends {
		list = append(list, e.at.Switch)
	}
	for _, a := range c.arcs() {
		list = append(list, a.to)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// local reports whether both ends of a vpws are on one switch.
func (c *circuit) local() bool { return c.Type == vpws && len(c.switches()) == 1 }

// labelsOf returns the labels of an end of a circuit.
func (c *circuit) labelsOf(m *api.CircuitMember) []*uint32 {
	if c.ip() {
		return []*uint32{&m.Label, &m.ArpLabel, &m.Ipv6Label}
	}
	return []*uint32{&m.Label}
}

// labelled reports whether an end has all its labels.
func (c *circuit) labelled(m *api.CircuitMember) bool {
	for _, l := range c.labelsOf(m) {
		if *l < flow.CircuitLabels || *l > flow.CircuitLabelsLast {
			return false
		}
	}
	return true
}

// inherit gives an end the labels that it had before. After a change of payload it
// has others, so that no packet is taken for what it is not while switches change.
func (c *circuit) inherit(m *api.CircuitMember, old *circuit, had *api.CircuitMember) {
	if c.Payload == old.Payload {
		m.Label, m.ArpLabel, m.Ipv6Label = had.Label, had.ArpLabel, had.Ipv6Label
	}
}
