package qos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// read reads policies as the service does, meters given in their order.
func read(t *testing.T, list ...*api.QosPolicy) []*policy {
	t.Helper()
	var out []*policy
	for i, m := range list {
		p, err := readPolicy(m)
		if err != nil {
			t.Fatal(err)
		}
		if p.said.Limit != nil {
			p.said.Meter = uint32(i + 1)
		}
		out = append(out, p)
	}
	return out
}

func u32(n uint32) *uint32 { return &n }

// at returns the places of h1, at port 1 of switch 1, in VLAN 7 as well on
// switch 2.
func at() *object.Hosts {
	p := object.NewHosts()
	p.Changed(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: "02:00:00:00:00:01", At: &api.Location{Dpid: "1", Port: 1}, Ipv4: []string{"10.0.0.1"}}})
	p.Changed(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: "02:00:00:00:00:01", Vlan: 7, At: &api.Location{Dpid: "2", Port: 4}, Ipv6: []string{"fd00::1"}}})
	return p
}

func TestCompile(t *testing.T) {
	limit := &api.QosLimit{RateKbps: 1000}
	for _, c := range []struct {
		name   string
		policy *api.QosPolicy
		sw     flow.DPID
		want   []string
	}{
		{"all", &api.QosPolicy{Limit: limit}, 1, []string{"any meter:1"}},
		{"class", &api.QosPolicy{Class: &api.QosClass{Protocol: "udp", DstPort: 53}, Limit: limit}, 1, []string{
			"eth_type=0x0800,ip_proto=17,udp_dst=53 meter:1", "eth_type=0x86dd,ip_proto=17,udp_dst=53 meter:1"}},
		{"icmp", &api.QosPolicy{Class: &api.QosClass{Protocol: "icmp"}, Queue: u32(3)}, 1, []string{
			"eth_type=0x0800,ip_proto=1 meter:0 set_queue:3", "eth_type=0x86dd,ip_proto=58 meter:0 set_queue:3"}},
		{"class and match", &api.QosPolicy{Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.0/8"}, Class: &api.QosClass{Dscp: u32(46)}, Limit: limit}, 1,
			[]string{"eth_type=0x0800,ip_dscp=46,ipv4_dst=10.0.0.0/8 meter:1"}},
		{"mark is for IP", &api.QosPolicy{MarkDscp: u32(10)}, 1, []string{
			"eth_type=0x0800 meter:0 set_field:10->ip_dscp", "eth_type=0x86dd meter:0 set_field:10->ip_dscp"}},
		{"limit and mark", &api.QosPolicy{Limit: limit, MarkDscp: u32(10)}, 1, []string{
			"eth_type=0x0800 meter:1 set_field:10->ip_dscp", "eth_type=0x86dd meter:1 set_field:10->ip_dscp", "any meter:1"}},
		{"host", &api.QosPolicy{Host: "02:00:00:00:00:01", Limit: limit}, 1, []string{"in_port=1,eth_src=02:00:00:00:00:01,vlan_vid=0x0/0xfff meter:1"}},
		{"host in a VLAN", &api.QosPolicy{Host: "02:00:00:00:00:01", Limit: limit}, 2, []string{"in_port=4,eth_src=02:00:00:00:00:01,vlan_vid=7 meter:1"}},
		{"host elsewhere", &api.QosPolicy{Host: "02:00:00:00:00:01", Limit: limit}, 3, nil},
		{"host by address", &api.QosPolicy{Host: "10.0.0.1", Limit: limit}, 1, []string{"in_port=1,eth_type=0x0800,vlan_vid=0x0/0xfff,ipv4_src=10.0.0.1 meter:1"}},
		{"to a host", &api.QosPolicy{Host: "fd00::1", ToHost: true, Limit: limit}, 2, []string{"eth_type=0x86dd,vlan_vid=7,ipv6_dst=fd00::1 meter:1"}},
		{"class of a host", &api.QosPolicy{Host: "10.0.0.1", Class: &api.QosClass{Protocol: "tcp"}, Limit: limit}, 1,
			[]string{"in_port=1,eth_type=0x0800,vlan_vid=0x0/0xfff,ip_proto=6,ipv4_src=10.0.0.1 meter:1"}},
		{"port", &api.QosPolicy{Dpid: "1", Port: 3, Limit: limit}, 1, []string{"in_port=3 meter:1"}},
		{"port of another", &api.QosPolicy{Dpid: "1", Port: 3, Limit: limit}, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.policy.Name = "p"
			got, err := compile(read(t, c.policy), c.sw, at(), false, 100)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for i, e := range got.entries {
				list = append(list, strings.TrimSpace(fmt.Sprintf("%v meter:%d %s", e.Match, e.Meter, flow.FormatActions(e.Apply))))
				if e.Table != flow.TableQoS || e.Goto != flow.TableTranslate || int(e.Priority) != flow.PriorityQoS-i {
					t.Errorf("entry %d: table %d, priority %d, goto %d", i, e.Table, e.Priority, e.Goto)
				}
				if err := e.Match.Check(); err != nil {
					t.Error(err)
				}
			}
			clean := func(l []string) string { return strings.ReplaceAll(strings.Join(l, "\n"), " drop", "") }
			if clean(list) != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", clean(list), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestFirstOfEachKind checks on random policies and packets that the entry that
// a packet meets carries out the first limit, the first mark and the first
// queue whose policy the packet meets.
func TestFirstOfEachKind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for round := range 300 {
		var list []*api.QosPolicy
		for i := range 1 + r.IntN(6) {
			m := &api.QosPolicy{Name: fmt.Sprint("p", i), Match: map[string]string{}}
			if r.IntN(2) == 0 {
				m.Match["eth_type"] = "0x0800"
				m.Match["ipv4_src"] = pick("10.0.0.0/8", "10.0.0.1", "10.1.0.0/16", "11.0.0.0/8")
			}
			if r.IntN(3) == 0 {
				m.Class = &api.QosClass{Protocol: pick("tcp", "udp")}
			}
			if r.IntN(4) == 0 {
				m.Host = pick("02:00:00:00:00:01", "10.0.0.1")
			}
			if r.IntN(2) == 0 {
				m.Limit = &api.QosLimit{RatePps: 5}
			}
			if r.IntN(2) == 0 {
				m.MarkDscp = u32(uint32(r.IntN(64)))
			}
			if m.Limit == nil && m.MarkDscp == nil || r.IntN(3) == 0 {
				m.Queue = u32(uint32(r.IntN(4)))
			}
			if _, err := readPolicy(m); err == nil { // a mark on what is no IP is refused
				list = append(list, m)
			}
		}
		policies := read(t, list...)
		where := at()
		c, err := compile(policies, 1, where, false, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			k := flow.Key{InPort: flow.Port(1 + r.IntN(2)), EthSrc: flow.MAC{2, 0, 0, 0, 0, byte(1 + r.IntN(2))}}
			if r.IntN(4) > 0 {
				k.EthType = flow.EthTypeIPv4
				k.IPProto = []uint8{flow.IPProtoTCP, flow.IPProtoUDP}[r.IntN(2)]
				k.IPv4Src = [4]byte{byte(10 + r.IntN(2)), byte(r.IntN(2)), 0, byte(r.IntN(3))}
			}
			var want, got verdict
			for _, p := range policies {
				for _, m := range p.on(1, where, false) {
					if !m.Matches(&k) {
						continue
					}
					if want.limit == nil && p.said.Limit != nil {
						want.limit = p
					}
					if want.mark == nil && p.said.MarkDscp != nil && k.EthType == flow.EthTypeIPv4 {
						want.mark = p
					}
					if want.queue == nil && p.said.Queue != nil {
						want.queue = p
					}
				}
			}
			for i := range c.entries {
				if c.entries[i].Match.Matches(&k) {
					got = c.by[i]
					break
				}
			}
			if got != want {
				t.Fatalf("round %d: packet %+v: got %v, want %v of %v", round, k, got, want, list)
			}
		}
	}
}

func TestTooMany(t *testing.T) {
	var list []*api.QosPolicy
	for i := range 40 {
		m := &api.QosPolicy{Name: fmt.Sprint("p", i), Match: map[string]string{"eth_type": "0x0800", "ipv4_src": fmt.Sprintf("10.0.0.%d", i)}, Limit: &api.QosLimit{RateKbps: 1}}
		if i%2 == 1 {
			m.Match = map[string]string{"eth_type": "0x0800", "ipv4_dst": fmt.Sprintf("10.0.0.%d", i)}
			m.Limit, m.Queue = nil, u32(1)
		}
		list = append(list, m)
	}
	c, err := compile(read(t, list...), 1, object.NewHosts(), false, 100)
	if err == nil || len(c.entries) != 100 {
		t.Errorf("%d entries, %v", len(c.entries), err)
	}
	if c, err = compile(read(t, list...), 1, object.NewHosts(), false, 1000); err != nil || len(c.entries) != 21*21-1 {
		t.Errorf("%d entries, %v", len(c.entries), err)
	}
}

func TestReadPolicy(t *testing.T) {
	limit := &api.QosLimit{RateKbps: 1}
	for _, c := range []struct {
		policy *api.QosPolicy
		want   string
	}{
		{&api.QosPolicy{Name: "p"}, "does nothing"},
		{&api.QosPolicy{Name: "p", Limit: &api.QosLimit{}}, "one of them"},
		{&api.QosPolicy{Name: "p", Limit: &api.QosLimit{RateKbps: 1, RatePps: 1}}, "one of them"},
		{&api.QosPolicy{Name: "p", Limit: &api.QosLimit{RateKbps: 1, Remark: 3}}, "0 to 2"},
		{&api.QosPolicy{Name: "p", MarkDscp: u32(64)}, "0 to 63"},
		{&api.QosPolicy{Name: "p", MarkDscp: u32(1), Match: map[string]string{"eth_type": "0x0806"}}, "no IP"},
		{&api.QosPolicy{Name: "p", Queue: u32(1 << 20)}, "queue"},
		{&api.QosPolicy{Name: "p", Limit: limit, Match: map[string]string{"nonsense": "1"}}, "nonsense"},
		{&api.QosPolicy{Name: "p", Limit: limit, Match: map[string]string{"tcp_dst": "80"}}, "prerequisite"},
		{&api.QosPolicy{Name: "p", Limit: limit, Match: map[string]string{"in_port": "1"}}, "port"},
		{&api.QosPolicy{Name: "p", Limit: limit, Match: map[string]string{"metadata": "1"}}, "metadata"},
		{&api.QosPolicy{Name: "p", Limit: limit, Host: "h1"}, "host"},
		{&api.QosPolicy{Name: "p", Limit: limit, Host: "ff:ff:ff:ff:ff:ff"}, "host"},
		{&api.QosPolicy{Name: "p", Limit: limit, ToHost: true}, "to_host"},
		{&api.QosPolicy{Name: "p", Limit: limit, Port: 1}, "dpid"},
		{&api.QosPolicy{Name: "p", Limit: limit, Dpid: "x"}, "datapath"},
		{&api.QosPolicy{Name: "p", Limit: limit, Dpid: "1", Port: 0xfffffffd}, "port"},
		{&api.QosPolicy{Name: "p", Limit: limit, Dpid: "1", Port: 1, Host: "10.0.0.1"}, "leave one out"},
		{&api.QosPolicy{Name: "p", Limit: limit, Class: &api.QosClass{}}, "class"},
		{&api.QosPolicy{Name: "p", Limit: limit, Class: &api.QosClass{Protocol: "xyz"}}, "protocol"},
		{&api.QosPolicy{Name: "p", Limit: limit, Class: &api.QosClass{Protocol: "icmp", DstPort: 1}}, "dst_port"},
		{&api.QosPolicy{Name: "p", Limit: limit, Class: &api.QosClass{Protocol: "tcp", SrcPort: 70000}}, "src_port"},
		{&api.QosPolicy{Name: "p", Limit: limit, Class: &api.QosClass{Dscp: u32(64)}}, "dscp"},
		{&api.QosPolicy{Name: "p", Limit: limit, Class: &api.QosClass{Protocol: "tcp"}, Match: map[string]string{"eth_type": "0x0806"}}, "no packet"},
	} {
		if _, err := readPolicy(c.policy); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.policy, err, c.want)
		}
	}
}
