package bench

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

func TestL2vpnFlags(t *testing.T) {
	for _, wrong := range []benchL2vpnConfig{
		{circuits: benchWatched - 1, rounds: 1, output: "table"}, {circuits: benchMostCircuits + 1, rounds: 1, output: "table"},
		{circuits: 1000, rounds: 0, output: "json"}, {circuits: 1000, rounds: 1, output: "xml"},
	} {
		if err := wrong.check(); err == nil || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	right := benchL2vpnConfig{circuits: 10_000, rounds: 5, output: "json"}
	if err := right.check(); err != nil || right.ports() != 3 {
		t.Errorf("%v, %d ports", err, right.ports())
	}
}

// The longest run of frames that did not arrive counts, at the end, too.
func TestL2vpnOutages(t *testing.T) {
	s := &benchVLANStream{seen: [][]bool{
		{true, true, true}, {false, true, false, false, true}, {true, false, false, false}, {false, false},
	}}
	if got, want := s.outages(), []float64{0, 10, 15, 10}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestL2vpnFrame(t *testing.T) {
	f := benchVLANFrame(benchVLANs+6, 3, 70_000)
	if vlan := binary.BigEndian.Uint16(f[14:]); vlan != 7 {
		t.Errorf("VLAN %d, want 7", vlan)
	}
	if place, number := binary.BigEndian.Uint32(f[18:]), binary.BigEndian.Uint32(f[22:]); place != 3 || number != 70_000 {
		t.Errorf("place %d, number %d", place, number)
	}
}
