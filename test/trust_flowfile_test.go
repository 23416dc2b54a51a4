package test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// trustFlowFile adds a file of entries that no single request could carry, all
// or none, while the process that does so and answers for it is killed.
func trustFlowFile(t *testing.T, f *faults) {
	const entries = 2000
	var text strings.Builder
	for i := range entries {
		fmt.Fprintf(&text, "- {dpid: 1, priority: %d, match: {eth_type: 0x86dd, ipv6_src: fd00:1111:2222:3333:4444:5555:6666::/112, ipv6_dst: fd00:1111:2222:3333:4444:5555:6666:7777}, "+
			"actions: [%s\"output:1\"]}\n", 1+i, strings.Repeat(`"set_field:02:00:00:00:00:01->eth_dst", `, 60))
	}
	d := f.prepare(t, fourWorkers("grpc", "grpc"))
	file := d.write("flows.yaml", text.String())
	d.supervise()
	d.allUp()
	count := func() (n int) {
		out, err := d.command(t.Context(), "get", "flows", "--owner", "operator", "-o", "json")
		list := &struct {
			Flows []json.RawMessage `json:"flows"`
		}{}
		if err != nil || json.Unmarshal(out, list) != nil {
			return -1
		}
		return len(list.Flows)
	}

	// The first batch is sent by a client that goes on asking; its process dies
	// as soon as it has said that the batch is certain.
	if _, err := d.command(t.Context(), "flow", "add", "-f", file, "--atomic", "--no-wait"); err != nil {
		t.Fatal(err)
	}
	before := d.pids()["north"]
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all entries after the process died", func() bool { return count() == entries })
	if d.pids()["north"] == before {
		t.Error("the process was not killed")
	}

	// A part without the rest leaves nothing.
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	flows := api.NewFlowrulesClient(d.conn)
	if _, err := flows.AddFlows(ctx, &api.AddFlowsRequest{Batch: "half", Part: 1, Flows: []*api.FlowEntry{{Dpid: "2", Priority: 7}}}); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != entries {
		t.Errorf("%d entries, want %d", n, entries)
	}
	out, err := d.command(t.Context(), "flow", "delete", "-f", file)
	if err != nil || !strings.Contains(string(out), fmt.Sprint(entries)) {
		t.Errorf("delete: %v, %s", err, out)
	}
	if n := count(); n != 0 {
		t.Errorf("%d entries after all were deleted", n)
	}
}
