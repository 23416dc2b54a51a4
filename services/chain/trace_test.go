package chain

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestTrace: a trace has the switches and functions that packets pass, with what the
// entries do; and says where they end.
func TestTrace(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := newNetwork(t, r, 5)
		four := sharing(n, r)
		c := n.set(&api.ServiceChain{Name: "c", Match: map[string]string{"eth_type": "0x0800", "ip_proto": "17", "udp_dst": "5000"}, OnFailure: []string{"bypass", "block"}[r.IntN(2)],
			Functions: []*api.ChainFunction{{Copies: four[:2]}, {Copies: four[2:3]}, {Copies: four[3:]}}})
		dead := four[r.IntN(4)]
		n.feed(&api.PortChanged{Port: &api.Port{Dpid: dead.In.Dpid, Port: dead.In.Port}})
		n.settle()
		for range 40 {
			from, to, client := r.IntN(5), r.IntN(5), uint16(32768+r.IntN(20000))
			if from == to {
				continue
			}
			k, home := udp(from, to, client, 5000)
			q := &api.TraceChainRequest{Name: "c", Client: strconv.Itoa(int(client)), From: dpid(from).String(), To: dpid(to).String(), Back: r.IntN(2) > 0}
			if q.Back {
				k = home
				k.EthSrc, k.EthDst = hostMAC(from), hostMAC(to)
			}
			visited, arrived, _ := n.send(c, from, k)
			got, err := n.b.traceChain(q)
			if err != nil {
				t.Fatal(err)
			}
			var passed []flow.Location
			for _, h := range got.Hops {
				if h.Function > 0 && h.At != nil {
					passed = append(passed, h.At.Flow())
				}
			}
			if got.Arrives != (arrived == n.hosts[to]) || got.Arrives && !slices.Equal(passed, visited) {
				t.Fatalf("seed %d: %v; passed %v and arrived at %v", seed, got, visited, arrived)
			}
		}
		for want, q := range map[string]*api.TraceChainRequest{
			"there is no chain": {Name: "d"}, "there is no switch": {Name: "c", From: "99"}, "want the client's port": {Name: "c", Client: "10.0.0.1"},
		} {
			if _, err := n.b.traceChain(q); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", q, err)
			}
		}
	}
}
