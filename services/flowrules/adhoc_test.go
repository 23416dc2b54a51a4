package flowrules_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft"
	"weft/api"
	"weft/deploy"
	"weft/flow"
	"weft/services/flowrules"
	"weft/services/southbound"
	"weft/services/stats"
	"weft/wefttest"
)

type ctl struct {
	env    *weft.Env
	cancel context.CancelFunc
	done   chan error
}

func boot(t *testing.T, store deploy.Config) *ctl {
	c := &ctl{done: make(chan error, 1)}
	got := make(chan *weft.Env, 1)
	probe := weft.Spec{Name: "probe", Doc: "x", Class: weft.Compute,
		Calls: weft.Methods(api.ListSwitches, api.AddFlows, api.DeleteFlows, api.ListFlows, api.ListSync, api.SetStanding, api.ReadFlows, api.ListPortStats, api.ListTableStats, api.ListFlowStats),
		Run: func(ctx context.Context, env *weft.Env) error {
			got <- env
			return weft.Serve(ctx, env)
		}}
	store.Specs = []weft.Spec{southbound.Spec(), flowrules.Spec(), stats.Spec(), probe}
	store.Settings = &deploy.Settings{}
	store.Settings.Add("southbound", "t", []byte("listen: [\"tcp:127.0.0.1:16699\"]"))
	store.Settings.Add("flowrules", "t", []byte("verify_interval: 2s\nverify_age: 1s"))
	store.Settings.Add("stats", "t", []byte("interval: 500ms\nflows_every: 1"))
	store.Registry = prometheus.NewRegistry()
	store.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	w, err := deploy.New(store)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() { c.done <- w.Run(ctx) }()
	select {
	case <-w.Started():
	case err := <-c.done:
		t.Fatal(err)
	}
	c.env = <-got
	return c
}

func (c *ctl) stop() { c.cancel(); <-c.done }

func call[Q, R any](t *testing.T, c *ctl, m api.Method[Q, R], q *Q) *R {
	t.Helper()
	r, err := weft.Call(t.Context(), c.env, m, q)
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return r
}

