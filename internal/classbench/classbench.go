// Package classbench makes sets of filter rules, and packets for them, that are
// like those of real routers and firewalls. It follows ClassBench (Taylor and
// Turner: "ClassBench: a packet classification benchmark", INFOCOM 2005): a
// seed is the distributions of prefix lengths, classes of ports and protocols
// of a kind of rule set, here in short tables of our own; addresses are drawn
// from few networks, so that rules nest and overlap; packets are drawn from the
// rules, some of which get most of them.
//
// Benches and tests import it; it imports the standard library only.
package classbench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
)

// Seed is a kind of rule set.
type Seed string

// The seeds: access lists of routers, firewalls, and IP chains of hosts.
const (
	ACL Seed = "acl"
	FW  Seed = "fw"
	IPC Seed = "ipc"
)

// Seeds are all of them.
var Seeds = []Seed{ACL, FW, IPC}

// Rule is one rule; rules that come earlier in a set decide first.
type Rule struct {
	Src, Dst     netip.Prefix
	Proto        uint8 // 0: any
	SrcLo, SrcHi uint16
	DstLo, DstHi uint16
	Deny         bool
}

// Packet is the header of a packet.
type Packet struct {
	Src, Dst         netip.Addr
	Proto            uint8
	SrcPort, DstPort uint16
}

// share is a value and how often it comes, of all.
type share struct {
	value  int
	weight float64
}

// The classes of ports, as in ClassBench.
const (
	wildcard  = iota
	high      // 1024-65535
	low       // 0-1023
	arbitrary // some other range
	exact
)

// profile is the distributions of a seed.
type profile struct {
	src, dst         []share // prefix lengths
	srcPort, dstPort []share // classes of ports
	proto            []share
	networks         int // that addresses are drawn from, for a thousand rules
	deny             float64
}

var profiles = map[Seed]profile{
	ACL: {
		src:     []share{{0, .08}, {8, .02}, {16, .08}, {20, .06}, {22, .05}, {24, .22}, {26, .04}, {27, .05}, {28, .06}, {29, .03}, {30, .05}, {31, .02}, {32, .24}},
		dst:     []share{{0, .02}, {16, .05}, {21, .04}, {23, .05}, {24, .20}, {27, .06}, {28, .06}, {29, .05}, {30, .09}, {32, .38}},
		srcPort: []share{{wildcard, .96}, {high, .02}, {exact, .02}},
		dstPort: []share{{wildcard, .30}, {exact, .58}, {high, .05}, {arbitrary, .06}, {low, .01}},
		proto:   []share{{6, .66}, {17, .20}, {1, .03}, {0, .11}}, networks: 60, deny: .4,
	},
	FW: {
		src:     []share{{0, .34}, {8, .01}, {16, .07}, {18, .02}, {21, .03}, {24, .13}, {27, .04}, {28, .04}, {30, .03}, {32, .29}},
		dst:     []share{{0, .16}, {8, .01}, {15, .02}, {16, .06}, {19, .02}, {24, .17}, {26, .03}, {28, .05}, {30, .04}, {32, .44}},
		srcPort: []share{{wildcard, .74}, {high, .17}, {exact, .07}, {arbitrary, .02}},
		dstPort: []share{{wildcard, .29}, {exact, .47}, {high, .13}, {arbitrary, .09}, {low, .02}},
		proto:   []share{{6, .56}, {17, .29}, {1, .05}, {47, .01}, {50, .02}, {0, .07}}, networks: 90, deny: .55,
	},
	IPC: {
		src:     []share{{0, .14}, {8, .01}, {16, .07}, {19, .02}, {22, .04}, {24, .18}, {25, .03}, {27, .05}, {28, .05}, {30, .05}, {32, .36}},
		dst:     []share{{0, .12}, {8, .01}, {16, .07}, {20, .03}, {23, .03}, {24, .16}, {26, .03}, {28, .04}, {29, .04}, {32, .47}},
		srcPort: []share{{wildcard, .81}, {high, .06}, {exact, .11}, {arbitrary, .02}},
		dstPort: []share{{wildcard, .42}, {exact, .46}, {high, .04}, {arbitrary, .07}, {low, .01}},
		proto:   []share{{6, .49}, {17, .33}, {1, .06}, {50, .01}, {0, .11}}, networks: 90, deny: .5,
	},
}

// services are the ports that rules ask for mostly.
var services = []uint16{80, 443, 22, 25, 53, 110, 143, 123, 161, 389, 445, 1433, 1521, 3306, 3389, 5060, 5432, 8080, 21, 23, 69, 137, 139, 514, 179, 2049, 6000, 1720, 7070, 8443}

