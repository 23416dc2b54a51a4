//go:build long

package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// TestMemory sends a controller what costs it memory: reports of nodes that do not exist,
// lists in JSON, rules for switches that do not exist, and thousands of switches that
// connect once. Clients of the lowest roles can do so, and anybody who reaches its OpenFlow
// port. The memory of the process stays bounded, and forgetting the switches frees theirs.
func TestMemory(t *testing.T) {
	f := newFaults(t)
	d := f.deploy(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, nodes, tunnels, l2vpn, gateway]}\n")
	before := d.resident()
	holds := func(what string, most int) {
		t.Helper()
		more := d.resident() - before
		t.Logf("%s: %d MiB more", what, more>>20)
		if more > most {
			t.Errorf("%s: %d MiB more, want at most %d", what, more>>20, most>>20)
		}
	}
	keeps := func(what string, most int) { // when garbage has been collected
		t.Helper()
		eventually(t, fmt.Sprintf("the memory of %s below %d MiB", what, most>>20), func() bool { return d.resident()-before < most })
	}
	tokens := map[string]string{}
	for _, role := range []string{"node", "read", "operate"} {
		out, err := d.command(t.Context(), "token", "create", "--name", role, "--role", role)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		tokens[role] = strings.TrimSpace(string(out))
	}
	as := func(role string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tokens[role])
	}
	get := func(role, path string) (status int, octets int64) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.north+path, nil)
		req.Header.Set("Authorization", "Bearer "+tokens[role])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0, 0
		}
		defer resp.Body.Close()
		octets, _ = io.Copy(io.Discard, resp.Body) // one that is cut off is short
		return resp.StatusCode, octets
	}

	goroutines := func() int { return int(d.counted("go_goroutines")) }
	const batches, each = 6, 500
	for b := range batches {
		d.visit(as("read"), flow.DPID(0x1000000+b*each), each)
	}
	eventually(t, "no goroutine for a switch that is away", func() bool { return goroutines() < 1000 })
	t.Logf("%d goroutines after %d switches", goroutines(), batches*each)
	holds("3,000 switches that came once", 640<<20)
	for i := range batches * each {
		if _, err := api.NewSouthboundClient(d.conn).ForgetSwitch(as("operate"), &api.ForgetSwitchRequest{Dpid: flow.DPID(0x1000000 + i).String()}); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := api.NewSouthboundClient(d.conn).ListSwitches(as("read"), &api.ListSwitchesRequest{})
	if err != nil || len(resp.Switches) > 0 {
		t.Errorf("%d switches are left: %v", len(resp.GetSwitches()), err)
	}
	keeps("forgotten switches", 128<<20)
	t.Logf("%d goroutines, %d MiB more after they were forgotten", goroutines(), (d.resident()-before)>>20)

	const nodes, ports = 20, 4096
	refused := 0
	for i := range 60 {
		r := &api.ReportNodesRequest{Agent: "node"}
		for n := range nodes {
			report := &api.NodeReport{Dpid: flow.DPID(0x10000 + i*nodes + n).String()}
			for p := range ports {
				report.Ports = append(report.Ports, &api.NodePort{Port: uint32(p + 1), Role: "link"})
			}
			r.Nodes = append(r.Nodes, report)
		}
		resp, err := api.NewNodesClient(d.conn).ReportNodes(as("node"), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range resp.Nodes {
			if n.Refused != "" {
				if refused++; !strings.Contains(n.Refused, "memory") {
					t.Fatal(n.Refused)
				}
			}
		}
	}
	t.Logf("%d of %d nodes refused", refused, 60*nodes)
	if refused == 0 {
		t.Error("no node was refused")
	}
	holds("60 reports", 512<<20)
	keeps("60 reports", 224<<20)

	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			if status, octets := get("read", "/v1/nodes"); status == http.StatusOK && octets == 0 {
				t.Error("an empty list of nodes")
			}
		})
	}
	readers.Wait()
	holds("8 lists in JSON", 640<<20)

	for i := range 2 {
		r := &api.AddFlowsRequest{NoWait: true}
		for n := range 20_000 {
			r.Flows = append(r.Flows, &api.FlowEntry{Dpid: flow.DPID(0x100000 + i*20_000 + n).String(), Match: map[string]string{"in_port": "1"}})
		}
		_, err := api.NewFlowrulesClient(d.conn).AddFlows(as("operate"), r)
		t.Logf("20,000 rules for as many switches: %v", err)
	}
	holds("40,000 rules for switches that do not exist", 640<<20)
}

// visit connects n switches from a DPID on, until the controller knows them, and
// takes them away.
func (d *deployment) visit(reader context.Context, first flow.DPID, n int) {
	d.t.Helper()
	ctx, leave := context.WithCancel(d.t.Context())
	var run sync.WaitGroup
	for i := range n {
		run.Go(func() {
			_ = oftest.NewDevice(oftest.Config{DPID: first + flow.DPID(i)}, nil).Dial(ctx, "tcp", d.openflow)
		}) // it ends with ctx
	}
	eventually(d.t, fmt.Sprintf("%d switches from %v on connected", n, first), func() bool {
		resp, err := api.NewSouthboundClient(d.conn).ListSwitches(reader, &api.ListSwitchesRequest{})
		up := 0
		for _, sw := range resp.GetSwitches() {
			if sw.Connected {
				up++
			}
		}
		return err == nil && up == n
	})
	leave()
	run.Wait()
}
