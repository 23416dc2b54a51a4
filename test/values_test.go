package test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// wrongTexts and wrongNumbers are what clients put where something else is
// meant.
var (
	wrongTexts = []string{
		"", "0", "1", "-1", "65536", "4294967296", "99999999999999999999", "1e9", "0x", "NaN", "none", "all", "any", "ALLOW", "deny", "a\x00b", "a\nb", "\x1b[2J",
		"../../etc/passwd", "$(id)", "'; drop --", "<script>", strings.Repeat("x", 70_000), "ünï", "weft", "0000000000000001", "ffffffffffffffff", "1", "0x1",
		"10.0.0.1", "10.0.0.1/33", "10.0.0.0/8", "0.0.0.0", "0.0.0.0/0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "10.0.0.9-10.0.0.1", "::", "::/0", "2001:db8::1", "fe80::1%eth0", "::ffff:10.0.0.1",
		"02:00:00:00:00:01", "FF:FF:FF:FF:FF:FF", "01:00:5e:00:00:01", "00:00:00:00:00:00", "tcp", "udp", "icmp", "0x0800", "output:1", "output:4294967295", "output:controller", "group:1",
		"set_field:10.0.0.1->ipv4_dst", "goto_table:0", "weighted", "least", "hash", "drain", "web", "gw", "t1", "n1", "r1",
	}
	wrongNumbers = []uint64{
		0, 1, 2, 63, 64, 254, 255, 256, 4094, 4095, 4096, 65535, 65536, 1 << 24, math.MaxInt32, 1 << 31, 0xfffffeff, 0xffffff00, 0xfffffff8, 0xfffffffd, math.MaxUint32,
		1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64,
	}
	wrongKeys = []string{"eth_type", "eth_dst", "vlan_vid", "ip_proto", "ipv4_src", "ipv4_dst", "ipv6_dst", "tcp_dst", "udp_src", "in_port", "metadata", "nothing", ""}
)

// spoil changes a field of a message, or of one within it.
func spoil(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	if fields.Len() == 0 {
		return
	}
	f := fields.Get(r.IntN(fields.Len()))
	switch {
	case f.IsMap():
		entry := m.Mutable(f).Map()
		entry.Set(protoreflect.ValueOfString(wrongKeys[r.IntN(len(wrongKeys))]).MapKey(), wrongValue(r, f.MapValue()))
	case f.IsList() && f.Message() != nil:
		list := m.Mutable(f).List()
		if list.Len() == 0 || r.IntN(4) == 0 {
			list.Append(list.NewElement())
		}
		if depth < 4 {
			spoil(r, list.Get(r.IntN(list.Len())).Message(), depth+1)
		}
	case f.IsList():
		m.Mutable(f).List().Append(wrongValue(r, f))
	case f.Message() != nil:
		if r.IntN(10) == 0 {
			m.Clear(f)
		} else if depth < 4 {
			spoil(r, m.Mutable(f).Message(), depth+1)
		}
	default:
		m.Set(f, wrongValue(r, f))
	}
}

// wrongValue returns a value of the kind of a field.
func wrongValue(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := wrongNumbers[r.IntN(len(wrongNumbers))]
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(wrongTexts[r.IntN(len(wrongTexts))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(wrongTexts[r.IntN(len(wrongTexts))]))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, -1, math.NaN(), math.Inf(1), math.MaxFloat64}[r.IntN(5)])
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n)))
	}
	return f.Default()
}

