package ryu

import (
	"encoding/json"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

func parsed(t *testing.T, text string) dict {
	t.Helper()
	v, err := parseLiteral(text)
	if err != nil {
		t.Fatal(err)
	}
	return v.(dict)
}

// TestMatch reads matches in all of Ryu's names, and shows them in those of its
// answers.
func TestMatch(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                           `{}`,
		`{"in_port": "LOCAL"}`:         `{"in_port":"LOCAL"}`,
		`{"dl_vlan": 5}`:               `{"dl_vlan":"5"}`,
		`{"dl_vlan": "005"}`:           `{"dl_vlan":"5"}`,
		`{"vlan_vid": "0x1005"}`:       `{"dl_vlan":"5"}`,
		`{"dl_vlan": "0x0000"}`:        `{"dl_vlan":"0x0000"}`,
		`{"dl_vlan": "0x1000/0x1000"}`: `{"dl_vlan":"0x1000/0x1000"}`,
		`{"eth_type": "0x800", "ipv4_dst": "10.1.2.3/8"}`:   `{"dl_type":2048,"nw_dst":"10.0.0.0/255.0.0.0"}`,
		`{"dl_type": 2054, "nw_src": "10.0.0.1"}`:           `{"arp_spa":"10.0.0.1","dl_type":2054}`,
		`{"dl_type": 2048, "nw_proto": 132, "tp_src": 9}`:   `{"dl_type":2048,"nw_proto":132,"sctp_src":9}`,
		`{"dl_type": 2048, "nw_proto": 6, "tp_src": "9"}`:   `{"dl_type":2048,"nw_proto":6,"tp_src":9}`,
		`{"dl_dst": "01:00:00:00:00:00/01:00:00:00:00:00"}`: `{"dl_dst":"01:00:00:00:00:00/01:00:00:00:00:00"}`,
		`{"metadata": "0x12/0xff"}`:                         `{"metadata":"18/255"}`,
		`{"metadata": 18446744073709551615}`:                `{"metadata":18446744073709551615}`,
		`{"eth_type": 34525, "ipv6_src": "fd00::1/64"}`:     `{"dl_type":34525,"ipv6_src":"fd00::/ffff:ffff:ffff:ffff::"}`,
	} {
		m, err := readMatch(parsed(t, in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, _ := json.Marshal(showMatch(&m)); string(got) != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		again, err := flow.ParseMatch(m.Text()) // as it crosses to the southbound
		if err != nil || again != m {
			t.Errorf("%s: %v becomes %v, %v", in, m, again, err)
		}
	}
	for _, in := range []string{
		`{"colour": 1}`, `{"dl_vlan": 9000}`, `{"dl_vlan": ""}`, `{"dl_vlan": "x"}`, `{"tp_dst": 1}`, `{"dl_src": 1}`, `{"dl_src": "1:2"}`, `{"nw_src": "fd00::1"}`,
		`{"ipv6_src": "10.0.0.1"}`, `{"nw_src": "10.0.0.1/33"}`, `{"dl_type": "1/2"}`, `{"dl_type": None}`, `{"dl_type": True}`, `{"eth_type": 1, "dl_type": 1}`,
		`{"in_port": "SIDE"}`, `{"in_port": -1}`, `{"vlan_pcp": 8}`, `{"EthType": 1}`,
	} {
		if m, err := readMatch(parsed(t, in)); err == nil {
			t.Errorf("%s is read as %v", in, m)
		}
	}
}

// TestActions reads actions and instructions, and shows them.
func TestActions(t *testing.T) {
	for in, want := range map[string]string{
		`[]`: `[]`,
		`[{"type": "OUTPUT", "port": "CONTROLLER"}]`:                                 `["OUTPUT:CONTROLLER"]`,
		`[{"type": "GOTO_TABLE", "table_id": 2}, {"type": "OUTPUT", "port": 1}]`:     `["OUTPUT:1","GOTO_TABLE:2"]`,
		`[{"type": "SET_FIELD", "field": "vlan_vid", "value": 4102}]`:                `["SET_FIELD: {vlan_vid:4102}"]`,
		`[{"type": "SET_FIELD", "field": "metadata", "value": 7}]`:                   `["SET_FIELD: {metadata:7}"]`,
		`[{"type": "SET_FIELD", "field": "ipv6_dst", "value": "fd00::0:1"}]`:         `["SET_FIELD: {ipv6_dst:fd00::1}"]`,
		`[{"type": "EXPERIMENTER", "experimenter": 101, "data": "abc"}]`:             `["EXPERIMENTER: {experimenter:101, data:YWJjAAAAAAA=}"]`,
		`[{"type": "WRITE_ACTIONS", "actions": [{"type": "GROUP", "group_id": 7}]}]`: `[{"WRITE_ACTIONS":["GROUP:7"]}]`,
		`[{"type": "WRITE_METADATA", "metadata": 3}]`:                                `["WRITE_METADATA:0x3/0xffffffffffffffff"]`,
		`[{"type": "METER", "meter_id": "CONTROLLER"}, {"type": "CLEAR_ACTIONS"}]`:   `["METER:CONTROLLER","CLEAR_ACTIONS"]`,
		`[{"type": "PUSH_VLAN", "ethertype": "0x8100"}, {"type": "DEC_NW_TTL"}]`:     `["PUSH_VLAN:33024","DEC_NW_TTL"]`,
	} {
		var e flow.Entry
		v, err := parseLiteral(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := readActions(v.([]any), &e); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, _ := json.Marshal(showActions(&e)); string(got) != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		for _, a := range e.Apply { // as it crosses from the southbound
			if b := parseAction(a.String()); showAction(&a) != showAction(&b) {
				t.Errorf("%v becomes %v", a, b)
			}
		}
	}
	for _, in := range []string{
		`[1]`, `[{}]`, `[{"type": 1}]`, `[{"type": "FLY"}]`, `[{"type": "GROUP"}]`, `[{"type": "SET_NW_TTL"}]`, `[{"type": "SET_NW_TTL", "nw_ttl": 256}]`,
		`[{"type": "OUTPUT", "port": "X"}]`, `[{"type": "OUTPUT", "port": 1, "max_len": 70000}]`, `[{"type": "GOTO_TABLE", "table_id": 0}]`, `[{"type": "GOTO_TABLE"}]`,
		`[{"type": "METER", "meter_id": 0}]`, `[{"type": "WRITE_METADATA"}]`, `[{"type": "CLEAR_ACTIONS"}, {"type": "CLEAR_ACTIONS"}]`,
		`[{"type": "WRITE_ACTIONS", "actions": [{"type": "CLEAR_ACTIONS"}]}]`, `[{"type": "WRITE_ACTIONS", "actions": {}}]`, `[{"type": "SET_FIELD", "field": "x", "value": 1}]`,
		`[{"type": "SET_FIELD", "field": "eth_dst"}]`, `[{"type": "EXPERIMENTER", "experimenter": 1, "data_type": "hex"}]`, `[{"type": "EXPERIMENTER", "experimenter": 1, "data_type": "base64", "data": "!"}]`,
	} {
		var e flow.Entry
		v, err := parseLiteral(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := readActions(v.([]any), &e); err == nil {
			t.Errorf("%s is read as %v", in, e)
		}
	}
}
