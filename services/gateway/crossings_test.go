package gateway

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/weft-sdn/weft/wefttest"
)

// TestListCrossings checks the JSON of crossings.
func TestListCrossings(t *testing.T) {
	runGateway(t, func(t *testing.T, h *wefttest.Harness, address string) {
		h.Start()
		resp, body := get(t, "http://"+address+"/v1/crossings")
		var m struct {
			Crossings []struct {
				From, To, Kind, Name string
				PerS                 float64 `json:"per_s"`
			}
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil || resp.StatusCode != http.StatusOK || len(m.Crossings) != 1 {
			t.Fatalf("%d %s: %v", resp.StatusCode, body, err)
		}
		if x := m.Crossings[0]; x.From != "forwarding" || x.To != "paths" || x.Kind != "call" || x.Name != "paths.GetPath" || x.PerS != 12.5 {
			t.Errorf("%s", body)
		}
	})
}
