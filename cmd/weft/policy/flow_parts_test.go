package policy

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// brokenGateway takes a batch, and dies while the client waits for the last answer: it
// is not there for some calls.
type brokenGateway struct {
	api.FlowrulesClient
	away   int // calls
	forget bool
	calls  int
	names  map[string]bool
}

func (g *brokenGateway) AddFlows(_ context.Context, r *api.AddFlowsRequest, _ ...grpc.CallOption) (*api.AddFlowsResponse, error) {
	g.calls++
	g.names[r.Batch] = true
	switch {
	case r.Total == 0:
		return &api.AddFlowsResponse{Batch: &api.FlowBatch{State: "open"}}, nil
	case g.away > 0:
		g.away--
		return nil, &cli.RemoteError{Kind: codes.Unavailable, Text: "error reading from server: EOF"}
	case g.forget:
		return nil, &cli.RemoteError{Kind: codes.FailedPrecondition, Text: "batch is not known"}
	}
	return &api.AddFlowsResponse{Batch: &api.FlowBatch{State: "done", Entries: r.Total, Stored: r.Total, Confirmed: r.Total}}, nil
}

// TestBatchOutlivesTheGateway: a client whose gateway dies asks again by the name of
// its batch and says what became of it, that nothing did, or how to ask later.
func TestBatchOutlivesTheGateway(t *testing.T) {
	for name, test := range map[string]struct {
		gateway brokenGateway
		want    string // of the error; empty: done
	}{
		"back":      {brokenGateway{away: 5}, ""},
		"forgotten": {brokenGateway{away: 5, forget: true}, "no entry is added: batch is not known"},
		"gone":      {brokenGateway{away: 1000}, "the same command with --batch weft-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &test.gateway
				g.names = map[string]bool{}
				s := newFlowSender(&cobra.Command{}, &cli.Remote{Timeout: 30 * time.Second}, &cli.Controller{Clients: api.Clients{FlowrulesClient: g}})
				s.progress.Stop()
				m, err := s.addAtomic("", []*api.FlowEntry{{Dpid: "1"}, {Dpid: "2"}}, false, false)
				switch {
				case test.want == "" && (err != nil || m.Batch.State != "done"):
					t.Errorf("%v, %v", m, err)
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("%v; want %s", err, test.want)
				}
				if len(g.names) != 1 || g.calls > 80 {
					t.Errorf("%d calls, batches %v", g.calls, g.names)
				}
			})
		})
	}
}
