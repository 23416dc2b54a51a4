package gateway

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// What takes much more memory than it has octets is refused before it is
// decoded; what fills a request with entries is not.
func TestElementsAreBounded(t *testing.T) {
	d := (&api.AddFlowsRequest{}).ProtoReflect().Descriptor()
	for name, c := range map[string]struct {
		json, wire []byte
		refused    bool
	}{
		"empty messages": {[]byte(`{"flows":[` + strings.Repeat("{},", 1_300_000) + "{}]}"), bytes.Repeat([]byte{0x0a, 0}, 2_000_000), true},
		"entries": {
			[]byte(`{"flows":[` + strings.Repeat(`{"dpid":"1","priority":5,"match":{"in_port":"1"},"actions":["output:2"]},`, 40_000) + "{}]}"),
			func() []byte {
				m := &api.AddFlowsRequest{}
				for range 40_000 {
					m.Flows = append(m.Flows, &api.FlowEntry{Dpid: "1", Match: map[string]string{"in_port": "1"}, Actions: []string{"output:2"}})
				}
				b, err := proto.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}(), false,
		},
		"empty texts": {[]byte(`{"flows":[{"actions":[` + strings.Repeat(`"",`, 1_300_000) + `""]}]}`),
			append([]byte{0x0a, 0xfe, 0xff, 0x7f}, bytes.Repeat([]byte{0x32, 0}, 0x1fffff/2)...), true},
	} {
		if _, err := sizeOfJSON(c.json); (err != nil) != c.refused {
			t.Errorf("%s, JSON of %d octets: %v", name, len(c.json), err)
		}
		if _, err := sizeOfWire(d, c.wire); (err != nil) != c.refused {
			t.Errorf("%s, wire of %d octets: %v", name, len(c.wire), err)
		}
	}
}

func FuzzElements(f *testing.F) {
	f.Add([]byte{0x0a, 0})
	d := (&api.AddFlowsRequest{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := sizeOfWire(d, b); err != nil && len(b) < maxMessages && proto.Unmarshal(b, &api.AddFlowsRequest{}) == nil {
			t.Errorf("%d octets: %v", len(b), err)
		}
	})
}
