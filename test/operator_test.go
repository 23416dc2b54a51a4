package test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// ofctl runs ovs-ofctl on a switch.
func ofctl(t *testing.T, l *lab.Lab, sw, command string, args ...string) {
	t.Helper()
	if _, err := l.OfCtl(context.Background(), sw, command, args...); err != nil {
		t.Fatal(err)
	}
}

// ofctlNames are the names that ovs-ofctl has for fields.
var ofctlNames = map[string]string{
	"in_port": "in_port", "eth_src": "dl_src", "eth_dst": "dl_dst", "ipv4_src": "nw_src", "ipv4_dst": "nw_dst",
	"udp_src": "tp_src", "udp_dst": "tp_dst", "tcp_src": "tp_src", "tcp_dst": "tp_dst", "icmpv6_type": "icmp_type",
	"ipv6_src": "ipv6_src", "ipv6_dst": "ipv6_dst", "sctp_src": "tp_src", "sctp_dst": "tp_dst",
	"arp_spa": "arp_spa", "arp_sha": "arp_sha", "ipv6_nd_target": "nd_target", "ipv6_nd_sll": "nd_sll", "ipv6_nd_tll": "nd_tll",
}

// ofctlProtocols are the words that ovs-ofctl has for eth_type and ip_proto.
var ofctlProtocols = map[string]string{
	"0x0800 ": "ip", "0x0806 ": "arp", "0x86dd ": "ipv6", "0x0800 17": "udp", "0x0800 6": "tcp",
	"0x86dd 17": "udp6", "0x86dd 6": "tcp6", "0x86dd 58": "icmp6", "0x0800 132": "sctp", "0x86dd 132": "sctp6",
	"0x8035 ": "rarp",
}

// asOfctl writes an entry as ovs-ofctl does: priority, sorted match, actions.
func asOfctl(f *api.FlowEntry) string {
	var match, actions []string
	for name, value := range f.Match {
		switch name {
		case "eth_type":
			protocol := f.Match["ip_proto"]
			word, ok := ofctlProtocols[value+" "+protocol]
			if !ok {
				if word, ok = ofctlProtocols[value+" "]; !ok {
					word = "dl_type=" + value
				}
				if protocol != "" {
					word += ",nw_proto=" + protocol
				}
			}
			match = append(match, word)
		case "ip_proto":
		case "ip_frag":
			match = append(match, "nw_frag="+map[string]string{"1": "first", "3": "later"}[value])
		case "vlan_vid":
			if value != "none" {
				value = "dl_vlan=" + value
			} else {
				value = "vlan_tci=0x0000/0x1fff"
			}
			match = append(match, value)
		default:
			match = append(match, ofctlNames[name]+"="+value)
		}
	}
	for _, a := range f.Actions {
		switch a {
		case "controller":
			a = "CONTROLLER:65535"
		case "normal":
			a = "NORMAL"
		}
		actions = append(actions, a)
	}
	if f.GotoTable != 0 {
		actions = append(actions, fmt.Sprintf("goto_table:%d", f.GotoTable))
	}
	if len(actions) == 0 {
		actions = []string{"drop"}
	}
	slices.Sort(match)
	return fmt.Sprintf("cookie=0x%s table=%d priority=%d %s actions=%s", strings.TrimLeft(f.Cookie, "0"), f.Table, f.Priority,
		strings.Join(match, ","), strings.Join(actions, ","))
}

var (
	dumped      = regexp.MustCompile(`^cookie=(0x[0-9a-f]+), duration=[0-9.]+s, table=(\d+), .*n_bytes=\d+, (.*)actions=(.*)$`)
	notMatching = regexp.MustCompile(`^(idle_timeout=|hard_timeout=|idle_age=|hard_age=|send_flow_rem$|priority=)`)
)

// canonical brings a line of ovs-ofctl dump-flows into the form of asOfctl.
func canonical(t *testing.T, line string) string {
	t.Helper()
	m := dumped.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("cannot read %q", line)
	}
	priority := "32768"
	var match []string
	for _, word := range strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' }) {
		if p, ok := strings.CutPrefix(word, "priority="); ok {
			priority = p
		}
		if !notMatching.MatchString(word) {
			match = append(match, word)
		}
	}
	slices.Sort(match)
	return fmt.Sprintf("cookie=%s table=%s priority=%s %s actions=%s", m[1], m[2], priority, strings.Join(match, ","), m[4])
}

// agree checks that ovs-ofctl tells the same of every switch as the controller.
// They are asked one after the other, and again if an entry came or went meanwhile.
func agree(c *controller, l *lab.Lab) {
	c.t.Helper()
	for _, s := range l.Topology().Switches {
		var theirs, ours []string
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			theirs, ours = nil, nil
			lines, err := l.OfctlDumpFlows(context.Background(), s.Name)
			if err != nil {
				c.t.Fatal(err)
			}
			for _, line := range lines {
				theirs = append(theirs, canonical(c.t, line))
			}
			for _, f := range call(c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: s.DPID.String()}).Flows {
				ours = append(ours, asOfctl(f))
			}
			slices.Sort(theirs)
			slices.Sort(ours)
			if slices.Equal(theirs, ours) || time.Now().After(end) {
				break
			}
		}
		if !slices.Equal(theirs, ours) {
			c.t.Errorf("switch %s: ovs-ofctl says\n  %s\nand weft\n  %s", s.Name, strings.Join(theirs, "\n  "), strings.Join(ours, "\n  "))
		}
	}
}

