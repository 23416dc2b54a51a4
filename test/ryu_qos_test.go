package test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestRyuQos does what TestRyuFirewall does for rest_qos.
func TestRyuQos(t *testing.T) {
	t.Parallel()
	ryuCompare(t, "qos", "/qos/rules/all", []string{"ryu.app.rest_qos", "ryu.app.rest_conf_switch"}, "southbound", "flowrules", "ryu")
}

// TestRyuQosTraffic: a rule of rest_qos is in the way of packets between the
// firewall and forwarding, and queues are made in the database of the switches.
func TestRyuQosTraffic(t *testing.T) {
	t.Parallel()
	c, _ := startREST(t, options{})
	l := up(t, ryuSpec, c)
	c.stop()
	c, address := startREST(t, options{store: c.store, address: c.address, set: []string{"qos.ovsdb=unix:" + l.Dir() + "/db.sock"}})
	settled(c, l)
	knowsSwitches(t, address, 2)
	const sw = "0000000000000001"
	ryuSay(t, address, "POST", "/qos/meter/"+sw, `{"meter_id": "40000", "flags": "PKTPS", "bands": [{"type": "DROP", "rate": "100000"}]}`)
	ryuSay(t, address, "POST", "/qos/rules/"+sw, `{"match": {"nw_dst": "`+lookup(t, l, "h2").IPv4.Addr().String()+`"}, "actions": {"mark": "26", "meter": "40000", "queue": "1"}}`)
	a, _ := ryuCall(t, address, "GET", "/qos/rules/"+sw, "")
	if text := jsonText(a.Body); !strings.Contains(text, `"meter":"40000"`) || !strings.Contains(text, `"mark":"26"`) || !strings.Contains(text, `"queue":"1"`) {
		t.Errorf("the rule is shown as %s", text)
	}
	pingAll(t, l, false)
	counted := func() bool {
		for _, f := range call(c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw, Owner: "foreign"}).Flows {
			if f.Packets > 0 {
				return true
			}
		}
		return false
	}
	eventually(t, "packets counted by the rule", counted)

	queues := func(method, body, want string) {
		t.Helper()
		a, _ := ryuCall(t, address, method, "/qos/queue/"+sw, body)
		if text := jsonText(a.Body); a.Status != 200 || text != `[{"command_result":`+want+`,"switch_id":"`+sw+`"}]` {
			t.Errorf("%s of queues: status %d, %s, want %s", method, a.Status, text, want)
		}
	}
	queues("POST", `{}`, `{"details":"ovs_bridge is not exists","result":"failure"}`)
	if a, _ := ryuCall(t, address, "PUT", "/v1.0/conf/switches/"+sw+"/ovsdb_addr", `"unix:`+l.Dir()+`/db.sock"`); a.Status != 201 {
		t.Fatalf("ovsdb_addr: status %d", a.Status)
	}
	port := ""
	switches, _ := ryuCall(t, address, "GET", "/v1.0/topology/switches/"+sw, "")
	for _, x := range switches.Body.([]any)[0].(map[string]any)["ports"].([]any) {
		port = x.(map[string]any)["name"].(string)
		break
	}
	const two = `{"0":{"config":{"max-rate":"500000"}},"1":{"config":{"min-rate":"800000"}}}`
	queues("POST", `{"port_name": "`+port+`", "type": "linux-htb", "max_rate": "1000000", "queues": [{"max_rate": "500000"}, {"min_rate": "800000"}]}`, `{"details":`+two+`,"result":"success"}`)
	queues("GET", "", `{"details":{"`+port+`":`+two+`},"result":"success"}`)
	eventually(t, "the switch tells of queue 1", func() bool {
		a, _ := ryuCall(t, address, "GET", "/qos/queue/status/"+sw, "")
		return strings.Contains(jsonText(a.Body), `"queue_id":1`)
	})
	queues("DELETE", "", `"success"`)
	queues("GET", "", `{"details":"Queue is not exists.","result":"failure"}`)
	ryuSay(t, address, "DELETE", "/qos/rules/"+sw, `{"qos_id": "all"}`)
	ryuSay(t, address, "DELETE", "/qos/meter/"+sw, `{"meter_id": "40000"}`)
	pingAll(t, l, false)
}
