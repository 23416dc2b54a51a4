package layout

import (
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

// A hybrid node's switch says which ports are no links; the others say their name.
func TestDescription(t *testing.T) {
	s := &Lab{Nodes: []Node{{Name: "pe1", Kind: topology.KindHybrid, Ports: []Port{
		{Port: 1, Role: RoleLink}, {Port: 5, Role: RoleGateway}, {Port: 3, Role: RoleAccess}, {Port: 4, Role: RoleAccess}, {Port: 2, Role: RoleSegment}}},
		{Name: "r1", Kind: topology.KindRouter}, {Name: "pe2", Kind: topology.KindHybrid}}}
	for i := range uint16(200) {
		s.Nodes[2].Ports = append(s.Nodes[2].Ports, Port{Port: 2*i + 1, Role: RoleAccess})
	}
	for name, want := range map[string]string{"pe1": "hybrid name=pe1 access=3-5 internal=10001-20000 tunnel=20001-29999", "pe2": "hybrid name=pe2 internal=10001-20000 tunnel=20001-29999", "r1": "r1", "s1": "s1"} {
		if got := s.Description(name); got != want {
			t.Errorf("%s says %q, want %q", name, got, want)
		}
	}
}