// wanted returns the operator's entries by cookie's lower half.
func wanted(c *controller) map[string]*api.WantedFlow {
	c.t.Helper()
	list := map[string]*api.WantedFlow{}
	for _, f := range call(c, api.ListFlows, &api.ListFlowsRequest{}).Flows {
		if f.Flow.Owner == "operator" {
			list[f.Flow.Cookie[8:]] = f
		}
	}
	return list
}

// present returns how many entries of a switch, as ovs-ofctl prints them, have
// a text in them.
func present(t *testing.T, l *lab.Lab, sw, text string) (n int) {
	t.Helper()
	lines, err := l.OfctlDumpFlows(context.Background(), sw)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// syncIs waits until a switch agrees so far with what is wanted.
func syncIs(c *controller, sw, what string, is func(*api.Sync) bool) {
	c.t.Helper()
	var last *api.Sync
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("wanted %s; the last was %v", what, last)
		}
	})
	eventually(c.t, "switch "+sw+": "+what, func() bool { last = syncOf(c, sw); return is(last) })
}

// syncOf returns how far a switch agrees with what is wanted.
func syncOf(c *controller, sw string) *api.Sync {
	c.t.Helper()
	for _, s := range call(c, api.ListSync, &api.ListSyncRequest{}).Switches {
		if s.Dpid == sw {
			return s
		}
	}
	c.t.Fatalf("nothing known of switch %s", sw)
	return nil
}

// TestOperatorFlows has the operator's entries outlast a restart and come back
// when somebody deletes them, somebody else's entries left alone, and a refused
// entry cost no other.
func TestOperatorFlows(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"flowrules.deadline=30s"}})
	l := up(t, "ring:3", c)
	settled(c, l)
	pingAll(t, l, false)
	s1, s2 := dpid(t, l, "s1"), dpid(t, l, "s2")
	entry := func(sw, id string, priority uint32, match map[string]string, actions ...string) *api.FlowEntry {
		return &api.FlowEntry{Dpid: sw, Priority: priority, Match: match, Actions: actions, Cookie: id}
	}
	added := call(c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{
		entry(s1, "a1", 20000, map[string]string{"eth_type": "0x0800", "ipv4_dst": "192.0.2.0/24"}),
		entry(s1, "a2", 20001, map[string]string{"eth_type": "0x86dd", "ip_proto": "6", "tcp_dst": "80"}, "output:1"),
		entry(s1, "bad", 20002, map[string]string{"eth_type": "0x0800"}, "group:12345"),
		entry(s2, "a3", 20003, map[string]string{"in_port": "1", "vlan_vid": "99"}, "normal"),
		entry(s1, "a4", 20004, map[string]string{"eth_type": "0x0800", "ip_proto": "17", "udp_dst": "9999"}, "output:1", "output:2"),
	}})
	for _, f := range added.Flows {
		id := f.Flow.Cookie[8:]
		if bad := id == "00000bad"; bad && (f.State != "failed" || !strings.Contains(strings.ToLower(f.Reason), "group")) {
			t.Errorf("the entry with a group that is not there: %s (%s), want failed in the switch's words", f.State, f.Reason)
		} else if bad {
			t.Logf("refused: %s", f.Reason)
		} else if f.State != "confirmed" {
			t.Errorf("entry %s: %s (%s), want confirmed", id, f.State, f.Reason)
		}
	}
	ofctl(t, l, "s1", "add-flow", "cookie=0x77,priority=100,udp,tp_dst=7777,actions=drop")
	agree(c, l)

	// Somebody deletes one.
	ofctl(t, l, "s1", "del-flows", "ip,nw_dst=192.0.2.0/24")
	eventually(t, "the deleted entry put back", func() bool { return present(t, l, "s1", "nw_dst=192.0.2.0/24") == 1 })
	if n := c.metric("weft_flowrules_restored"); n != 1 { // it is counted before it is sent
		t.Errorf("%v entries counted as restored, want 1", n)
	}
	pingAll(t, l, false)

	// A restart.
	time.Sleep(time.Second)
	before := entries(t, l)
	c.stop()
	c = start(t, options{store: c.store, address: c.address})
	settled(c, l)
	eventually(t, "the operator's entries confirmed after the restart", func() bool {
		w := wanted(c)
		return len(w) == 5 && w["000000a1"].State == "confirmed" && w["000000a2"].State == "confirmed" && w["000000a3"].State == "confirmed" &&
			w["000000a4"].State == "confirmed" && w["00000bad"].State == "failed"
	})
	after := entries(t, l)
	for e, age := range before {
		if now, ok := after[e]; !ok {
			t.Errorf("gone by the restart: %s", e)
		} else if now < age {
			t.Errorf("rewritten by the restart: %s", e)
		}
	}
	syncIs(c, s1, "1 foreign, 1 failed, failing", func(s *api.Sync) bool { return s.Foreign == 1 && s.Failed == 1 && s.State == "failing" })
	syncIs(c, s2, "nothing foreign, in_sync", func(s *api.Sync) bool { return s.Foreign == 0 && s.State == "in_sync" })

	// They go when they are told to, the other's stays.
	if n := call(c, api.DeleteFlows, &api.DeleteFlowsRequest{AllOf: "all"}).Deleted; n != 5 {
		t.Errorf("%d deleted, want 5", n)
	}
	if present(t, l, "s1", "priority=2000") > 0 || present(t, l, "s2", "priority=2000") > 0 {
		t.Error("entries are still there that the operator has deleted")
	}
	if present(t, l, "s1", "cookie=0x77,") != 1 {
		t.Error("somebody else's entry is gone")
	}
	pingAll(t, l, false)
	agree(c, l)
	explain(c)
}

