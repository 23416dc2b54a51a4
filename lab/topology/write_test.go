package topology

import (
	"encoding/json"
	"testing"
)

// TestYAML: a topology that is written and read again is the same.
func TestYAML(t *testing.T) {
	for _, spec := range []string{"demo", "ring:4,2", "fattree:4", "oshi", "5gc:2", "carrier:4,3,1", "msn-fig8", "testdata/write.yaml"} {
		topo, err := Resolve(spec)
		if err != nil {
			t.Fatal(err)
		}
		text, err := topo.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("lab.yaml", text)
		if err != nil {
			t.Errorf("%s: %v\n%s", spec, err, text)
			continue
		}
		was, _ := json.MarshalIndent(topo, "", " ")
		is, _ := json.MarshalIndent(again, "", " ")
		if string(was) != string(is) {
			t.Errorf("%s: written\n%s\nit was\n%s\nand is\n%s", spec, text, was, is)
		}
	}
}