func TestAdhoc(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	db := filepath.Join(dir, "conf.db")
	sock := "unix:" + filepath.Join(dir, "db.sock")
	run("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	start := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	start("ovsdb-server", db, "--remote=p"+sock)
	time.Sleep(300 * time.Millisecond)
	start("ovs-vswitchd", sock, "--enable-dummy=override")
	vers := os.Getenv("OFV")
	if vers == "" {
		vers = "OpenFlow13"
	}
	run("ovs-vsctl", "--db="+sock, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail_mode=secure", "other_config:datapath-id=0000000000000001",
		"protocols="+vers, "--", "add-port", "br0", "p1", "--", "set", "interface", "p1", "type=dummy", "--", "add-port", "br0", "p2", "--", "set", "interface", "p2", "type=dummy",
		"--", "set-controller", "br0", "tcp:127.0.0.1:16699")
	of := func(args ...string) string {
		return run("ovs-ofctl", append([]string{"-O", vers}, args...)...)
	}
	mgmt := filepath.Join(dir, "br0.mgmt")
	cfg := deploy.Config{Store: wefttest.NewStore()}
	c := boot(t, cfg)
	wait := func(why string) *api.Sync {
		for i := 0; i < 1500; i++ {
			r := call(t, c, api.ListSync, &api.ListSyncRequest{})
			if len(r.Switches) == 1 && r.Switches[0].State == "in_sync" {
				return r.Switches[0]
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s: %v %v", why, call(t, c, api.ListSync, &api.ListSyncRequest{}), call(t, c, api.ListFlows, &api.ListFlowsRequest{}))
		return nil
	}
	flows := []*api.FlowEntry{}
	m := func(kv ...string) map[string]string {
		r := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			r[kv[i]] = kv[i+1]
		}
		return r
	}
	add := func(p uint32, match map[string]string, actions ...string) *api.FlowEntry {
		f := &api.FlowEntry{Dpid: "1", Priority: p, Match: match, Actions: actions}
		flows = append(flows, f)
		return f
	}
	add(100, m("in_port", "1"), "output:2")
	add(101, m("eth_type", "0x0800", "ipv4_dst", "10.0.0.0/8"), "set_field:02:00:00:00:00:01->eth_dst", "output:2")
	add(102, m("eth_type", "0x0806"), "output:controller")
	add(103, m("vlan_vid", "5"), "pop_vlan", "output:1")
	add(104, m("vlan_vid", "none"), "output:in_port")
	add(105, m("eth_type", "0x0800", "ip_proto", "6", "tcp_dst", "80"))
	add(108, m("vlan_vid", "any"), "output:flood", "output:normal")
	add(109, m("eth_dst", "01:00:00:00:00:00/01:00:00:00:00:00"), "output:all")
	add(110, m("in_port", "local"), "output:local")
	add(111, m("in_port", "2")).IdleTimeout = 300
	add(112, m("in_port", "2")).HardTimeout = 300
	if vers != "OpenFlow10" {
		add(106, m("eth_type", "0x86dd", "ipv6_dst", "2001:db8::/32", "ip_proto", "58", "icmpv6_type", "135"), "push_vlan:0x8100", "set_field:7->vlan_vid", "output:2")
		g := add(107, m("in_port", "2"))
		g.GotoTable, g.WriteActions, g.Metadata = 5, []string{"output:1"}, "0x1/0xff"
		add(113, m("in_port", "2"), "dec_ttl", "output:1").Match = m("eth_type", "0x0800")
		add(114, m("metadata", "0x1/0xf"), "output:1").Table = 3
		add(115, m("in_port", "2"), "set_queue:1", "output:1").Flags = 1 | 4 | 8 | 16
		add(116, m("eth_type", "0x8847", "mpls_label", "5"), "pop_mpls:0x0800", "output:1")
		add(117, m("in_port", "2"), "output:1").ClearActions = true
		add(118, m("eth_type", "0x0800", "ip_dscp", "10", "ip_proto", "17", "udp_src", "53"), "set_field:10.0.0.9->ipv4_src", "output:1")
		add(119, m("tunnel_id", "5"), "output:1")
	}
	for _, f := range call(t, c, api.AddFlows, &api.AddFlowsRequest{Flows: flows}).Flows {
		if f.State == "failed" {
			fmt.Println(f)
			call(t, c, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{f.Flow}})
		}
	}
	if vers == "OpenFlow10" {
		for i := 0; i < 300 && call(t, c, api.ListSync, &api.ListSyncRequest{}).Switches[0].Failed < 2; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		for _, f := range call(t, c, api.ListFlows, &api.ListFlowsRequest{}).Flows {
			if f.State == "failed" {
				fmt.Println("FAILED", f.Flow.Priority, f.Reason)
				call(t, c, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{f.Flow}})
			}
		}
	}
	wait("first")
	trap := &api.SetStandingRequest{Dpid: "1", Owner: "discovery"}
	e := flow.Entry{Priority: 65535, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 1), Match: flow.Match{}.WithEthType(0x88cc), Apply: []flow.Action{flow.Output(flow.PortController)}}
	trap.Flows = append(trap.Flows, api.NewFlowEntry(1, &e))
	fmt.Println("standing", call(t, c, api.SetStanding, trap))
	for _, f := range call(t, c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{Dpid: "1", Priority: 500, Match: m("in_port", "1"), Actions: []string{"group:77"}}}}).Flows {
		fmt.Println("refused", f)
	}
	call(t, c, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{{Dpid: "1", Priority: 500, Match: m("in_port", "1")}}})
	fmt.Println(of("dump-flows", mgmt))
	time.Sleep(8 * time.Second) // verified several times
	for _, l := range strings.Split(of("dump-flows", mgmt), "\n") {
		if strings.Contains(l, "duration=0") || strings.Contains(l, "duration=1") || strings.Contains(l, "duration=2.") {
			t.Errorf("rewritten: %s", l)
		}
	}
	fmt.Println(call(t, c, api.ListSync, &api.ListSyncRequest{}))
	of("del-flows", mgmt, "in_port=1")
	of("--strict", "mod-flows", mgmt, "priority=102,arp,actions=drop")
	of("add-flow", mgmt, "cookie=0x5745050000000009,priority=77,in_port=2,actions=drop")
	of("add-flow", mgmt, "cookie=0x9,priority=78,in_port=2,actions=drop")
	time.Sleep(5 * time.Second)
	fmt.Println(wait("mended"))
	fmt.Println(of("dump-flows", mgmt, "arp"))
	fmt.Println("stats", call(t, c, api.ListFlowStats, &api.ListFlowStatsRequest{}), len(call(t, c, api.ListPortStats, &api.ListPortStatsRequest{}).Ports), call(t, c, api.ListTableStats, &api.ListTableStatsRequest{}))
	before := len(call(t, c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "1"}).Flows)
	c.stop()
	time.Sleep(time.Second)
	c = boot(t, cfg)
	t.Cleanup(func() { c.stop() })
	s := wait("restart")
	fmt.Println("restart:", s, "flow-mods", call(t, c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches[0].FlowMods, "before", before)
	fmt.Println("standing", call(t, c, api.SetStanding, trap))
	var big []*api.FlowEntry
	for i := range 5000 {
		big = append(big, &api.FlowEntry{Dpid: "1", Priority: 50, Match: m("eth_dst", flow.MACFrom(uint64(0x020000000000+i)).String()), Actions: []string{"output:1"}})
	}
	at := time.Now()
	call(t, c, api.AddFlows, &api.AddFlowsRequest{Flows: big})
	fmt.Println("5000 flows", time.Since(at))
	for range 5 {
		at = time.Now()
		r := call(t, c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{Dpid: "1", Priority: uint32(51 + at.Nanosecond()%40), Match: m("eth_dst", "02:00:00:00:00:01"), Actions: []string{"output:1"}}}})
		fmt.Println("one flow", time.Since(at), r.Flows[0].State)
	}
	at = time.Now()
	fmt.Println(call(t, c, api.DeleteFlows, &api.DeleteFlowsRequest{AllOf: "all"}), time.Since(at), "left", len(call(t, c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: "1"}).Flows))
}