// Generate returns n distinct rules of a seed; the same number gives the same
// rules. It panics if there is no such seed.
func Generate(seed Seed, n int, number uint64) []Rule {
	p, ok := profiles[seed]
	if !ok {
		panic(fmt.Sprintf("classbench: seed %q: want one of %v", seed, Seeds))
	}
	r := rand.New(rand.NewPCG(number, 0x636c617373))
	networks := make([]uint32, max(4, int(float64(p.networks)*math.Sqrt(float64(n)/10))))
	for i := range networks {
		networks[i] = r.Uint32()
		if i > 0 && r.IntN(3) > 0 { // beside or within an earlier one
			keep := 8 + r.IntN(17)
			earlier := networks[r.IntN(i)]
			networks[i] = earlier&(math.MaxUint32<<(32-keep)) | networks[i]&^(math.MaxUint32<<(32-keep))
		}
	}
	seen := make(map[Rule]bool, n)
	rules := make([]Rule, 0, n)
	for len(rules) < n {
		rule := Rule{Proto: uint8(draw(r, p.proto)), SrcHi: 65535, DstHi: 65535}
		rule.Src, rule.Dst = drawPrefix(r, networks, draw(r, p.src)), drawPrefix(r, networks, draw(r, p.dst))
		if rule.Proto == 6 || rule.Proto == 17 {
			rule.SrcLo, rule.SrcHi = drawPorts(r, draw(r, p.srcPort))
			rule.DstLo, rule.DstHi = drawPorts(r, draw(r, p.dstPort))
		}
		if rule.Src.Bits() == 0 && rule.Dst.Bits() == 0 && rule.DstLo == 0 && rule.DstHi == 65535 || seen[rule] {
			continue // a rule about everything would hide those after it
		}
		seen[rule] = true
		rule.Deny = r.Float64() < p.deny
		rules = append(rules, rule)
	}
	return rules
}

func draw(r *rand.Rand, list []share) int {
	x := r.Float64()
	for _, s := range list {
		if x -= s.weight; x < 0 {
			return s.value
		}
	}
	return list[len(list)-1].value
}

func drawPrefix(r *rand.Rand, networks []uint32, length int) netip.Prefix {
	a := networks[r.IntN(len(networks))]
	if length > 24 {
		a = a&0xffffff00 | r.Uint32()&0xff
	} else if length > 16 && r.IntN(3) == 0 {
		a = a&0xffff0000 | r.Uint32()&0xffff
	}
	return netip.PrefixFrom(ipv4(a), length).Masked()
}

func drawPorts(r *rand.Rand, class int) (lo, hi uint16) {
	switch class {
	case high:
		return 1024, 65535
	case low:
		return 0, 1023
	case arbitrary:
		a := uint16(r.IntN(60000) + 1)
		return a, a + uint16(1+r.IntN([]int{10, 100, 1000, 5000}[r.IntN(4)]))
	case exact:
		p := services[int(float64(len(services))*r.Float64()*r.Float64())]
		if r.IntN(5) == 0 {
			p = uint16(1 + r.IntN(49151))
		}
		return p, p
	}
	return 0, 65535
}

func ipv4(a uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

// Trace returns n packets for rules: each is in a rule, of which some get many
// (a Pareto distribution, as ClassBench's trace generator has it).
func Trace(rules []Rule, n int, number uint64) []Packet {
	r := rand.New(rand.NewPCG(number, 0x7472616365))
	order := r.Perm(len(rules))
	packets := make([]Packet, n)
	for i := range packets {
		at := int(math.Pow(1-r.Float64(), -1)) - 1 + r.IntN(1+len(rules)/4) // a heavy head on an even spread
		rule := &rules[order[at%len(rules)]]
		p := Packet{Src: within(r, rule.Src), Dst: within(r, rule.Dst), Proto: rule.Proto}
		if p.Proto == 0 {
			p.Proto = []uint8{6, 17, 1}[r.IntN(3)]
		}
		if p.Proto == 6 || p.Proto == 17 {
			p.SrcPort = rule.SrcLo + uint16(r.IntN(int(rule.SrcHi-rule.SrcLo)+1))
			p.DstPort = rule.DstLo + uint16(r.IntN(int(rule.DstHi-rule.DstLo)+1))
		}
		packets[i] = p
	}
	return packets
}

// within returns an address of a prefix.
func within(r *rand.Rand, p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	a := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	return ipv4(a | r.Uint32()&uint32(uint64(math.MaxUint32)>>p.Bits()))
}

// Match returns what a rule asks for as OpenFlow's names and values, ports that
// are ranges as LO-HI.
func (r *Rule) Match() map[string]string {
	m := map[string]string{"eth_type": "0x0800"}
	if r.Src.Bits() > 0 {
		m["ipv4_src"] = r.Src.String()
	}
	if r.Dst.Bits() > 0 {
		m["ipv4_dst"] = r.Dst.String()
	}
	if r.Proto != 0 {
		m["ip_proto"] = strconv.Itoa(int(r.Proto))
	}
	name := map[uint8]string{6: "tcp_", 17: "udp_"}[r.Proto]
	ports := func(side string, lo, hi uint16) {
		switch {
		case name == "" || lo == 0 && hi == 65535:
		case lo == hi:
			m[name+side] = strconv.Itoa(int(lo))
		default:
			m[name+side] = fmt.Sprintf("%d-%d", lo, hi)
		}
	}
	ports("src", r.SrcLo, r.SrcHi)
	ports("dst", r.DstLo, r.DstHi)
	return m
}

// Matches reports whether a rule is about a packet.
func (r *Rule) Matches(p *Packet) bool {
	return (r.Proto == 0 || r.Proto == p.Proto) && r.Src.Contains(p.Src) && r.Dst.Contains(p.Dst) &&
		p.SrcPort >= r.SrcLo && p.SrcPort <= r.SrcHi && p.DstPort >= r.DstLo && p.DstPort <= r.DstHi
}
