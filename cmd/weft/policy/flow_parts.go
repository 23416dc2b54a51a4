package policy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

// The bounds of one request with entries, of which a server takes 4 MiB.
const (
	partEntries = 4000
	partOctets  = 2 << 20
)

// batchPoll is how often the controller is asked how far a batch is.
const batchPoll = 500 * time.Millisecond

// inParts divides entries into what fits in one request each.
func inParts(flows []*api.FlowEntry) (parts [][]*api.FlowEntry) {
	begin, octets := 0, 0
	for i, f := range flows {
		size := proto.Size(f)
		if i > begin && (i-begin >= partEntries || octets+size > partOctets) {
			parts = append(parts, flows[begin:i])
			begin, octets = i, 0
		}
		octets += size
	}
	return append(parts, flows[begin:])
}

// flowSender sends entries in parts, each within the time of one call.
type flowSender struct {
	*cli.Controller
	remote   *cli.Remote
	parent   context.Context
	progress *cli.Progress
	spoken   time.Time // when progress was reported last
}

// doing reports progress, every two seconds at most.
func (s *flowSender) doing(format string, args ...any) {
	if time.Since(s.spoken) >= 2*time.Second {
		s.spoken = time.Now()
		s.progress.Doing(fmt.Sprintf(format, args...))
	}
}

func newFlowSender(cmd *cobra.Command, r *cli.Remote, c *cli.Controller) *flowSender {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	return &flowSender{Controller: c, remote: r, parent: parent, progress: cli.NewProgress(cmd.ErrOrStderr())}
}

// call runs f with a context of its own.
func (s *flowSender) call(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.parent, s.remote.Timeout)
	defer cancel()
	return f(ctx)
}

