package chain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// sharing is four functions, each with two ports somewhere in a network.
func sharing(n *network, r *rand.Rand) (four []*api.ChainCopy) {
	for i := range 4 {
		p := &api.ChainCopy{}
		for j, to := range []**api.Location{&p.In, &p.Out} {
			*to = &api.Location{Dpid: dpid(r.IntN(len(n.hosts))).String(), Port: uint32(200 + 2*i + j)}
			n.feed(&api.PortChanged{Port: &api.Port{Dpid: (*to).Dpid, Port: (*to).Port, Up: true}})
			n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: *to, Role: "edge"}})
		}
		four = append(four, p)
	}
	return four
}

// TestSharedFunctions: a hundred chains have four functions between them, each in an
// order of its own and some turned round. Every packet passes those of its chain, and
// where two chains match, those of the one with the higher priority.
func TestSharedFunctions(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 39))
		n := newNetwork(t, r, 5)
		four := sharing(n, r)
		chains := map[int]*chain{}
		via := func(m *api.ServiceChain) *chain {
			for _, i := range r.Perm(4)[:1+r.IntN(4)] {
				p := &api.ChainCopy{In: four[i].In, Out: four[i].Out}
				if r.IntN(3) == 0 {
					p.In, p.Out = p.Out, p.In
				}
				m.Functions = append(m.Functions, &api.ChainFunction{Copies: []*api.ChainCopy{p}})
			}
			return n.set(m)
		}
		for i := range 99 {
			chains[i] = via(&api.ServiceChain{Name: fmt.Sprint("c", i), Priority: uint32(200 + i),
				Match: map[string]string{"eth_type": "0x0800", "ip_proto": "17", "udp_dst": strconv.Itoa(5000 + i)}})
		}
		rest := via(&api.ServiceChain{Name: "rest", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.0.0.0/28"}})
		n.settle()
		for range 300 {
			from, to, i := r.IntN(5), r.IntN(5), r.IntN(120)
			if from == to {
				continue
			}
			k, back := udp(from, to, uint16(32768+r.IntN(20000)), uint16(5000+i))
			c := chains[i]
			if c == nil {
				c = rest
			}
			var want []flow.Location
			for p := range c.copies() {
				want = append(want, p.in)
			}
			if there, arrived, _ := n.send(c, from, k); arrived != n.hosts[to] || !slices.Equal(there, want) {
				t.Fatalf("seed %d: to port %d: visited %v and arrived at %v; want %v and %v", seed, 5000+i, there, arrived, want, n.hosts[to])
			}
			if c == rest {
				continue // which has the packets back forward, too
			}
			slices.Reverse(want)
			for j := range want {
				for p := range c.copies() {
					if p.in == want[j] {
						want[j] = p.out
						break
					}
				}
			}
			if home, arrived, _ := n.send(c, to, back); arrived != n.hosts[from] || !slices.Equal(home, want) {
				t.Fatalf("seed %d: back from port %d: visited %v and arrived at %v; want %v and %v", seed, 5000+i, home, arrived, want, n.hosts[from])
			}
		}
		if got := len(n.b.copies()); got > 8 {
			t.Errorf("%d copies are probed", got)
		}
		split := &api.ServiceChain{Name: "split", Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": "10.9.9.9"},
			Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: four[0].In, Out: four[1].In}}}}}
		if _, _, err := n.b.chains.Set(t.Context(), split); api.KindOf(err) != codes.AlreadyExists || !strings.Contains(err.Error(), "same two ports in both") {
			t.Errorf("a function of ports of two: %v", err)
		}
	}
}
