package command

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

func (n *northbound) ListLimits(context.Context, *api.ListLimitsRequest) (*api.ListLimitsResponse, error) {
	return &api.ListLimitsResponse{
		Limits: []*api.PortLimit{
			{Dpid: s1, Port: 1, Class: "unicast", Offered: 12855.4, Limit: 1000, Where: "switch", Since: then, Shed: 4711},
			{Dpid: s2, Port: 3, Class: "neighbours", Offered: 6000, Limit: 1500, Where: "controller", Since: then, Shed: 12, Mac: h2},
		},
		Shed: map[string]uint64{"port unicast": 4711, "sender neighbours": 12},
	}, nil
}

func (n *northbound) ListHeartbeats(context.Context, *api.ListHeartbeatsRequest) (*api.ListHeartbeatsResponse, error) {
	return &api.ListHeartbeatsResponse{
		Rate: 10, DeadlineUs: 100_000,
		Switches: []*api.SwitchHeartbeat{
			{Dpid: s1, State: "alive", Since: then, Beats: 500, Missed: 2, LastUs: 420, P50Us: 400, P99Us: 2100, MaxUs: 8050},
			{Dpid: s2, State: "lost", Since: then, Beats: 500, Missed: 12, MissedInRow: 12, LastUs: 420, P50Us: 400, P99Us: 2100, MaxUs: 8050},
		},
	}, nil
}

// TestLimitsAndHeartbeats: both are tables, JSON and YAML.
func TestLimitsAndHeartbeats(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	for _, line := range []string{"get limits", "get heartbeats", "get limits -o json", "get heartbeats -s 1 -o yaml"} {
		status, out, errs := weftCommand(strings.Fields(line)...)
		if status != 0 {
			t.Errorf("weft %s: status %d, %s", line, status, errs)
		}
		golden(t, strings.NewReplacer(" ", "_").Replace(line)+".golden", out+errs)
	}
}

// TestOverloadSentences: the events are sentences.
func TestOverloadSentences(t *testing.T) {
	for _, c := range []struct{ subject, body, want string }{
		{"southbound.FloodChanged", `{"limit":{"dpid":"1","port":2,"class":"unicast","offered":12000.4,"limit":1000}}`,
			"port 1/2 floods with unicast packets, 12000 per second, and is limited to 1000"},
		{"southbound.FloodChanged", `{"limit":{"dpid":"1","port":2,"shed":"9"},"ended":true}`, "port 1/2 floods no longer, 9 packets were shed"},
		{"heartbeat.HeartbeatChanged", `{"dpid":"1","state":"lost","missedInRow":"3","reason":"no answer within 1s"}`,
			"switch 1 is lost to heartbeats, 3 missed (no answer within 1s)"},
		{"heartbeat.HeartbeatChanged", `{"dpid":"1","state":"alive"}`, "switch 1 is alive to heartbeats"},
	} {
		if got := get.Sentence(c.subject, []byte(c.body)); got != c.want {
			t.Errorf("%s: %q, want %q", c.subject, got, c.want)
		}
	}
}
