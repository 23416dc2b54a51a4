package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// ryuCall makes a request and returns status and headers.
func ryuCall(t *testing.T, address, method, path, body string) (ryuAnswer, http.Header) {
	t.Helper()
	return (&ryuRequest{method: method, path: path, body: body}).ask(t, address)
}

// ofOwner counts the entries that a switch has of an owner.
func ofOwner(c *controller, sw, owner string) int {
	return len(call(c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw, Owner: owner}).Flows)
}

// TestRyuKeepsOwnEntries: what comes by Ryu's REST does not touch the entries
// and groups of Weft's own services, says so, and all hosts reach each other
// afterwards; entries of its own are as Ryu's are.
func TestRyuKeepsOwnEntries(t *testing.T) {
	t.Parallel()
	c, address := startREST(t, options{})
	l := up(t, ryuSpec, c)
	settled(c, l)
	pingAll(t, l, false)
	knowsSwitches(t, address, 2)
	const sw = "0000000000000001"
	own := func() int {
		return ofOwner(c, sw, "discovery") + ofOwner(c, sw, "forwarding") + ofOwner(c, sw, "routes") + ofOwner(c, sw, "operator")
	}
	call(c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{Dpid: sw, Priority: 31000, Match: map[string]string{"eth_type": "0x1234"}, Actions: []string{"output:1"}}}})
	eventually(t, "the operator's entry is there", func() bool { return ofOwner(c, sw, "operator") == 1 })
	before := own()

	for i := range 3 {
		body := fmt.Sprintf(`{"dpid": 1, "cookie": %d, "priority": 7, "match": {"in_port": %d}, "actions": [{"type": "OUTPUT", "port": 1}]}`, 40+i, 10+i)
		if a, _ := ryuCall(t, address, "POST", "/stats/flowentry/add", body); a.Status != 200 {
			t.Fatalf("add: status %d", a.Status)
		}
	}
	if n := ofOwner(c, sw, "foreign"); n != 3 {
		t.Fatalf("%d entries of Ryu's users, want 3", n)
	}
	a, _ := ryuCall(t, address, "POST", "/stats/flow/1", `{"cookie": 41, "cookie_mask": 255}`)
	if text := jsonText(a.Body); !strings.Contains(text, `"cookie":41`) || !strings.Contains(text, `"in_port":11`) {
		t.Errorf("the entry of cookie 41 is not shown: %s", text)
	}

	// Commands for everything pass Weft's entries over, and say how many.
	if a, h := ryuCall(t, address, "POST", "/stats/flowentry/modify", `{"dpid": 1, "actions": []}`); a.Status != 200 || h.Get("Weft-Kept") == "" {
		t.Errorf("modify: status %d, Weft-Kept %q", a.Status, h.Get("Weft-Kept"))
	}
	if a, h := ryuCall(t, address, "DELETE", "/stats/flowentry/clear/1", ""); a.Status != 200 || h.Get("Weft-Kept") == "" {
		t.Errorf("clear: status %d, Weft-Kept %q", a.Status, h.Get("Weft-Kept"))
	}
	if n := ofOwner(c, sw, "foreign"); n != 0 {
		t.Errorf("%d entries of Ryu's users after clear", n)
	}
	if n := own(); n < before {
		t.Errorf("%d entries of Weft's after clear, %d before", n, before)
	}

	// Commands for one of them are refused.
	for _, command := range []string{"add", "modify_strict", "delete_strict"} {
		a, _ := ryuCall(t, address, "POST", "/stats/flowentry/"+command, `{"dpid": 1, "priority": 31000, "match": {"dl_type": "0x1234"}, "actions": []}`)
		if a.Status != 409 {
			t.Errorf("%s of the operator's entry: status %d, want 409", command, a.Status)
		}
	}
	if a, _ := ryuCall(t, address, "POST", "/stats/flowentry/add", `{"dpid": 1, "cookie": "0x5745000000000001"}`); a.Status != 400 {
		t.Errorf("a cookie with Weft's mark: status %d, want 400", a.Status)
	}
	if a, h := ryuCall(t, address, "POST", "/stats/groupentry/delete", `{"dpid": 1, "group_id": "ALL"}`); a.Status != 200 {
		t.Errorf("delete all groups: status %d %v", a.Status, h)
	}
	for _, g := range call(c, api.ReadGroups, &api.ReadGroupsRequest{Dpid: sw}).Groups {
		if a, _ := ryuCall(t, address, "POST", "/stats/groupentry/delete", fmt.Sprintf(`{"dpid": 1, "group_id": %d}`, g.Id)); a.Status != 409 {
			t.Errorf("delete group %d of Weft's: status %d, want 409", g.Id, a.Status)
		}
	}
	if a, _ := ryuCall(t, address, "POST", "/stats/role", `{"dpid": 1, "role": "MASTER"}`); a.Status != 200 {
		t.Errorf("role MASTER, which Weft has: status %d", a.Status)
	}
	if a, _ := ryuCall(t, address, "POST", "/stats/role", `{"dpid": 1, "role": "SLAVE"}`); a.Status != 501 {
		t.Errorf("role SLAVE: status %d, want 501", a.Status)
	}
	pingAll(t, l, false)
}