// add adds entries, part by part.
func (s *flowSender) add(flows []*api.FlowEntry, noWait, dry bool) (*api.AddFlowsResponse, error) {
	all := &api.AddFlowsResponse{}
	for _, part := range inParts(flows) {
		s.doing("%d of %d entries added", len(all.Flows), len(flows))
		err := s.call(func(ctx context.Context) error {
			m, err := s.AddFlows(ctx, &api.AddFlowsRequest{Flows: part, NoWait: noWait, DryRun: dry})
			all.Flows = append(all.Flows, m.GetFlows()...)
			return err
		})
		if err != nil && len(part) < len(flows) && !dry {
			return all, fmt.Errorf("after %d of %d entries, which are added: %w", len(all.Flows), len(flows), err)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// insist is call for a request that may be made twice: if the connection breaks, or
// there is none any more, it asks again for as long as one call may take.
func (s *flowSender) insist(began bool, f func(context.Context) error) error {
	for end := time.Now().Add(s.remote.Timeout); ; {
		err := s.call(f)
		if absent := (*cli.AbsentError)(nil); !cli.Broken(err) || !began && errors.As(err, &absent) || time.Now().After(end) {
			return err
		}
		began = true
		s.doing("the connection to the controller is lost; asking again")
		select {
		case <-s.parent.Done():
			return err
		case <-time.After(batchPoll):
		}
	}
}

// addAtomic adds all entries or none, or only says what would happen. Without waiting, it returns when it is
// certain that all become desired, unless a switch refuses one. A batch whose name is
// known already is not added again: what became of it is returned.
func (s *flowSender) addAtomic(name string, flows []*api.FlowEntry, noWait, dry bool) (*api.AddFlowsResponse, error) {
	if name == "" {
		name = "weft-" + strings.ToLower(rand.Text())
	}
	// The last part is sent again to ask how far the batch is: it is short.
	parts := append(inParts(flows[:len(flows)-1]), flows[len(flows)-1:])
	var m *api.AddFlowsResponse
	send := func(n int, total int) error {
		return s.insist(n > 0 || m != nil, func(ctx context.Context) (err error) {
			m, err = s.AddFlows(ctx, &api.AddFlowsRequest{Batch: name, Part: uint32(n + 1), Total: uint32(total), Flows: parts[n], DryRun: dry})
			return err
		})
	}
	sent := 0
	for n := range parts[:len(parts)-1] {
		s.doing("%d of %d entries sent", sent, len(flows))
		if err := send(n, 0); err != nil {
			return nil, fmt.Errorf("no entry is added: %w", err)
		}
		sent += len(parts[n])
	}
	for {
		if err := send(len(parts)-1, len(flows)); err != nil {
			return nil, unsettled(name, err)
		}
		b := m.GetBatch()
		switch b.GetState() {
		case "done", "tried", "waiting":
			return m, nil
		case "undone":
			return m, fmt.Errorf("no entry is added: %s", b.GetReason())
		case "storing":
			s.doing("%d of %d entries stored", b.GetStored(), b.GetEntries())
		case "undoing":
			s.doing("a switch has refused entries: all are taken back")
		default:
			s.doing("%d of %d entries confirmed by the switches", b.GetConfirmed(), b.GetEntries())
		}
		if noWait && b.GetState() != "checking" {
			return m, nil
		}
		select {
		case <-s.parent.Done():
			return m, fmt.Errorf("interrupted; the controller goes on: %w", s.parent.Err())
		case <-time.After(batchPoll):
		}
	}
}

// unsettled explains the error of asking for a whole batch.
func unsettled(name string, err error) error {
	remote, absent := (*cli.RemoteError)(nil), (*cli.AbsentError)(nil)
	if errors.As(err, &remote) && remote.Kind != codes.Unavailable && remote.Kind != codes.DeadlineExceeded && remote.Kind != codes.Unknown && remote.Kind != codes.Internal {
		return fmt.Errorf("no entry is added: %w", err)
	}
	if remote == nil && absent == nil {
		return err
	}
	return fmt.Errorf("whether the entries are added is not known, as the controller does not answer: %w; the same command with --batch %s asks what became of them, and adds them if nothing did", err, name)
}

// delete deletes entries, part by part, and returns how many there were.
func (s *flowSender) delete(flows []*api.FlowEntry, dry bool) (*api.DeleteFlowsResponse, error) {
	all := &api.DeleteFlowsResponse{}
	done := 0
	for _, part := range inParts(flows) {
		s.doing("%d of %d entries deleted", done, len(flows))
		err := s.call(func(ctx context.Context) error {
			m, err := s.DeleteFlows(ctx, &api.DeleteFlowsRequest{Flows: part, DryRun: dry})
			all.Deleted += m.GetDeleted()
			all.Flows = append(all.Flows, m.GetFlows()...)
			return err
		})
		if err != nil {
			return all, fmt.Errorf("after %d of %d entries: %w", done, len(flows), err)
		}
		done += len(part)
	}
	return all, nil
}

// effectsTable says what would become of entries.
func effectsTable(t *cli.Table, list []*api.WantedFlow) {
	t.Row("SWITCH", "TABLE", "PRIORITY", "MATCH", "ACTIONS", "EFFECT", "REPLACES")
	for _, w := range list {
		f, before := w.Flow, ""
		if w.Replaces != nil {
			before = w.Replaces.Instructions()
		}
		t.Row(f.Dpid, f.Table, f.Priority, cli.MatchText(f.Match), f.Instructions(), w.Effect, before)
	}
}

// batchTable says what became of a batch.
func batchTable(t *cli.Table, m *api.AddFlowsResponse) {
	b := m.GetBatch()
	if b.GetState() == "tried" {
		effectsTable(t, m.Flows)
		if more := int(b.GetEntries()) - len(m.Flows); more > 0 {
			fmt.Fprintf(t, "\nand %d more: the first %d are listed, and of entries with the same place the last\n", more, len(m.Flows))
		}
		return
	}
	fmt.Fprintf(t, "%s: %s; %d stored, %d confirmed, %d not confirmed yet\n", cli.Several(b.GetEntries(), "entry", "entries"), b.GetState(),
		b.GetStored(), b.GetConfirmed(), b.GetStored()-b.GetConfirmed())
	if b.GetState() == "waiting" {
		fmt.Fprintln(t, b.GetReason())
	}
	if len(m.Flows) > 0 {
		get.FlowsTable(t, m.Flows)
	}
}
