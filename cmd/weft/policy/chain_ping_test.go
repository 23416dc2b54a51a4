package policy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// Pings and traces of chains are written as tables, and fail if something does not come
// through.
func TestChainPingAndTrace(t *testing.T) {
	at := func(port uint32) *api.Location { return &api.Location{Dpid: "0000000000000002", Port: port} }
	ping := &api.PingChainResponse{Ways: []*api.ChainPing{
		{Function: 1, Copy: 1, In: at(2), Out: at(3), Sent: 3, Received: 3, DelaysUs: []uint32{120, 100, 300}},
		{Function: 1, Copy: 1, In: at(3), Out: at(2), Back: true, Sent: 3},
	}}
	trace := &api.ChainTrace{Verdict: "dropped: function 2 is dead, and the chain blocks", Hops: []*api.ChainHop{
		{At: &api.Location{Dpid: "0000000000000001", Port: 7}, Tag: 3072}, {Function: 1, Copy: 1, At: at(2), Out: at(3)}, {Function: 2, Note: "dead"},
	}}
	var out bytes.Buffer
	for _, write := range []func(*cli.Table){
		func(w *cli.Table) { writeChainPing(w, nil, ping) }, func(w *cli.Table) { writeChainTrace(w, nil, trace) },
	} {
		cmd, o := &cobra.Command{}, cli.Output{}
		o.Flag(cmd)
		cmd.SetOut(&out)
		if err := o.Print(cmd, nil, write); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"100µs", "120µs", "300µs", "3072", "port 7", "function 1, copy 1: in", "function 2", "dead", "verdict"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if failed, err := failChainPing(nil, nil, ping); failed == nil || err != nil {
		t.Errorf("a lost probe: %v, %v", failed, err)
	}
	if failed, err := failChainTrace(nil, nil, trace); failed == nil || err != nil || !strings.Contains(failed.Error(), "function 2 is dead") {
		t.Errorf("packets that do not arrive: %v, %v", failed, err)
	}
}