// TestTableFull fills the table of one switch: what has no room is told of, is
// not tried without end, and the rest of the network goes on.
func TestTableFull(t *testing.T) {
	t.Parallel()
	c := start(t, options{set: []string{"flowrules.deadline=30s"}})
	l := up(t, "linear:4", c)
	settled(c, l)
	s1 := dpid(t, l, "s1")
	syncIs(c, s1, "in_sync", func(s *api.Sync) bool { return s.State == "in_sync" })
	// The operator's entries go to the first table, routes to the last.
	room, routed := present(t, l, "s1", "table=0,")+5, present(t, l, "s1", "table=50,")
	bridge, err := l.Bridge("s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.VSCtl(context.Background(), "--", "--id=@ft", "create", "Flow_Table", fmt.Sprintf("flow_limit=%d", room),
		"overflow_policy=refuse", "--", "--id=@rt", "create", "Flow_Table", fmt.Sprintf("flow_limit=%d", routed), "overflow_policy=refuse",
		"--", "set", "bridge", bridge, "flow_tables:0=@ft", "flow_tables:50=@rt"); err != nil {
		t.Fatal(err)
	}
	req := &api.AddFlowsRequest{}
	for i := range 20 {
		req.Flows = append(req.Flows, &api.FlowEntry{Dpid: s1, Priority: 20000, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": fmt.Sprintf("192.0.2.%d", i)}})
	}
	states := map[string]int{}
	for _, f := range call(c, api.AddFlows, req).Flows {
		states[f.State]++
		if f.State == "failed" && !strings.Contains(strings.ToLower(f.Reason), "full") {
			t.Errorf("an entry without room failed with %q", f.Reason)
		}
	}
	if states["confirmed"] != 5 || states["failed"] != 15 {
		t.Errorf("of 20 entries where 5 have room: %v", states)
	}
	syncIs(c, s1, "failing, 15 failed", func(s *api.Sync) bool { return s.State == "failing" && s.Failed == 15 })

	// Hosts elsewhere notice nothing, and hosts on the full switch are served
	// by way of the controller.
	for _, p := range [][2]string{{"h2", "h3"}, {"h3", "h4"}, {"h4", "h2"}, {"h1", "h2"}, {"h1", "h4"}, {"h3", "h1"}} {
		r, err := l.Ping(context.Background(), p[0], p[1], traffic.PingOptions{Count: 20, Interval: 20 * time.Millisecond, Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		if r.Lost() > 0 {
			t.Errorf("%s -> %s: %d of %d lost", p[0], p[1], r.Lost(), r.Sent)
		}
	}
	if c.metric("weft_southbound_errors_total") == 0 || c.metric("weft_flowrules_writes", "result", "table_full") == 0 {
		t.Error("the full table is not counted")
	}
	mods := c.metric("weft_southbound_flow_mods_total")
	time.Sleep(time.Second)
	if n := c.metric("weft_southbound_flow_mods_total") - mods; n > 20 {
		t.Errorf("%v flow-mods in a second without traffic", n)
	}

	// Room is made.
	if _, err := l.VSCtl(context.Background(), "clear", "bridge", bridge, "flow_tables"); err != nil {
		t.Fatal(err)
	}
	pingAll(t, l, false)
	if n := call(c, api.DeleteFlows, &api.DeleteFlowsRequest{AllOf: s1}).Deleted; n != 20 {
		t.Errorf("%d deleted, want 20", n)
	}
	syncIs(c, s1, "in_sync without them", func(s *api.Sync) bool { return s.State == "in_sync" })
	r, err := l.Ping(context.Background(), "h1", "h4", traffic.PingOptions{Count: 50, Interval: 5 * time.Millisecond, Timeout: patience})
	if err != nil || r.Lost() > 0 {
		t.Errorf("h1 -> h4 after that: %d of %d lost %v", r.Lost(), r.Sent, err)
	}
	agree(c, l)
	explain(c)
}