// spoiling calls a method with what is right but for one to three values.
func spoiling[Req, Resp any](m api.Method[Req, Resp], right string) func(*controller, *rand.Rand) {
	return func(c *controller, r *rand.Rand) {
		req := new(Req)
		message := any(req).(proto.Message)
		if err := protojson.Unmarshal([]byte(right), message); err != nil {
			c.t.Fatalf("%s: %v", m.Name, err)
		}
		for range r.IntN(4) {
			spoil(r, message.ProtoReflect(), 0)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		text, _ := protojson.Marshal(message) // to be shown; calls keep nothing of it
		_, err := weft.Call(ctx, c.env, m, req)
		switch kind := api.KindOf(err); kind {
		case codes.Internal, codes.Unknown, codes.DataLoss:
			c.t.Errorf("%s of %.400s: %v: %v", m.Name, text, kind, err)
		}
	}
}

// TestCVE_2019_1010250_HostileValues: whatever clients write where numbers,
// names and addresses are meant, every method that changes something answers
// with a kind of error that says whose fault it is. What was taken is listed,
// keeps nobody from being served, and does not keep the controller from
// starting again. Also CVE-2022-24109, -29605 and their kin: numbers of ports
// that are reserved, source and destination alike, upper case.
func TestCVE_2019_1010250_HostileValues(t *testing.T) {
	t.Parallel()
	store := wefttest.NewStore()
	c := start(t, options{store: store})
	connect := func(c *controller) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		d := oftest.NewDevice(oftest.Config{DPID: 1}, nil)
		go func() { // it ends with the test
			for ctx.Err() == nil {
				_ = d.Dial(ctx, "tcp", c.address)
				time.Sleep(50 * time.Millisecond)
			}
		}()
		eventually(t, "the switch is connected", func() bool {
			list := call(c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches
			return len(list) == 1 && list[0].Connected
		})
	}
	connect(c)
	calls := []func(*controller, *rand.Rand){
		spoiling(api.AddFlows, `{"flows":[{"dpid":"1","table":4,"priority":7,"match":{"in_port":"1"},"actions":["output:2"]}],"no_wait":true}`),
		spoiling(api.DeleteFlows, `{"flows":[{"dpid":"1","table":4,"priority":7,"match":{"in_port":"1"}}]}`),
		spoiling(api.ReadFlows, `{"dpid":"1"}`),
		spoiling(api.ReadGroups, `{"dpid":"1"}`),
		spoiling(api.FindHost, `{"address":"10.0.0.1"}`),
		spoiling(api.FindPath, `{"src":"1","dst":"1"}`),
		spoiling(api.AddFirewallRules, `{"rules":[{"id":"r1","priority":5,"action":"deny","match":{"eth_type":"0x0800","ipv4_src":"10.0.0.1"}}],"no_wait":true}`),
		spoiling(api.DeleteFirewallRules, `{"ids":["r1"],"no_wait":true}`),
		spoiling(api.ListFirewallRules, `{"dpid":"1","limit":5,"counts":true}`),
		spoiling(api.SetFirewallDefault, `{"action":"allow","dpid":"1","no_wait":true}`),
		spoiling(api.CheckFirewall, `{"dpid":"1","packet":{"eth_type":"0x0800","ipv4_src":"10.0.0.1"}}`),
		spoiling(api.SetVip, `{"vip":{"name":"web","address":"10.0.0.100","protocol":"tcp","port":80,"policy":"weighted","health":{"kind":"tcp","interval_ms":1000,"timeout_ms":500,"rise":1,"fall":3},"pool":[{"address":"10.0.0.5","port":8080,"weight":1}]}}`),
		spoiling(api.SetMember, `{"vip":"web","member":{"address":"10.0.0.6","port":8080,"weight":2}}`),
		spoiling(api.DeleteMember, `{"vip":"web","address":"10.0.0.6","port":8080}`),
		spoiling(api.DrainMember, `{"vip":"web","address":"10.0.0.5","port":8080}`),
		spoiling(api.DeleteVip, `{"name":"web"}`),
		spoiling(api.ListConnections, `{"vip":"web","limit":3}`),
		spoiling(api.ListPairs, `{"vip":"web","limit":3}`),
		spoiling(api.SetNat, `{"gateway":{"name":"gw","dpid":"1","port":1,"pool":"192.0.2.1","first_port":1024,"last_port":2048,"next_hop":"192.0.2.254","gateway":"10.0.0.254","inside":["10.0.0.0/24"],"forwards":[{"protocol":"tcp","address":"192.0.2.1","port":80,"to":"10.0.0.5","to_port":8080}]}}`),
		spoiling(api.DeleteNat, `{"name":"gw"}`),
		spoiling(api.QosSetPolicy, `{"policy":{"name":"p1","order":5,"match":{"eth_type":"0x0800"},"class":{"protocol":"tcp","dst_port":80},"dpid":"1","limit":{"rate_kbps":1000,"burst":100}}}`),
		spoiling(api.QosDeletePolicy, `{"name":"p1"}`),
		spoiling(api.QosSetQueues, `{"queues":{"dpid":"1","port":1,"max_kbps":1000,"queues":[{"id":0,"min_kbps":10,"max_kbps":100}]}}`),
		spoiling(api.QosDeleteQueues, `{"dpid":"1","port":1}`),
		spoiling(api.SetTenant, `{"tenant":{"name":"t1","max_hosts":5,"rate_kbps":1000}}`),
		spoiling(api.SetNetwork, `{"network":{"tenant":"t1","name":"n1","members":[{"dpid":"1","port":2,"vlan":5},{"mac":"02:00:00:00:00:09"}]}}`),
		spoiling(api.DeleteNetwork, `{"tenant":"t1","name":"n1"}`),
		spoiling(api.DeleteTenant, `{"name":"t1"}`),
		spoiling(api.AddRouterAddress, `{"dpid":"1","address":"10.0.0.254/24"}`),
		spoiling(api.AddRouterRoute, `{"dpid":"1","destination":"10.9.0.0/16","gateway":"10.0.0.1"}`),
		spoiling(api.DeleteRouterRoute, `{"dpid":"1","destination":"10.9.0.0/16"}`),
		spoiling(api.DeleteRouterAddress, `{"dpid":"1","address":"10.0.0.254/24"}`),
	}
	r := rand.New(rand.NewPCG(1010250, 2019))
	begun := time.Now()
	rounds := 0
	for ; rounds < 200 && time.Since(begun) < 5*time.Second; rounds++ {
		for _, f := range calls {
			f(c, r)
		}
	}
	t.Logf("%d rounds of %d calls", rounds, len(calls))
	serves := func(c *controller) {
		t.Helper()
		call(c, api.ListFlows, &api.ListFlowsRequest{})
		call(c, api.ListFirewallRules, &api.ListFirewallRulesRequest{})
		call(c, api.GetFirewallStatus, &api.GetFirewallStatusRequest{})
		call(c, api.ListVips, &api.ListVipsRequest{})
		call(c, api.ListNats, &api.ListNatsRequest{})
		call(c, api.QosListPolicies, &api.QosListPoliciesRequest{})
		call(c, api.QosGetStatus, &api.QosGetStatusRequest{})
		call(c, api.QosListQueues, &api.QosListQueuesRequest{})
		call(c, api.ListNetworks, &api.ListNetworksRequest{})
		call(c, api.GetTenantsStatus, &api.GetTenantsStatusRequest{})
		call(c, api.ListRouters, &api.ListRoutersRequest{})
		good := &api.FlowEntry{Dpid: flow.DPID(1).String(), Table: 4, Priority: 4711, Match: map[string]string{"in_port": "3"}, Actions: []string{"output:1"}}
		eventually(t, "an entry that is right is confirmed", func() bool {
			return call(c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{good}}).Flows[0].State == "confirmed"
		})
	}
	serves(c)
	c.stop()
	c = start(t, options{store: store})
	connect(c)
	serves(c)
}