// TestRyuRestart: what rest_conf_switch keeps survives a restart of the
// controller, and entries of Ryu's users stay on the switches, with their
// cookies, and are no business of reconciliation.
func TestRyuRestart(t *testing.T) {
	t.Parallel()
	store := wefttest.NewStore()
	only := []string{"southbound", "flowrules", "discovery", "hosts", "ryu"}
	c, address := startREST(t, options{store: store, only: only})
	up(t, ryuSpec, c)
	knowsSwitches(t, address, 2)
	if a, _ := ryuCall(t, address, "PUT", "/v1.0/conf/switches/0000000000000001/ovsdb_addr", `"tcp:127.0.0.1:6640"`); a.Status != 201 {
		t.Fatalf("put: status %d", a.Status)
	}
	if a, _ := ryuCall(t, address, "POST", "/stats/flowentry/add", `{"dpid": 1, "cookie": 77, "priority": 9, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]}`); a.Status != 200 {
		t.Fatalf("add: status %d", a.Status)
	}
	c.stop()
	c, address = startREST(t, options{store: store, only: only, address: c.address})
	knowsSwitches(t, address, 2)
	if a, _ := ryuCall(t, address, "GET", "/v1.0/conf/switches/0000000000000001/ovsdb_addr", ""); jsonText(a.Body) != `"tcp:127.0.0.1:6640"` {
		t.Errorf("after a restart: %d %s", a.Status, jsonText(a.Body))
	}
	eventually(t, "Weft's own entries confirmed", func() bool { return ofOwner(c, "0000000000000001", "discovery") > 0 })
	if a, _ := ryuCall(t, address, "POST", "/stats/flow/1", `{"cookie": 77, "cookie_mask": 65535}`); !strings.Contains(jsonText(a.Body), `"cookie":77`) {
		t.Errorf("the entry is gone after a restart: %s", jsonText(a.Body))
	}
}

// TestRyuHostile: requests that no client of Ryu's makes are refused, and the
// interface stays up.
func TestRyuHostile(t *testing.T) {
	t.Parallel()
	c, address := startREST(t, options{only: []string{"southbound", "flowrules", "discovery", "hosts", "ryu"}})
	up(t, "linear:1", c)
	knowsSwitches(t, address, 1)
	for _, body := range []string{
		strings.Repeat("[", 100_000), `{"dpid": ` + strings.Repeat("9", 100_000) + `}`, `{"dpid": 1, "match": {"in_port": [[1]]}}`, "\x00\xff", `{"dpid": {}}`,
		`{"dpid": 1, "actions": [` + strings.Repeat(`{"type": "OUTPUT", "port": 1},`, 10_000) + `]}`, strings.Repeat("{'a':", 10_000), "{" + strings.Repeat(" ", 2<<20) + "}",
	} {
		a, h := ryuCall(t, address, "POST", "/stats/flowentry/add", body)
		if a.Status < 400 && h.Get("Weft-Refused") == "" || a.Status == 500 {
			t.Errorf("%.40q: status %d", body, a.Status)
		}
	}
	for header, value := range map[string]string{"Origin": "http://evil.example", "Host": "evil.example"} {
		req, err := http.NewRequest("DELETE", "http://"+address+"/stats/flowentry/clear/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Header.Set(header, value); header == "Host" {
			req.Host = value
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: status %d, want 403", header, value, resp.StatusCode)
		}
	}
	if a, _ := ryuCall(t, address, "GET", "/stats/desc/1", ""); a.Status != 200 {
		t.Errorf("afterwards: status %d", a.Status)
	}
}
